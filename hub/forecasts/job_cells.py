"""Cells of jobs, as the predictions see them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..insight.remaining_time import CellHistory, CellPosition
from ..interfaces.run_times import CellTimes
from ..interfaces.store import Store
from ..records.requests import RequestFilter, RequestRecord
from ..runtime.cell_progress import MOST_CELLS, CellProgress, keys_of_hashes
from ..runtime.progress_cache import ProgressCache

LOOKED_BACK = 200
"""Number of newest jobs whose cell times are stored at the start if a crash prevented that."""
_CALIBRATED = 500
"""Number of newest attempts by which the intervals of remaining times are widened at the start."""


@dataclass(frozen=True, slots=True)
class CellTimesRecorder:
    """Stores how long the cells of jobs took, and reads the history of them."""

    store: Store
    progress: ProgressCache

    def history(self, newest: Sequence[str]) -> CellHistory:
        """Return the history; first store what is missing of the newest jobs that have ended."""
        known = {each.lease_id for each in self.store.cell_times()}
        which = RequestFilter(ids=frozenset(newest), limit=len(newest))
        ended = self.store.requests(which) if newest else ()
        self.store_ended([e for e in ended if e.lease is not None and e.lease.id not in known])
        found = self.store.cell_times()
        history, least = CellHistory(), len(found) - _CALIBRATED
        for number, each in enumerate(found):
            (history.add if number < least else history.observe)(each)
        return history

    def store_ended(self, ended: Sequence[RequestRecord]) -> Sequence[CellTimes]:
        """Store the cell times of these jobs; return them."""
        jobs = [each for each in ended if each.job is not None and each.job.notebook_name]
        found = [cell_times(each, self.progress.cells_of(each)) for each in jobs]
        new = [each for each in found if each is not None]
        self.store.put_cell_times(new)
        return new


def cell_times(ended: RequestRecord, cells: CellProgress | None) -> CellTimes | None:
    """Return the cell times of the last attempt of a job that has ended; None without any."""
    if ended.lease is None or ended.ended_at is None or cells is None:
        return None
    keys = _keys(ended, cells)
    timed = {key: each for key, each in zip(keys, cells.seconds, strict=False) if each is not None}
    if not timed:
        return None
    return CellTimes(
        lease_id=ended.lease.id,
        ended_at=ended.ended_at,
        conditions=_conditions(ended),
        cells=timed,
        complete=len(timed) == cells.cells,
    )


def position_of(
    running: RequestRecord, cells: CellProgress | None, now: float
) -> CellPosition | None:
    """Return where a notebook job is; None where its cells are not known."""
    if cells is None:
        return None
    keys, seconds = _keys(running, cells), cells.seconds
    if not keys:
        return None
    began = cells.running_since
    return CellPosition(
        done={
            key: each
            for key, each in zip(keys, cells.known_seconds, strict=False)
            if each is not None
        },
        ahead=keys[len(seconds) :],
        running=0.0 if began is None else max(0.0, now - began),
        conditions=_conditions(running),
    )


def taken_over_seconds(cells: CellProgress | None) -> float | None:
    """Return how long earlier attempts took for the cells that this one has taken over.

    0 for an attempt that began with the first cell. None if it is not known where the attempt
    began, or how long such a cell took.
    """
    if cells is None or not cells.has_begun:
        return None
    pairs = zip(cells.seconds, cells.known_seconds, strict=True)
    known = [earlier for own, earlier in pairs if own is None]
    return None if None in known else math.fsum(each for each in known if each is not None)


def _keys(record: RequestRecord, cells: CellProgress) -> Sequence[str]:
    """Return the keys of the cells, which those of another owner never equal.

    What a job has taken is shown to its owner alone, and users cannot mislead each other's jobs.
    Without hashes, those of an older runner, cells are known by their numbers.
    """
    return [_owned(record.owner, key) for key in _cells(record, cells)]


def keys_of_sources(owner: str, hashes: Sequence[str]) -> Sequence[str]:
    """Return the keys of the cells of a notebook, by the hashes of their sources."""
    return [_owned(owner, key) for key in keys_of_hashes(hashes)]


def _owned(owner: str, key: str) -> str:
    return _digest(f"{owner}\0{key}")


def _cells(record: RequestRecord, cells: CellProgress) -> Sequence[str]:
    if cells.keys:
        return cells.keys
    job = record.job
    if job is None or not job.source_hash or cells.cells > MOST_CELLS:
        return ()
    return [f"{job.source_hash[:12]} {number}" for number in range(1, cells.cells + 1)]


def _conditions(record: RequestRecord) -> str:
    """Return a hash of what makes a difference between two runs of the same cells."""
    job = record.job
    parameters = sorted(job.parameters.items()) if job is not None else []
    found = repr((parameters, record.model, record.devices, job is not None and bool(job.sweep)))
    return _digest(found)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]
