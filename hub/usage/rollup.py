"""Device-seconds by user, group, week and term, computed from the sums by owner and by day.

A week begins on Monday at midnight UTC, and a day belongs to the same term as for budgets. The
usage of a group includes its descendants, as for its budget; ``own`` is the usage without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from math import floor, fsum
from types import MappingProxyType

from ..records.calendar import Term, term_of
from ..records.usage import DAY, LedgerFilter, UsageBy, UsageRow
from ..scheduling.model.snapshot import Group
from ..scheduling.quota.tree import GroupTree
from .aggregation import added_up

MADE_OF: Mapping[UsageBy, UsageBy] = MappingProxyType(
    {
        UsageBy.USER: UsageBy.OWNER,
        UsageBy.GROUP: UsageBy.OWNER,
        UsageBy.WEEK: UsageBy.DAY,
        UsageBy.TERM: UsageBy.DAY,
    }
)
"""The sums that these are computed from; all others come from the ledger itself."""

_WEEK = 7
_THURSDAY = 3
"""The first day of 1970, counted from Monday."""


def regrouped(
    rows: Iterable[UsageRow],
    which: LedgerFilter,
    by: UsageBy,
    *,
    groups: Callable[[], Iterable[Group]],
    terms: Callable[[], Iterable[Term]],
) -> tuple[UsageRow, ...]:
    """Sum rows by ``MADE_OF[by]`` further; rows by another key are returned unchanged."""
    match by:
        case UsageBy.USER:
            return added_up((replace(row, group="") for row in rows), by)
        case UsageBy.GROUP:
            return _by_group(rows, which, GroupTree(groups()))
        case UsageBy.WEEK:
            return added_up((replace(row, day=None, week=monday(row.first)) for row in rows), by)
        case UsageBy.TERM:
            known = tuple(terms())
            return added_up(
                (replace(row, day=None, term=_term(known, row.first)) for row in rows), by
            )
        case _:
            return tuple(rows)


def monday(at: float) -> float:
    day = floor(at / DAY)
    return (day - (day + _THURSDAY) % _WEEK) * DAY


def _term(terms: Iterable[Term], at: float) -> str:
    found = term_of(terms, at)
    return "" if found is None else found.name


def _by_group(
    rows: Iterable[UsageRow], which: LedgerFilter, tree: GroupTree
) -> tuple[UsageRow, ...]:
    """Return the rows by group, parents before children, siblings by name."""
    within: dict[str, list[UsageRow]] = {}
    for row in rows:
        for name in _chain(tree, row.group):
            within.setdefault(name, []).append(row)
    shown = {name for name, parts in within.items() if _has_line(name, parts, which)}
    ordered = sorted(shown, key=lambda name: _chain(tree, name)[::-1])
    return tuple(_line(name, within[name], shown, tree) for name in ordered)


def _chain(tree: GroupTree, name: str) -> tuple[str, ...]:
    """Return a group and its ancestors; a deleted group has none."""
    return tuple(group.name for group in tree.ancestry(name)) or (name,)


def _has_line(name: str, parts: Iterable[UsageRow], which: LedgerFilter) -> bool:
    """Whether the group gets a row: not the ancestors of the requested groups.

    A reader also gets no row of an ancestor of their groups, whose sum would be incomplete.
    """
    if which.groups is not None and name not in which.groups:
        return False
    own = any(part.group == name for part in parts)
    return own or which.reader is None or name in which.reader_groups


def _line(name: str, parts: list[UsageRow], shown: set[str], tree: GroupTree) -> UsageRow:
    return UsageRow(
        group=name,
        above=next((parent for parent in _chain(tree, name)[1:] if parent in shown), ""),
        own=fsum(part.total for part in parts if part.group == name),
        charged=fsum(part.charged for part in parts),
        open=fsum(part.open for part in parts),
        first=min(part.first for part in parts),
        last=max(part.last for part in parts),
    )
