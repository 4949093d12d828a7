"""Budgets while work runs: who is warned, and who is stopped.

What runs when a budget is used up gets a notice and the grace time, is asked to save, and is
then stopped; what waits goes on waiting. Between two terms nothing new starts on a budget per
term, and what runs goes on to its own end.
"""

from __future__ import annotations

from .commands import Commands
from .ports.notices import Notice, NoticeKind
from .scheduling.lifecycle import State
from .scheduling.model import Left
from .scheduling.quota import Tree
from .watching import Pairs
from .wording import notice_sentence


class Budgeting:
    """Kept by the loop; everything that it does is in the store."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._store = commands.store

    def act(self, pairs: Pairs, now: float) -> bool:
        """Give notice to what runs on a used-up budget, and take it back where there is more."""
        over = {left.group for left in self._store.budgets(now) if used_up(left)}
        noticed = [request for _, request in pairs if _on_budget(request.notice)]
        if not over and not noticed:
            return False
        tree = Tree(self._store.groups())
        changed = False
        for lease, request in pairs:
            if not lease.devices or request.state not in (State.STARTING, State.RUNNING):
                continue
            empty = next((g.name for g in tree.known(request.group) if g.name in over), None)
            if empty is None and _on_budget(request.notice):
                why = "Its group has a budget again."
                changed |= self._store.withdraw_notice(request.id, why, now=now) != request
            elif empty is not None and request.notice is None:
                kind = NoticeKind.BUDGET
                notice = Notice(
                    kind=kind,
                    message=notice_sentence(kind, empty, request.group),
                    given_at=now,
                    stops_at=now + self._commands.grace_seconds,
                    group=empty,
                )
                changed |= self._store.notify(request.id, notice, now=now) != request
        return changed


def used_up(left: Left) -> bool:
    """Whether there was a budget, and it is gone."""
    return left.used >= left.budget > 0


def _on_budget(notice: Notice | None) -> bool:
    return notice is not None and notice.kind is NoticeKind.BUDGET
