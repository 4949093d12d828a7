"""Resolve which groups a user belongs to and may use, from JupyterHub and the quota tree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..scheduling.model.snapshot import Group
from ..scheduling.quota import tree as quota_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChoice:
    """A group that a person may use now, with the smallest limits on its way to the root."""

    name: str
    max_devices: int
    max_devices_per_user: int
    max_seconds: int
    idle_seconds: int = 0
    models: tuple[str, ...] | None = None
    """Device models that it may ask for, by name; None for all."""


def choices(groups: Iterable[Group], known: Iterable[Group]) -> list[GroupChoice]:
    """Those that can be used, with what ``known`` groups above them leave of their limits."""
    tree = quota_tree.GroupTree(known)
    limits = [
        (group, quota_tree.limits(tree, group.name), tree.models(group.name)) for group in groups
    ]
    return [
        GroupChoice(
            name=group.name,
            max_devices=found.max_devices,
            max_devices_per_user=found.max_devices_per_user,
            max_seconds=int(found.max_seconds),
            idle_seconds=group.idle_seconds,
            models=None if models is None else tuple(sorted(models)),
        )
        for group, found, models in limits
        if found is not None
    ]
