"""Base of services that administrators use: every change has an audit entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..interfaces.clock import Clock
from ..interfaces.store import Store
from ..records.audit import AuditAction, AuditEntry
from ..records.json_value import Json


@dataclass(frozen=True, slots=True)
class AuditTrail:
    """Holds the store and the clock, and makes audit entries."""

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
        """Make the audit entry of a change, as of now."""
        return AuditEntry(
            at=self.clock(),
            who=who,
            action=action,
            target=target,
            why=why,
            before=before or {},
            after=after or {},
        )
