"""Quotes for the choices of a form, before it is submitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...admission.policy import seconds_of
from ...admission.quotes import Quotes
from ...errors import CarrelError
from ...groups.membership import GroupChoice
from ...records.identity import Identity
from ...schemas import LARGEST, QuoteIn, QuoteOut, most_devices, parsers
from . import pickers
from .session import SessionForm
from .sweep import parallel_trials

_CHOICES = 9
"""No device, and up to eight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteView:
    """Quotes for several numbers of devices, and for the selected one.

    Attributes:
        problem: why there is no quote; empty otherwise.
        held: devices that the user has in this group now.
        most: max devices per member of the group.
    """

    choices: tuple[QuoteOut, ...] = ()
    chosen: QuoteOut | None = None
    problem: str = ""
    held: int = 0
    most: int = 0

    @property
    def waits(self) -> bool:
        return self.chosen is not None and self.chosen.admitted and not self.chosen.starts_now

    @property
    def others(self) -> tuple[QuoteOut, ...]:
        return tuple(quote for quote in self.choices if quote is not self.chosen)


def quote_request(fields: Mapping[str, str]) -> QuoteIn:
    """Return the request for a quote from the form, as far as it is filled in.

    Raises:
        InvalidInput: a number is invalid.
    """
    if fields.get("for") == "job":
        kind, options = "job", SessionForm.filled({**fields, "hours": "1"}).options()
        seconds = parsers.seconds(pickers.span(fields, "time"))
    else:
        kind, options = "session", SessionForm.filled(fields).options()
        seconds = seconds_of(options.hours)
    devices = max(0, min(options.devices, LARGEST)) * parallel_trials(fields)
    limits = {"devices": min(devices, LARGEST), "seconds": seconds}
    form = {"kind": kind, "group": fields.get("group", ""), "model": options.model}
    may_be_stopped = fields.get("preemptible") != "no"
    return QuoteIn.model_validate({**form, **limits, "preemptible": may_be_stopped})


def quote(
    quotes: Quotes,
    who: Identity,
    fields: Mapping[str, str],
    groups: Sequence[GroupChoice],
    held: Mapping[str, int],
) -> QuoteView:
    """Quote the selected number of devices and all others that the group allows."""
    try:
        wanted = quote_request(fields)
    except CarrelError as error:
        return QuoteView(problem=f"{error.message} {error.accepted}".strip())
    group = next((g for g in groups if g.name == wanted.group), None)
    most = most_devices(group) if group else 0
    numbers = sorted({*range(min(most + 1, _CHOICES)), wanted.devices})
    requests = [_with_devices(wanted, number) for number in numbers]
    try:
        results = quotes.quotes(who, requests)
    except CarrelError as error:
        return QuoteView(problem=f"{error.message} {error.accepted}".strip())
    return QuoteView(
        choices=tuple(results),
        chosen=results[numbers.index(wanted.devices)],
        held=held.get(wanted.group, 0),
        most=most,
    )


def _with_devices(wanted: QuoteIn, devices: int) -> QuoteIn:
    """Return the request with another number of devices; with none, also without a model."""
    dropped = {"model": None} if wanted.devices and not devices else {}
    return wanted.model_copy(update={"devices": devices, **dropped})
