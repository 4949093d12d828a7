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

    def _check_unchanged(
        self,
        action: AuditAction,
        target: str,
        who: str,
        *,
        before: Mapping[str, Json] | None = None,
    ) -> None:
        """Raise ChangedMeanwhile if a form or call is based on an outdated version of its target.

        The store repeats this check when it saves the change. This early check is for previews, for
        changes with steps before the store, and for an answer more precise than NotFound.
        """
        self.store.check_unchanged(self._change(action, target, who, before=before))

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
