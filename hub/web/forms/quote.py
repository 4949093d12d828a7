"""Quotes for the choices of a form, before it is submitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...admission.policy import seconds_of
from ...admission.quotes import Quotes
from ...errors import CarrelError
from ...forecasts.costs import expected_cost
from ...groups.membership import GroupChoice
from ...interfaces.run_times import Basis, RunTimeForecast
from ...records.identity import Identity
from ...schemas import LARGEST, BudgetOut, QuoteIn, QuoteOut, most_devices, parsers
from ...schemas.calendar import CostOut
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
        cost: the predicted charge, and what it leaves of budgets; None where only the most that
            can be charged is known, and no budget binds.
    """

    choices: tuple[QuoteOut, ...] = ()
    chosen: QuoteOut | None = None
    problem: str = ""
    held: int = 0
    most: int = 0
    cost: CostOut | None = None

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
    *,
    groups: Sequence[GroupChoice],
    held: Mapping[str, int],
    budgets: Callable[[str], Sequence[BudgetOut]],
) -> QuoteView:
    """Quote the selected number of devices and all others that the group allows.

    Args:
        held: devices that the user has now, by group.
        budgets: returns those that bind in a group.
    """
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
    predicted = _predicted(fields)
    cost = None
    if wanted.kind == "job" and wanted.group:
        cost = expected_cost(wanted.devices, wanted.seconds, predicted, budgets(wanted.group))
    return QuoteView(
        cost=cost if cost is not None and (cost.known or cost.budgets) else None,
        choices=tuple(results),
        chosen=results[numbers.index(wanted.devices)],
        held=held.get(wanted.group, 0),
        most=most,
    )


def _predicted(fields: Mapping[str, str]) -> RunTimeForecast | None:
    """Return the run time that the form shows, which is only shown again; None for none."""
    if fields.get("kind", "notebook") != "notebook" or fields.get("sweep", "").strip():
        return None
    try:
        low, seconds, high = map(float, fields.get("predicted", "").split())
    except ValueError:
        return None
    if not 0 <= low <= seconds <= high <= LARGEST:
        return None
    return RunTimeForecast(seconds=seconds, low=low, high=high, basis=Basis.PROGRAM)


def _with_devices(wanted: QuoteIn, devices: int) -> QuoteIn:
    """Return the request with another number of devices; with none, also without a model."""
    dropped = {"model": None} if wanted.devices and not devices else {}
    return wanted.model_copy(update={"devices": devices, **dropped})
