"""Read the audit log: which administrator changed what, and why."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InvalidInput
from ..interfaces.store import Store
from ..records import json_value
from ..records.audit import AuditAction, AuditEntry, ChangeFilter
from ..records.identity import Identity, require_admin
from ..schemas.admin import ChangeOut, ChangesOut


@dataclass(frozen=True, slots=True)
class AuditLog:
    """Lists the stored changes for administrators."""

    store: Store

    def entries(
        self,
        who: Identity,
        *,
        by: str = "",
        action: str = "",
        target: str = "",
        before: int | None = None,
        limit: int = 100,
    ) -> ChangesOut:
        """Return a page of the entries, newest first.

        Raises:
            Forbidden: the caller is not an administrator.
            InvalidInput: there is no such action.
        """
        require_admin(who)
        which = ChangeFilter(
            who=by or None,
            action=_action(action) if action else None,
            target=target or None,
            older_than=before,
            limit=limit + 1,
        )
        found = self.store.changes(which)
        shown = found[:limit]
        return ChangesOut(
            changes=[_change_out(change) for change in shown],
            next=shown[-1].id if shown and len(found) > limit else None,
        )


def _action(text: str) -> AuditAction:
    try:
        return AuditAction(text)
    except ValueError:
        raise InvalidInput(
            f"There is no action {text[:40]!r}.",
            accepted=f"One of: {', '.join(AuditAction)}.",
            field="action",
        ) from None


def _change_out(change: AuditEntry) -> ChangeOut:
    return ChangeOut.model_validate(
        {
            "id": change.id,
            "at": change.at,
            "who": change.who,
            "action": change.action.value,
            "target": change.target,
            "why": change.why,
            "before": json_value.plain(change.before),
            "after": json_value.plain(change.after),
        }
    )
