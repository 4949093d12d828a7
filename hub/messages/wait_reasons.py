"""Say why a queued request waits and when it starts, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..scheduling.model.plan import Reason, Wait
from ..scheduling.model.states import State
from .requests import state_meaning
from .units import coming, count

_REASONS: Mapping[Reason, tuple[str, str]] = MappingProxyType(
    {
        Reason.BORROWING: (
            "It would exceed what {} may borrow beyond its guaranteed quota.",
            "It would exceed what its group may borrow beyond its guaranteed quota.",
        ),
        Reason.GUARANTEE: (
            "The free devices are kept for the guaranteed quota of {}.",
            "The free devices are kept for the guaranteed quotas of other groups.",
        ),
        Reason.RESERVATION: (
            "The free devices are kept for a reservation of {}.",
            "The free devices are kept for a reservation.",
        ),
        Reason.BUDGET: (
            "{} has used up its budget for this period.",
            "Its group has used up its budget for this period.",
        ),
        Reason.GROUP_MAXIMUM: (
            "It would exceed the max quota of {}.",
            "It would exceed the max quota of its group.",
        ),
        Reason.USER_MAXIMUM: (
            "Its owner would exceed the maximum number of devices per member of {}.",
            "Its owner would exceed the maximum number of devices per member.",
        ),
        Reason.SESSIONS: (
            "Its owner already has the maximum number of sessions with devices per member of {}.",
            "Its owner already has the maximum number of sessions with devices per member.",
        ),
        Reason.RECLAIMING: (
            "Devices that {} borrowed are being preempted for it; it starts when the grace period "
            "ends.",
            "Devices in use are being preempted for it; it starts when the grace period ends.",
        ),
    }
)
"""Each sentence with the name of a group, and without it where no group is known."""


_OWN_REASONS: Mapping[Reason, tuple[str, str]] = MappingProxyType(
    {
        Reason.USER_MAXIMUM: (
            "You would exceed your maximum number of devices in {}.",
            "You would exceed your maximum number of devices.",
        ),
        Reason.SESSIONS: (
            "You already have your maximum number of sessions with devices in {}.",
            "You already have your maximum number of sessions with devices.",
        ),
    }
)
"""The sentences that the owner reads instead."""


_WITHOUT_POSITION = (Reason.CLUSTER, Reason.DEPENDENCY)
"""Requests that wait for something else than their turn."""

_WOULD_PREEMPT = "Borrowed devices would be preempted for it, after a notice to their users."


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnUsage:
    """The devices that the reader uses in a group, and the maximum per member of the group."""

    group: str
    used: float
    maximum: float


def wait_sentence(wait: Wait, *, yours: bool = False) -> str:
    """Return position and reason: ``Queued at position 2. 1 request is ahead of it.``

    ``yours``: the reader is the owner.
    """
    reason = wait_reason(wait, yours=yours)
    return f"{position_sentence(wait.place)} {reason}" if _has_position(wait) else reason


def progress_sentence(state: State, wait: Wait | None = None) -> str:
    """Return why a queued request waits, if that is known, or else what its state means."""
    if state is State.QUEUED and wait is not None:
        return wait_sentence(wait)
    meaning = state_meaning(state)
    return f"{meaning[:1].upper()}{meaning[1:]}."


def position_sentence(position: int) -> str:
    """``Queued at position 2.``"""
    return f"Queued at position {position}."


def wait_reason(wait: Wait, *, yours: bool = False) -> str:
    """Return the reason without the position, for views that show the position elsewhere."""
    if wait.reason in _WITHOUT_POSITION or _has_position(wait):
        return _reason(wait, yours=yours)
    return "It starts now."


def _has_position(wait: Wait) -> bool:
    return wait.reason not in {Reason.STARTING, *_WITHOUT_POSITION} and wait.place > 0


def _reason(wait: Wait, *, yours: bool) -> str:
    sentences = _OWN_REASONS if yours and wait.reason in _OWN_REASONS else _REASONS
    if wait.reason in sentences:
        return sentences[wait.reason][0 if wait.detail else 1].format(wait.detail)
    match wait.reason:
        case Reason.CLUSTER:
            return wait.detail or "It waits in the queue of the cluster."
        case Reason.NO_FREE_DEVICE:
            fitting = f"{wait.detail} devices" if wait.detail else "devices"
            return f"Not enough {fitting} are free; it gets the next ones that are released."
        case Reason.BEHIND_OTHERS:
            ahead = count(wait.ahead, "request")
            verb = "is" if wait.ahead == 1 else "are"
            return f"{ahead} {verb} ahead of it."
        case Reason.ABOVE_MAXIMUM:
            group = wait.detail or "its group"
            return f"It requests more than {group} now allows, so it cannot start. Change it."
        case Reason.POOL_TOO_SMALL:
            model = f"{wait.detail} " if wait.detail else ""
            return f"Not enough {model}devices are in service; it starts when enough are."
        case Reason.ENGINE:
            return f"{wait.detail} It starts when that is resolved."
        case Reason.BACK_OFF:
            return "An attempt failed; the next one starts after a back-off."
        case Reason.DEPENDENCY:
            return wait.detail or "It waits for other jobs."
        case Reason.DRAINING:
            return "All nodes are draining; it starts when one accepts work again."
        case _:
            return "It starts now."


def quote_sentence(wait: Wait, now: float, usage: OwnUsage | None = None) -> str:
    """Return what to expect of a request before it is submitted.

    ``usage``: the owner's usage, if the maximum per member holds the request.
    """
    if wait.place < 1:
        return "Starts immediately."
    if wait.reason is Reason.RECLAIMING:
        why = _WOULD_PREEMPT
    elif wait.reason is Reason.USER_MAXIMUM and usage is not None:
        why = usage_sentence(usage)
    else:
        why = _reason(wait, yours=True)
    if wait.estimate is None:
        return f"{position_sentence(wait.place)} {why}"
    return f"Queued at position {wait.place}, starts {coming(wait.estimate.at - now)}. {why}"


def usage_sentence(usage: OwnUsage) -> str:
    """``You already use your maximum of 2 devices in cs101.``"""
    noun = "device" if usage.maximum == 1 else "devices"
    maximum = f"your maximum of {usage.maximum:g} {noun} in {usage.group}"
    if usage.used >= usage.maximum:
        return f"You already use {maximum}."
    return f"You use {usage.used:g} of {maximum}."
