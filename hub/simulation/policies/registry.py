"""Registry of policies: Carrel's, the baselines, and those of other packages by entry point.

An entry point of the group ``carrel.policies`` names an order, which is a function of a run and
the time, or a ``Policy`` if jobs may pass or are preempted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points

from ...errors import InvalidInput
from .carrel_policy import CARREL
from .policy import BASELINES, Policy, Schedules

GROUP = "carrel.policies"


def names(found: Iterable[EntryPoint] | None = None) -> tuple[str, ...]:
    """Return the names of all policies: the baselines, Carrel's, then the others by name."""
    others = sorted({each.name for each in _found(found)} - {*BASELINES, CARREL.name})
    return (*BASELINES, CARREL.name, *others)


def policy(name: str, found: Iterable[EntryPoint] | None = None) -> Schedules:
    """Find a policy by name.

    Raises:
        InvalidInput: the name is unknown, or its entry point is not a policy.
    """
    if name in BASELINES:
        return BASELINES[name]
    if name == CARREL.name:
        return CARREL
    for entry in _found(found):
        if entry.name == name:
            return _loaded(entry)
    raise InvalidInput(
        f"There is no policy {name!r}.",
        accepted=f"There are {', '.join(names(found))}; more by entry points of {GROUP}.",
        field="policy",
    )


def _found(found: Iterable[EntryPoint] | None) -> Iterable[EntryPoint]:
    return entry_points(group=GROUP) if found is None else found


def _loaded(entry: EntryPoint) -> Policy:
    loaded: object = entry.load()
    if isinstance(loaded, Policy):
        return replace(loaded, name=entry.name)
    if callable(loaded):
        return Policy(name=entry.name, order=loaded, source=entry.value)
    raise InvalidInput(
        f"The entry point {entry.name} of {GROUP} is {type(loaded).__name__}.",
        accepted="It names a Policy, or a function of a run and the time.",
        field="policy",
    )
