"""Look for signs that something is wrong with running jobs, and store them with the attempt.

It stops nothing: the owner sees the signs with their evidence, and decides.
"""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ..attempts.spec import EVENTS, LOG, OUTPUT, PROGRESS, REPORTS
from ..errors import CarrelError
from ..insight.job_signs.detection import job_signs
from ..insight.job_signs.findings import JobHistory
from ..records.leases import JobSign, LeaseRecord
from ..records.requests import RequestFilter, RequestRecord
from ..records.utilization import UtilizationSeries
from ..runtime.context import Context
from ..scheduling.model.snapshot import Device, Kind
from ..scheduling.model.states import State
from ..transitions import job_signs as transitions
from .metrics import LossFollower

_WRITTEN: Final = (LOG, EVENTS, OUTPUT, PROGRESS, REPORTS)
"""Files of an attempt that grow with its output, reports and progress."""
_SILENT_SECONDS: Final = 3000.0
"""Only then the files of the job itself are listed, which takes longer."""
_ALL: Final = 100_000

log = logging.getLogger(__name__)


@dataclass(slots=True)
class JobSignRecorder:
    """Called by the loop in a thread of its own, never twice at the same time.

    Attributes:
        series: returns what each running lease has used so far.
    """

    context: Context
    series: Callable[[], Mapping[str, UtilizationSeries]]
    _losses: dict[str, LossFollower] = field(default_factory=dict)

    def reconcile(self) -> None:
        """Look at every running job; store signs that are new, that last, and that have ended."""
        c = self.context
        running = c.store.requests(
            RequestFilter(kind=Kind.JOB, states=frozenset({State.RUNNING}), limit=_ALL)
        )
        pairs = [(r.lease, r) for r in running if r.lease is not None]
        self._losses = {
            lease.id: known for lease, _ in pairs if (known := self._losses.get(lease.id))
        }
        if not pairs:
            return
        devices, series, now = self._devices(pairs), self.series(), c.clock()
        changed = False
        for lease, request in pairs:
            try:
                use = series.get(lease.id, UtilizationSeries())
                history = self._history(lease, request, use, devices, now)
                changed |= self._record(lease, history, now)
            except (CarrelError, OSError) as error:
                log.warning("signs of %s: %s", request.id, error)
            except Exception:
                # What one job reports must not hide the signs of the others.
                log.exception("signs of %s are not found", request.id)
        if changed:
            c.notifier.notify()

    def forget(self) -> None:
        """Drop what was read, as a restart does."""
        self._losses = {}

    def _devices(self, pairs: list[tuple[LeaseRecord, RequestRecord]]) -> Mapping[str, Device]:
        held = any(lease.devices for lease, _ in pairs)
        return {each.id: each for each in self.context.store.devices()} if held else {}

    def _record(self, lease: LeaseRecord, history: JobHistory, now: float) -> bool:
        found = [
            JobSign(
                kind=each.kind,
                since=min(now, lease.granted_at + each.since),
                found_at=now,
                seen_at=now,
                figures=each.figures,
            )
            for each in job_signs(history)
        ]
        signs, _ = transitions.merged(lease.signs, found, now=now)
        if signs == lease.signs:
            return False
        self.context.store.apply_to_lease(lease.id, transitions.record_signs, found, now=now)
        for sign in found:
            if sign.kind not in {known.kind for known in lease.signs}:
                log.info("%s: %s %s", lease.request_id, sign.kind, dict(sign.figures))
        return True

    def _history(
        self,
        lease: LeaseRecord,
        request: RequestRecord,
        use: UtilizationSeries,
        devices: Mapping[str, Device],
        now: float,
    ) -> JobHistory:
        age = max(0.0, now - lease.granted_at)
        held = [devices[name] for name in lease.devices if name in devices]
        folder = self.context.files.attempt_folder(request.id, lease.epoch)
        swept = request.job is not None and request.job.sweep is not None
        losses = self._losses.setdefault(lease.id, LossFollower(folder))
        return JobHistory(
            age=age,
            devices=len(lease.devices),
            seconds_left=max(0.0, request.seconds - age),
            memory_limit=request.job.memory_bytes if request.job is not None else 0,
            device_memory=sum(device.memory_bytes for device in held),
            # Waits for cores are measured only on the machine of the service.
            node_cores=os.cpu_count(),
            last_output=self._last_output(request, lease, folder, age) if held else None,
            use=use,
            # The trials of a sweep report into files of their own.
            metrics={} if swept else losses.read(age=age, began=lease.granted_at),
        )

    def _last_output(
        self, request: RequestRecord, lease: LeaseRecord, folder: Path, age: float
    ) -> float:
        """Return when the job last wrote anything, in seconds since the grant."""
        newest = max((_modified(folder / name) for name in _WRITTEN), default=0.0)
        silent = time.time() - newest
        if silent > _SILENT_SECONDS:
            found = self.context.files.files(request.id, lease.epoch).files.values()
            newest = max([newest, *(modified for _, modified in found)])
            silent = time.time() - newest
        return max(0.0, min(age, age - silent))


def _modified(path: Path) -> float:
    try:
        found = os.lstat(path)
    except OSError:
        return 0.0
    return found.st_mtime if stat.S_ISREG(found.st_mode) else 0.0
