"""Enforce budgets on running requests: warn once, then give notice and stop.

A running request gets a single event in its history when little of its budget is left. When the
budget is used up, the request gets a notice, and is stopped after the grace period. Queued requests
stay queued. Between two terms no request starts on a per-term budget, and running ones continue.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..messages.requests import budget_warning, notice_sentence
from ..records.json_value import Json
from ..records.notices import NoticeKind, StopNotice
from ..runtime.context import Context
from ..scheduling.model.snapshot import BudgetBalance
from ..scheduling.model.states import State
from ..scheduling.quota.tree import GroupTree
from ..transitions import lifecycle, preemption
from ..usage.budgets import EARLY
from .loop_memory import Pairs

LOW_EVENT = "budget_low"


class BudgetEnforcement:
    """Called by the loop; its state may be lost."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._warned: set[str] = set()
        """Ids of the requests that were warned."""

    def reconcile(self, pairs: Pairs, now: float) -> bool:
        """Give notice on used-up budgets; withdraw it where the budget has grown."""
        balances = self._store.budgets(now)
        low = {b.group: b for b in balances if not used_up(b) and nearly_used_up(b)}
        over = {b.group for b in balances if used_up(b)}
        noticed = [request for _, request in pairs if _on_budget(request.notice)]
        self._warned &= {request.id for _, request in pairs}
        if not low and not over and not noticed:
            return False
        tree = GroupTree(self._store.groups())
        changed = self._warn(low, pairs, tree, now) if low else False
        for lease, request in pairs:
            if not lease.devices or request.state not in (State.STARTING, State.RUNNING):
                continue
            empty = next((g.name for g in tree.ancestry(request.group) if g.name in over), None)
            if empty is None and _on_budget(request.notice):
                why = "Its group has budget left again."
                changed |= (
                    self._store.apply(request.id, preemption.withdraw_notice, why, now=now)
                    != request
                )
            elif empty is not None and request.notice is None:
                kind = NoticeKind.BUDGET
                notice = StopNotice(
                    kind=kind,
                    message=notice_sentence(kind, empty, request.group),
                    given_at=now,
                    stops_at=now + self._context.grace_seconds,
                    group=empty,
                )
                changed |= (
                    self._store.apply(request.id, preemption.notify, notice, now=now) != request
                )
        return changed

    def _warn(
        self, low: Mapping[str, BudgetBalance], pairs: Pairs, tree: GroupTree, now: float
    ) -> bool:
        """Warn each request whose budget is nearly used up, once.

        The warning is an event in the history, so that a restarted service does not repeat it.
        """
        changed = False
        for lease, request in pairs:
            if not lease.devices or request.state is not State.RUNNING:
                continue
            if request.id in self._warned:
                continue
            group = next((g for g in tree.ancestry(request.group) if g.name in low), None)
            if group is None or group.budget is None:
                continue
            self._warned.add(request.id)
            if self._store.events(request.id, kinds=frozenset({LOW_EVENT})):
                continue
            balance = low[group.name]
            part, period = balance.used / balance.budget, group.budget.period.value
            message = budget_warning(group.name, period, part, early=EARLY)
            data: dict[str, Json] = {
                "group": group.name,
                "used": balance.used,
                "of": balance.budget,
                "message": message,
            }
            self._store.apply(request.id, lifecycle.record_event, LOW_EVENT, data, now=now)
            changed = True
        return changed


def nearly_used_up(balance: BudgetBalance) -> bool:
    """Whether the part of the budget that triggers a warning is used."""
    return balance.used >= EARLY * balance.budget > 0


def used_up(balance: BudgetBalance) -> bool:
    """Whether the budget is used up."""
    return balance.used >= balance.budget > 0


def _on_budget(notice: StopNotice | None) -> bool:
    return notice is not None and notice.kind is NoticeKind.BUDGET
