"""The words for why a request waits and what would help: for pages, commands and the API."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from ..scheduling.explanation.explanation import Explanation, Precedence, QuotaState, RequestsAhead
from ..scheduling.explanation.what_if import SuggestedChange, Suggestion
from ..scheduling.model.plan import Reason
from ..scheduling.model.snapshot import BudgetBalance, PendingRequest
from ..scheduling.model.text import hours
from .requests import wait_sentence
from .units import count, devices, duration

_LINES = 4

Named = Callable[[str], bool]
"""Whether the reader may be told the name of a group."""


def why_sentences(explanation: Explanation, *, yours: bool = False) -> list[str]:
    """The rule that holds it, with the numbers behind it; ``yours``: to its owner."""
    said = [wait_sentence(explanation.wait, yours=yours)]
    if explanation.quota is not None:
        said.append(_quota(explanation.quota, yours=yours))
    if explanation.budget is not None:
        said.append(_budget(explanation.budget))
    if explanation.request.nodes is not None:
        where = " and ".join(sorted(explanation.request.nodes)) or "no machine that takes work now"
        said.append(f"Its image is on {where}.")
    if explanation.request.devices and explanation.wait.reason is not Reason.ABOVE_MAXIMUM:
        said.append(_free(explanation))
    return said


def _budget(left: BudgetBalance) -> str:
    """What is left of it; the time at which it is full again stands beside it."""
    later = "" if left.refills_at is not None else " No later term is known."
    if not left.budget:
        return f"{left.group} has no budget now.{later}"
    used, whole = hours(left.used), hours(left.budget)
    return f"{left.group} has used {used} of its {whole} device-hours.{later}"


def _free(explanation: Explanation) -> str:
    request = explanation.request
    model = f"{request.model} " if request.model else ""
    asked = "part of a device" if request.share else devices(request.devices)
    verb = "is" if explanation.free == 1 else "are"
    return (
        f"It asks for {asked}; {explanation.free} of {explanation.lendable} {model}"
        f"{'device' if explanation.lendable == 1 else 'devices'} {verb} free now."
    )


def _quota(quota: QuotaState, *, yours: bool) -> str:
    held, most = f"{quota.held:g}", f"{quota.most:g}"
    member = f"one member of {quota.group} may"
    match quota.reason:
        case Reason.USER_MAXIMUM:
            who = "You hold" if yours else "Its owner holds"
            return f"{who} {held} of the {most} devices that {member}."
        case Reason.SESSIONS:
            who = "You have" if yours else "Its owner has"
            return f"{who} {held} of the {most} sessions that {member}."
        case Reason.BORROWING:
            return (
                f"{quota.group} holds {held} devices: {quota.guaranteed} are guaranteed, and "
                f"{most} is the most with what it may borrow."
            )
        case _:
            return f"{quota.group} holds {held} of the {most} devices that it may."


def ahead_sentences(ahead: tuple[RequestsAhead, ...], named: Named) -> list[str]:
    """Behind whom, by which rule; the most important rules, and how many more there are."""
    said = [_ahead(each, named) for each in islice(ahead, _LINES)]
    if left := sum(each.count for each in ahead[_LINES:]):
        said.append(f"{count(left, 'more request')} by the same rules.")
    return said


def _ahead(ahead: RequestsAhead, named: Named) -> str:
    one = ahead.count == 1
    known = bool(ahead.group) and named(ahead.group)
    group = ahead.group if known else "another group"
    who = f"{count(ahead.count, 'request')}{f' of {group}' if ahead.group else ''}"
    goes = "goes first" if one else "go first"
    group = group[0].upper() + group[1:] if not known else group
    match ahead.rule:
        case Precedence.PROMISED:
            return f"{who} {goes}: devices were asked back for {'it' if one else 'them'}."
        case Precedence.MOVED:
            return f"{who} {goes}: work was moved to make room, and goes on."
        case Precedence.RESERVATION:
            return f"{who} {goes}: a reservation for {'it' if one else 'them'} is running."
        case Precedence.PRIORITY:
            return f"{who} {goes}: {'its' if one else 'their'} class is served before."
        case Precedence.GUARANTEE:
            return f"{who} {goes}: {group} holds less than it is guaranteed."
        case Precedence.LESS_USE if ahead.group:
            return f"{who} {goes}: {group} has used less of its share."
        case Precedence.LESS_USE:
            return f"{who} of others in its group {goes}: they have used less."
        case Precedence.SHORTER:
            return f"{who} of the same owner {goes}: less is left to do."
        case Precedence.DEADLINE:
            return f"{who} in its group {goes}: a deadline is close."
        case Precedence.OLDER:
            return f"{who} of the same owner {goes}: submitted earlier."


def suggestion_sentence(explanation: Explanation, suggestion: Suggestion) -> str:
    """``With 1 device instead of 2 it starts now.``"""
    return f"{_instead(explanation.request, suggestion)} {_then(explanation, suggestion)}"


def _then(explanation: Explanation, suggestion: Suggestion) -> str:
    before = explanation.wait.estimate
    if suggestion.expected is None or before is None:
        return "it starts now."
    return f"it is expected {duration(before.at - suggestion.expected.at)} sooner."


def _instead(request: PendingRequest, suggestion: Suggestion) -> str:
    match suggestion.change:
        case SuggestedChange.FEWER_DEVICES:
            return f"With {devices(suggestion.devices or 0)} instead of {request.devices}"
        case SuggestedChange.ANY_MODEL:
            return f"With a device of any model instead of {request.model}"
        case SuggestedChange.SHORTER_LIMIT:
            shorter = duration(suggestion.seconds or 0.0)
            return f"With a time limit of {shorter} instead of {duration(request.seconds)}"
        case SuggestedChange.OTHER_GROUP:
            return f"In the group {suggestion.group}"
