"""The pool and the quota tree, the marks on it and the audit list, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...records.audit import AuditEntry, ChangeFilter
from ...records.calendar import Reservation, Term
from ...scheduling.model.snapshot import Device, Group, Health, Mark, MarkKind
from ...scheduling.model.states import TERMINAL
from ..rules import checks, conversions
from .shelf import MemoryTables


class Pool(MemoryTables):
    """What an administrator changes takes its line of the audit list along."""

    def put_group(self, group: Group, *, change: AuditEntry | None = None) -> None:
        with self._lock:
            checks.check_group(group, self._groups)
            self._groups[group.name] = group
            self._board.note(change)

    def remove_group(self, name: str, *, at: float, change: AuditEntry | None = None) -> None:
        with self._lock:
            self.group(name)
            requests = self._requests.values()
            live = sum(r.group == name and r.state not in TERMINAL for r in requests)
            checks.check_removable(name, self._groups, live)
            del self._groups[name]
            self._teachers.pop(name, None)
            self._pins = {key: pin for key, pin in self._pins.items() if key[0] != name}
            self._board.note(change)

    def group(self, name: str) -> Group:
        with self._lock:
            if name not in self._groups:
                raise checks.no_group(name, self._groups)
            return self._groups[name]

    def groups(self) -> tuple[Group, ...]:
        with self._lock:
            return tuple(self._groups[name] for name in sorted(self._groups))

    def set_teachers(
        self, group: str, teachers: Sequence[str], *, change: AuditEntry | None = None
    ) -> None:
        with self._lock:
            self._teachers[self.group(group).name] = frozenset(teachers)
            self._board.note(change)

    def teachers(self, group: str) -> tuple[str, ...]:
        with self._lock:
            return tuple(sorted(self._teachers.get(group, ())))

    def taught_by(self, person: str) -> frozenset[str]:
        with self._lock:
            return frozenset(g for g, people in self._teachers.items() if person in people)

    # -- terms and reservations -----------------------------------------------------------

    def terms(self) -> tuple[Term, ...]:
        with self._lock:
            return tuple(sorted(self._terms.values(), key=lambda term: term.first))

    def put_term(self, term: Term, *, change: AuditEntry | None = None) -> None:
        with self._lock:
            checks.check_term(term, self._terms.values())
            self._terms[term.name] = term
            self._board.note(change)

    def remove_term(self, name: str, *, change: AuditEntry | None = None) -> bool:
        with self._lock:
            removed = self._terms.pop(name, None) is not None
            self._board.note(change if removed else None)
            return removed

    def reservations(self) -> tuple[Reservation, ...]:
        with self._lock:
            return tuple(sorted(self._reservations.values(), key=lambda r: (r.first, r.id)))

    def put_reservation(
        self, reservation: Reservation, *, change: AuditEntry | None = None
    ) -> None:
        with self._lock:
            self.group(reservation.group)
            self._reservations[reservation.id] = reservation
            self._board.note(change)

    def remove_reservation(self, name: str, *, change: AuditEntry | None = None) -> bool:
        with self._lock:
            removed = self._reservations.pop(name, None) is not None
            self._board.note(change if removed else None)
            return removed

    # -- devices and nodes ----------------------------------------------------------------

    def sync_devices(self, node: str, devices: Sequence[Device]) -> None:
        with self._lock:
            self._nodes.add(node)
            change = conversions.inventory(node, devices, self._devices, self._taken())
            self._devices.update((device.id, device) for device in change.put)
            for name in change.remove:
                del self._devices[name]

    def set_health(self, device_id: str, health: Health, why: str) -> None:
        with self._lock:
            if device_id not in self._devices:
                raise checks.no_device(device_id)
            self._devices[device_id] = replace(self._devices[device_id], health=health, why=why)

    def devices(self) -> tuple[Device, ...]:
        with self._lock:
            order = sorted(self._devices.values(), key=lambda d: (d.node, d.index, d.id))
            return tuple(conversions.marked(device, self._board.marks()) for device in order)

    def nodes(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(sorted(self._nodes))

    def marks(self) -> tuple[Mark, ...]:
        with self._lock:
            return self._board.marks()

    def put_mark(self, mark: Mark, *, change: AuditEntry | None = None) -> None:
        with self._lock:
            self._board.put(mark, self._devices.values(), self._nodes, change)

    def remove_mark(self, target: str, kind: MarkKind, *, change: AuditEntry | None = None) -> bool:
        with self._lock:
            return self._board.remove(target, kind, change)

    # -- who changed what -----------------------------------------------------------------

    def add_change(self, change: AuditEntry) -> None:
        with self._lock:
            self._board.note(change)

    def changes(self, which: ChangeFilter) -> tuple[AuditEntry, ...]:
        with self._lock:
            return self._board.changes(which)
