"""Decide whether a request enters the queue; one that could never run is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from ..errors import InvalidInput, OverMaximum
from ..interfaces.store import Store
from ..records.gangs import JobGang
from ..scheduling.explanation import admission_rules
from ..scheduling.explanation.admission_rules import AdmissionRules, Rule
from ..scheduling.model.snapshot import Device, Group, Kind, PriorityClass
from ..scheduling.quota.tree import GroupTree
from ..schemas import LONGEST
from .gangs import check_layout

_SERVER_NAME = re.compile(r"[a-z0-9](?:-?[a-z0-9])*")
"""JupyterHub's rule for named servers."""
SERVER_NAME_LENGTH = 30
_FIELDS: Mapping[Rule, str] = MappingProxyType(
    {
        Rule.SECONDS: "hours",
        Rule.SECONDS_MAXIMUM: "hours",
        Rule.UNKNOWN_MODEL: "model",
        Rule.FORBIDDEN_MODEL: "model",
        Rule.NEEDLESS_MODEL: "model",
    }
)
"""The field that a rule checks, if it is not the number of devices."""


def admit(
    store: Store,
    *,
    group: str,
    devices: int,
    seconds: float,
    model: str | None = None,
    kind: Kind = Kind.JOB,
    preemptible: bool = False,
    gang: JobGang | None = None,
    why_one_node: str = "",
) -> None:
    """Refuse a request that could never run with the present groups and devices.

    Args:
        why_one_node: why the members must be on one node, if the engine requires it.

    Raises:
        InvalidInput: a number is out of range.
        OverMaximum: it exceeds the maximum of the group, the user or the pool, or the devices
            left beside the guaranteed quotas of other groups.
    """
    groups, pool = store.groups(), store.devices()
    if gang is not None:
        # Its members may be on several nodes: for the quotas, all devices are on one.
        as_one = [replace(device, node="") for device in pool]
    check_resources(
        groups,
        pool if gang is None else as_one,
        group=group,
        devices=devices,
        seconds=seconds,
        model=model,
        kind=kind,
        preemptible=preemptible,
        several_nodes=gang is not None,
    )
    if gang is not None:
        usable = GroupTree(groups).models(group)
        check_layout(gang, pool, model=model, usable=usable, why_one_node=why_one_node)


def total_devices(gang: JobGang) -> int:
    """Return the devices of all members that a gang wants."""
    return sum(role.devices * role.wanted for role in gang.roles)


def check_resources(
    groups: Iterable[Group],
    pool: Iterable[Device],
    *,
    group: str,
    devices: int,
    seconds: float,
    model: str | None = None,
    kind: Kind = Kind.JOB,
    preemptible: bool = False,
    several_nodes: bool = False,
) -> None:
    """Check a request against these groups and devices; raises as ``admit`` does."""
    refusal = AdmissionRules(groups, pool).refusal(
        group=group,
        devices=devices,
        seconds=seconds,
        kind=kind,
        preemptible=preemptible,
        model=model,
    )
    if refusal is None:
        return
    message = refusal.message
    if several_nodes and refusal.rule is Rule.NODE_MAXIMUM:
        message = message.replace("No node has more than", "All nodes together have only")
    error = InvalidInput if refusal.rule in admission_rules.MALFORMED else OverMaximum
    field = _FIELDS.get(refusal.rule, "devices")
    raise error(message, accepted=refusal.accepted, field=field)


def class_of(kind: Kind) -> PriorityClass:
    """Return the default class: sessions are interactive, since a user waits for them."""
    return PriorityClass.INTERACTIVE if kind is Kind.SESSION else PriorityClass.NORMAL


def check_server_name(name: str) -> str:
    """Raise InvalidInput unless JupyterHub accepts the name; "" is the default server."""
    if name and (len(name) > SERVER_NAME_LENGTH or not _SERVER_NAME.fullmatch(name)):
        raise InvalidInput(
            f"The session name {name[:80]!r} cannot be used.",
            accepted=f"1 to {SERVER_NAME_LENGTH} lower-case letters, digits and single hyphens.",
            field="server_name",
        )
    return name


def seconds_of(hours: float) -> int:
    """Return a number of hours in whole seconds.

    Raises:
        InvalidInput: not a positive number, or longer than any time limit.
    """
    if not 0 < hours <= LONGEST / 3600:
        raise InvalidInput(
            f"{hours} is not a valid number of hours.",
            accepted="More than 0, such as 1.5.",
            field="hours",
        )
    return max(1, round(hours * 3600))
