"""What is left of budgets, as values: both stores ask here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..ports.calendar import Term, span_of
from ..ports.records import LeaseRecord, RequestRecord
from ..scheduling.model import Group, Left
from ..scheduling.quota import Tree

Charged = Mapping[str, float]
"""Device-seconds in the ledger since the beginning of a period, by group."""
Running = Sequence[tuple[RequestRecord, LeaseRecord]]


def periods(groups: Iterable[Group], terms: Sequence[Term], now: float) -> dict[str, float | None]:
    """When the running period of each group with a budget began; None between two terms."""
    found: dict[str, float | None] = {}
    for group in groups:
        if group.budget is not None:
            span = span_of(group.budget.period, terms, now)
            found[group.name] = None if span is None else span[0]
    return found


def left(
    groups: Sequence[Group],
    began: Mapping[str, float | None],
    charged: Mapping[float, Charged],
    running: Running,
) -> tuple[Left, ...]:
    """Of each group that has a budget; a group's use is that of all groups below as well.

    Between two terms there is no budget: what is missing denies.
    """
    tree = Tree(groups)

    def of(group: Group) -> Left:
        since = began[group.name]
        assert group.budget is not None
        if since is None:
            return Left(group=group.name, budget=0.0, used=0.0)
        inside = {each.name for each in groups if group in tree.known(each.name)}
        used = sum(amount for name, amount in charged[since].items() if name in inside)
        open_ = sum(amount for name, amount in _to_come(running, since) if name in inside)
        return Left(group=group.name, budget=group.budget.device_seconds, used=used, running=open_)

    return tuple(of(group) for group in groups if group.budget is not None)


def _to_come(running: Running, since: float) -> Iterator[tuple[str, float]]:
    """What the ledger lacks of what runs, up to its time limit."""
    for request, lease in running:
        begins = max(lease.charged_until, since)
        ends = lease.granted_at + request.seconds
        yield request.group, len(lease.devices) * max(0.0, ends - begins)
