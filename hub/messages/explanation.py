"""Sentences that explain why a request waits and what would help."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from ..scheduling.explanation.explanation import Explanation, Precedence, QuotaState, RequestsAhead
from ..scheduling.explanation.what_if import SuggestedChange, Suggestion
from ..scheduling.model.plan import Reason
from ..scheduling.model.snapshot import BudgetBalance, PendingRequest
from ..scheduling.model.text import hours
from .units import count, devices, duration
from .wait_reasons import OwnUsage, usage_sentence, wait_sentence

_MAX_RULES = 4

MayNameGroup = Callable[[str], bool]
"""Whether the reader may see the name of a group."""


def why_sentences(explanation: Explanation, *, yours: bool = False) -> list[str]:
    """Return the rule that holds the request and the numbers behind it.

    ``yours``: the reader is the owner.
    """
    sentences = [wait_sentence(explanation.wait, yours=yours)]
    if explanation.wait.reason is Reason.DEPENDENCY:
        return sentences
    if explanation.quota is not None:
        sentences.append(_quota(explanation.quota, yours=yours))
    if explanation.budget is not None:
        sentences.append(_budget(explanation.budget))
    if explanation.request.nodes is not None:
        nodes = " and ".join(sorted(explanation.request.nodes)) or "no node that accepts work now"
        sentences.append(f"Its image is on {nodes}.")
    if explanation.request.devices and explanation.wait.reason is not Reason.ABOVE_MAXIMUM:
        sentences.append(_free(explanation))
    return sentences


def _budget(left: BudgetBalance) -> str:
    """Return what is used of the budget; views show the time of its renewal beside it."""
    later = "" if left.refills_at is not None else " No later term is defined."
    if not left.budget:
        return f"{left.group} has no budget now.{later}"
    used, whole = hours(left.used), hours(left.budget)
    return f"{left.group} has used {used} of its budget of {whole} device-hours.{later}"


def _free(explanation: Explanation) -> str:
    request = explanation.request
    model = f"{request.model} " if request.model else ""
    requested = "part of a device" if request.share else devices(request.devices)
    verb = "is" if explanation.free == 1 else "are"
    apart = ""
    no_device = explanation.wait.reason is Reason.NO_FREE_DEVICE
    if no_device and not request.gang and 1 < request.devices <= explanation.free:
        apart = " They are on several nodes, or of several models."
    return (
        f"It requests {requested}; {explanation.free} of {explanation.schedulable} {model}"
        f"{'device' if explanation.schedulable == 1 else 'devices'} {verb} free now.{apart}"
    )


def _quota(quota: QuotaState, *, yours: bool) -> str:
    used, maximum = f"{quota.held:g}", f"{quota.most:g}"
    match quota.reason:
        case Reason.USER_MAXIMUM if yours:
            usage = OwnUsage(group=quota.group, used=quota.held, maximum=quota.most)
            return usage_sentence(usage)
        case Reason.USER_MAXIMUM:
            return (
                f"Its owner uses {used} of at most {maximum} devices per member of {quota.group}."
            )
        case Reason.SESSIONS:
            who = "You have" if yours else "Its owner has"
            return (
                f"{who} {used} of at most {maximum} sessions with devices per member of "
                f"{quota.group}."
            )
        case Reason.BORROWING:
            return (
                f"{quota.group} uses {used} devices: its guaranteed quota is {quota.guaranteed}, "
                f"and its maximum with borrowing is {maximum}."
            )
        case _:
            return f"{quota.group} uses {used} of its max quota of {maximum} devices."


def ahead_sentences(ahead: tuple[RequestsAhead, ...], may_name: MayNameGroup) -> list[str]:
    """Return how many requests are ahead by each rule: the first rules, then the rest as one."""
    sentences = [_ahead(requests, may_name) for requests in islice(ahead, _MAX_RULES)]
    if left := sum(requests.count for requests in ahead[_MAX_RULES:]):
        sentences.append(f"{count(left, 'more request')} by the same rules.")
    return sentences


def _ahead(ahead: RequestsAhead, may_name: MayNameGroup) -> str:
    one = ahead.count == 1
    known = bool(ahead.group) and may_name(ahead.group)
    group = ahead.group if known else "another group"
    requests = f"{count(ahead.count, 'request')}{f' of {group}' if ahead.group else ''}"
    first = "goes first" if one else "go first"
    it, its = ("it", "its") if one else ("them", "their")
    group = group if known else "The other group"
    match ahead.rule:
        case Precedence.PREEMPTOR:
            return f"{requests} {first}: devices were preempted for {it}."
        case Precedence.RELOCATED:
            return f"{requests} {first}: {'it was' if one else 'they were'} relocated."
        case Precedence.RESERVATION:
            return f"{requests} {first}: a reservation for {it} is active."
        case Precedence.PRIORITY:
            return f"{requests} {first}: {its} priority is higher."
        case Precedence.EXPEDITED:
            return f"{requests} {first}: {its} node or device failed."
        case Precedence.GUARANTEE:
            return f"{requests} {first}: {group} is within its guaranteed quota."
        case Precedence.LESS_USE if ahead.group:
            return f"{requests} {first}: {group} has used less of its fair share."
        case Precedence.LESS_USE:
            return f"{requests} of other users in its group {first}: they have used less."
        case Precedence.SHORTER:
            return f"{requests} of the same owner {first}: {its} remaining time is shorter."
        case Precedence.LEARNED:
            return f"{requests} of the same owner {first}: a learned order discounts {its} size."
        case Precedence.DEADLINE:
            return f"{requests} in its group {first}: a deadline is close."
        case Precedence.OLDER:
            return f"{requests} of the same owner {first}: submitted earlier."


def suggestion_sentence(explanation: Explanation, suggestion: Suggestion) -> str:
    """``With 1 device instead of 2 it starts now.``"""
    return f"{_change(explanation.request, suggestion)} {_effect(explanation, suggestion)}"


def _effect(explanation: Explanation, suggestion: Suggestion) -> str:
    before = explanation.wait.estimate
    if suggestion.expected is None or before is None:
        return "it starts now."
    return f"it is expected to start {duration(before.at - suggestion.expected.at)} sooner."


def _change(request: PendingRequest, suggestion: Suggestion) -> str:
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
