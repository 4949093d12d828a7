"""The trusted grader, started under the lease of a grading run.

Run as ``python -m carrel.courses.grading_runs.worker``.

It runs as the service's own account on the service's machine, whatever the engine is: only the
cages of submissions are containers or namespaces. What it graded is with the service at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from ...hub.config.settings import Settings
from ...hub.config.state_folder import StateFolder
from ...hub.errors import CarrelError
from ...hub.schemas.grading import GradingOrderOut
from ..files.blobs import FolderBlobs
from ..files.course_folder import add_source
from ..files.transfer import contents
from ..gradebook.plugins import load_gradebook
from ..grading.answer_key import AssignmentKey
from ..grading.class_grader import Terms, grade_class
from ..grading.duration import parallel
from ..releases.solution_check import check_release
from ..releases.student_version import Prepared, prepare
from ..sandbox.interface import SandboxEngine, SandboxLimits
from ..sandbox.plugins import load_sandbox
from .service_client import GraderClient
from .work_source import ServiceWorkSource


def main() -> int:
    try:
        grade()
    except CarrelError as error:
        print(error, flush=True)
        return 1
    return 0


def grade() -> None:
    """Raises CarrelError."""
    state = StateFolder.at(os.environ["CARREL_STATE"])
    link = GraderClient(Path(os.environ["CARREL_OUTPUT_DIR"]).parent)
    blobs = FolderBlobs(state.blobs)
    order = link.order()
    with at_hand(state, order) as tools:
        folder = state.course(order.course)
        with closing(load_gradebook(state, Settings.load(state), course=order.course)) as book:
            due = None if order.due is None else datetime.fromtimestamp(order.due, UTC)
            book.save_release(tools.prepared, due=due)
            add_source(folder, order.assignment, tools.source)
            told = Path(os.environ["CARREL_PROGRESS"])
            bench = ServiceWorkSource(order, link.judge, blobs, book, told=told)
            terms = Terms(
                parallel=parallel(),
                only=frozenset({order.question}) if order.question else None,
                limits=tools.limits,
                files=tools.prepared.files,
            )
            grade_class(tools.engine, tools.key, bench, terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingTools:
    """What it takes to grade submissions to one version of an assignment."""

    source: Mapping[str, bytes]
    prepared: Prepared
    engine: SandboxEngine
    limits: SandboxLimits
    key: AssignmentKey


@contextmanager
def at_hand(state: StateFolder, order: GradingOrderOut) -> Iterator[GradingTools]:
    """Raises CarrelError."""
    source = contents(FolderBlobs(state.blobs), order.source)
    prepared = prepare(order.assignment, source)
    engine = load_sandbox(
        *(state, Settings.load(state)),
        course=order.course,
        image=order.image,
        imports=prepared.imports,
    )
    limits = replace(SandboxLimits(), seconds=float(order.seconds))
    try:
        key = _key(engine, order, prepared, source, limits)
        yield GradingTools(source=source, prepared=prepared, engine=engine, limits=limits, key=key)
    finally:
        engine.close()


def _key(
    engine: SandboxEngine,
    order: GradingOrderOut,
    prepared: Prepared,
    source: Mapping[str, bytes],
    limits: SandboxLimits,
) -> AssignmentKey:
    """With what the check before the release found; one that had none is checked now."""
    if order.apart is None:
        return check_release(engine, prepared, source, limits=limits).key
    notebooks = tuple(
        replace(notebook, apart=frozenset(order.apart.get(notebook.name, ())))
        for notebook in prepared.key.notebooks
    )
    return replace(prepared.key, notebooks=notebooks)


if __name__ == "__main__":
    sys.exit(main())
