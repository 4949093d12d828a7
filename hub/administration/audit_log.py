"""Read the audit log as response bodies."""

from __future__ import annotations

from ..errors import InvalidInput
from ..records import json_value
from ..records.audit import AuditAction, AuditEntry
from ..schemas.admin import ChangeOut


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
