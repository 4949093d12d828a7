"""The base class of services for administrators, whose changes have audit entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..interfaces.clock import Clock
from ..interfaces.store import Store
from ..records.audit import AuditAction, AuditEntry
from ..records.json_value import Json


@dataclass(frozen=True, slots=True)
class AuditTrail:
    """Holds store and clock, and creates audit entries."""

    store: Store
    clock: Clock

    def _change(
        self,
        action: AuditAction,
        target: str,
        who: str,
        *,
        why: str = "",
        before: Mapping[str, Json] | None = None,
        after: Mapping[str, Json] | None = None,
    ) -> AuditEntry:
        """Return the audit entry of a change at the current time."""
        return AuditEntry(
            at=self.clock(),
            who=who,
            action=action,
            target=target,
            why=why,
            before=before or {},
            after=after or {},
        )
