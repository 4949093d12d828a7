"""Who is let into the queue: all that admission asks of the groups and the pool, in one place.

The live service asks it of what is submitted, a replay of what was.
"""

from __future__ import annotations

from collections.abc import Iterable

from .explanation.admission_rules import EVERYTHING, Reach, Refusal, Rule, admit
from .explanation.reachable_capacity import reach
from .model.snapshot import Device, Group, Kind, Share
from .quota.tree import Tree


class Gate:
    """One set of groups and devices. What each group can reach is worked out once and kept."""

    def __init__(self, groups: Iterable[Group], devices: Iterable[Device]) -> None:
        self._groups, self._devices = tuple(groups), tuple(devices)
        self._tree = Tree(self._groups)
        self._models = {device.model for device in self._devices}
        self._reach: dict[str, Reach] = {}

    def refusal(
        self,
        *,
        group: str,
        devices: int,
        seconds: float,
        kind: Kind,
        preemptible: bool,
        model: str | None = None,
        share: Share | None = None,
    ) -> Refusal | None:
        """Why a request can never run; None if it can.

        1. a model is one of the pool that its groups may use, and asked for with a device
        2. the rules of ``refusing.admit``, beside what others are promised (``promised.reach``)
        """
        refusal = None if model is None else self._of_model(group, devices, model)
        return refusal or admit(
            groups=self._groups,
            pool=self._devices,
            group=group,
            devices=devices,
            seconds=seconds,
            model=model,
            kind=kind,
            preemptible=preemptible,
            reach=self._reach_of(group) if devices else EVERYTHING,
            share=share,
        )

    def _reach_of(self, group: str) -> Reach:
        found = self._reach.get(group)
        if found is None:
            found = self._reach[group] = reach(group, self._groups, self._devices)
        return found

    def _of_model(self, group: str, devices: int, model: str) -> Refusal | None:
        """Rule 1."""
        if devices == 0:
            return Refusal(
                rule=Rule.NEEDLESS_MODEL,
                message="What asks for no device asks for no model either.",
                accepted="Leave the model out, or ask for at least one device.",
            )
        allowed = self._tree.models(group)
        usable = sorted(self._models if allowed is None else self._models & allowed)
        accepted = (
            f"Any model, or one of: {', '.join(usable)}." if usable else "No model, and 0 devices."
        )
        if model not in self._models:
            return Refusal(
                rule=Rule.UNKNOWN_MODEL,
                message=f"The pool has no device of the model {model}.",
                accepted=accepted,
            )
        if model not in usable:
            return Refusal(
                rule=Rule.FORBIDDEN_MODEL,
                group=group,
                message=f"{group} may not use devices of the model {model}.",
                accepted=accepted,
            )
        return None
