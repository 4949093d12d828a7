"""The marks and the audit list of the store that forgets."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from ...records.audit import AuditEntry, ChangeFilter
from ...scheduling.model.snapshot import Device, Mark, MarkKind
from ..rules import checks


class MemoryMarks:
    """What administrators said, and who said it; the store's lock guards it."""

    def __init__(self) -> None:
        self._marks: dict[tuple[str, str], Mark] = {}
        self._changes: list[AuditEntry] = []

    def marks(self) -> tuple[Mark, ...]:
        return tuple(self._marks[key] for key in sorted(self._marks))

    def put(
        self,
        mark: Mark,
        devices: Iterable[Device],
        nodes: Collection[str],
        change: AuditEntry | None,
    ) -> None:
        checks.check_mark(mark, devices, nodes)
        self._marks[mark.target, mark.kind] = mark
        self.note(change)

    def remove(self, target: str, kind: MarkKind, change: AuditEntry | None) -> bool:
        removed = self._marks.pop((target, kind), None) is not None
        if removed:
            self.note(change)
        return removed

    def note(self, change: AuditEntry | None) -> None:
        if change is not None:
            self._changes.append(replace(change, id=len(self._changes) + 1))

    def changes(self, which: ChangeFilter) -> tuple[AuditEntry, ...]:
        found = [
            change
            for change in reversed(self._changes)
            if which.who in (None, change.who)
            and which.action in (None, change.action)
            and which.target in (None, change.target)
            and (which.older_than is None or change.id < which.older_than)
        ]
        return tuple(found[: max(0, which.limit)])
