"""The stages of a sweep, stored with it: by them its run time is predicted.

They are advice. A submission takes a slot for the analysis only if one is free, and is stored in
one transaction after it: without the stages each trial counts as a whole run, and the forecast says
why.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, TypeAlias

from ...attempts.notebook_format import source_hash
from ...errors import CarrelError, Unavailable
from ...records.json_value import Json
from ...records.requests import NewRequest, SweepStages
from ...sweeps.explanation import SweepExplanation
from ...sweeps.notebook_cells import SweepNotebook
from ...sweeps.stage_tree import Stage
from .process import AnalysingProcess, SweepOutline

MOST_STAGES: Final = 2_000
"""Larger sweeps are not predicted by their stages, …"""
MOST_STORED: Final = 200
"""… and neither are those with more stages that differ, or more cells: each job carries them, and
the queue is read again and again."""
_SECONDS = 10.0
"""A submission waits no longer for an analysis."""
_BUSY = "other notebooks were being analysed when the sweep was submitted."
_FAILED = "the notebook could not be analysed."
_MOST_KEPT = 64
_log = logging.getLogger(__name__)


def sweep_outline(notebook: SweepNotebook, found: SweepExplanation) -> SweepOutline:
    """Return the stages of a sweep; none if there are too many, or if its kernel perhaps cannot be
    forked, so that each trial runs all cells."""
    if found.warnings:
        return SweepOutline(None, "its kernel perhaps cannot be forked.")
    if len(notebook.cells) > MOST_STORED:
        return SweepOutline(None, f"its notebook has more than {MOST_STORED} code cells.")
    if len(list(islice(found.tree.root.walk(), MOST_STAGES + 1))) > MOST_STAGES:
        return SweepOutline(None, f"it has more than {MOST_STAGES:,} stages.")
    stages: list[tuple[int, int, int, int]] = []
    _list(_shape(found.tree.root), -1, 1, stages)
    if len(stages) > MOST_STORED:
        return SweepOutline(None, f"it has more than {MOST_STORED} different stages.")
    recorded = [each.seconds if each.source.strip() else 0.0 for each in notebook.cells]
    known = [round(each, 3) for each in recorded if each is not None]
    return SweepOutline(
        SweepStages(
            stages=tuple(stages),
            hashes=tuple(source_hash(each.source) for each in notebook.cells),
            recorded=tuple(known) if len(known) == len(recorded) else (),
        )
    )


_Shape: TypeAlias = "tuple[int, int, tuple[tuple[_Shape, int], ...]]"
"""The first cell of a stage, the one after its last, and the shapes below it, each with how often
it occurs there."""


def _shape(stage: Stage) -> _Shape:
    below = Counter(_shape(child) for child in stage.children)
    return stage.first, stage.after, tuple(below.items())


def _list(shape: _Shape, parent: int, times: int, found: list[tuple[int, int, int, int]]) -> None:
    """Append a stage, and then those below it."""
    first, after, below = shape
    index = len(found)
    found.append((parent, first, after, times))
    for each, count in below:
        _list(each, index, count, found)


@dataclass(slots=True, eq=False)
class SweepOutlines:
    """Finds the stages of sweeps, each once: a dry run often comes before a submission."""

    process: AnalysingProcess = field(
        default_factory=lambda: AnalysingProcess(seconds=_SECONDS, waits=False)
    )
    _kept: OrderedDict[str, SweepOutline] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def with_stages(self, request: NewRequest, notebook: bytes | None) -> NewRequest:
        """Return a request whose sweep knows its stages, or why they are not known.

        Other requests, and those of sweeps whose trials share nothing, are returned as they are.
        """
        job = request.job
        sweep = None if job is None else job.sweep
        if job is None or sweep is None or notebook is None or not sweep.share or sweep.together:
            return request
        try:
            found = self._outline(job.notebook_name, notebook, sweep.space)
        except CarrelError as error:  # advice: the sweep runs without it
            _log.info("%s: its stages are not known. %s", request.id, error)
            found = SweepOutline(None, _BUSY if isinstance(error, Unavailable) else _FAILED)
        except Exception:  # no process could be started, or its answer is damaged
            _log.exception("%s: its stages are not known", request.id)
            found = SweepOutline(None, _FAILED)
        known = replace(sweep, stages=found.stages, without_stages=found.reason)
        return replace(request, job=replace(job, sweep=known))

    def _outline(self, name: str, notebook: bytes, space: Mapping[str, Json]) -> SweepOutline:
        key = hashlib.sha256(notebook + repr(space).encode(errors="replace")).hexdigest()
        with self._lock:
            if key in self._kept:
                return self._kept[key]
        # Too large or too slow today may be neither tomorrow, on a quieter machine.
        found = self.process.outline(name, notebook.decode(), space)
        with self._lock:
            self._kept[key] = found
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return found
