"""Cordon the devices of drivers that fail, so that no work starts on them.

Running work on them continues: that a driver does not answer is no fault of its devices.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from ..records.audit import SERVICE
from ..runtime.context import Context
from ..scheduling.model.snapshot import Device, Mark, MarkKind

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DriverHealth:
    """Called by the loop after each inventory."""

    context: Context

    def reconcile(self, reported: Sequence[Device], now: float) -> tuple[Device, ...]:
        """Update the marks of devices whose driver fails.

        Return the reported devices, and the stored ones of these drivers, which are not gone.
        """
        problems = {
            (each.node, each.driver): each.why for each in self.context.backend.driver_problems()
        }
        present = {device.id for device in reported}
        kept: list[Device] = []
        for device in self.context.store.devices():
            why = ""
            if device.id not in present:
                why = problems.get((device.node, device.driver), "")
            if why:
                kept.append(device)
            self._mark(device, why, now)
        return (*reported, *kept)

    def _mark(self, device: Device, why: str, now: float) -> None:
        mark = next(
            (
                mark
                for mark in device.marks
                if mark.kind is MarkKind.UNREACHABLE and mark.target == device.id
            ),
            None,
        )
        if why == (mark.why if mark else ""):
            return
        if not why:
            log.info("%s is schedulable again", device.id)
            self.context.store.remove_mark(device.id, MarkKind.UNREACHABLE)
            return
        log.warning("%s is cordoned: %s", device.id, why)
        self.context.store.put_mark(
            Mark(
                target=device.id,
                kind=MarkKind.UNREACHABLE,
                since=mark.since if mark else now,
                why=why,
                by=SERVICE,
            )
        )
