"""Grade the submissions of a grading run: the process that runs under its lease.

Run as ``python -m carrel.courses.grading_runs.worker``.

It runs as the service's account on the service's machine with every engine: only the sandboxes of
submissions are containers or namespaces. Each verdict is sent to the service at once.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
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
    return run(grade)


def run(work: Callable[[], None]) -> int:
    """Do the work of this process and return its exit status; the log has the reason of a failure.

    Users read the log: warnings of nbgrader and of SQLAlchemy say nothing to them.
    """
    warnings.simplefilter("ignore")
    try:
        work()
    except CarrelError as error:
        print(error, flush=True)
        return 1
    return 0


def grade() -> None:
    """Grade what the service orders. Raises CarrelError."""
    state = StateFolder.at(os.environ["CARREL_STATE"])
    client = GraderClient(Path(os.environ["CARREL_OUTPUT_DIR"]).parent)
    blobs = FolderBlobs(state.blobs)
    order = client.order()
    with grading_tools(state, order) as tools:
        folder = state.course(order.course)
        with closing(load_gradebook(state, Settings.load(state), course=order.course)) as book:
            due = None if order.due is None else datetime.fromtimestamp(order.due, UTC)
            book.save_release(tools.prepared, due=due)
            add_source(folder, order.assignment, tools.source)
            progress_file = Path(os.environ["CARREL_PROGRESS"])
            work = ServiceWorkSource(
                order, client.store_verdict, blobs, book, progress_file=progress_file
            )
            terms = Terms(
                parallel=parallel(),
                only=frozenset({order.question}) if order.question else None,
                limits=tools.limits,
                files=tools.prepared.files,
            )
            grade_class(tools.engine, tools.key, work, terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingTools:
    """What is needed to grade submissions to one version of an assignment."""

    source: Mapping[str, bytes]
    prepared: Prepared
    engine: SandboxEngine
    limits: SandboxLimits
    key: AssignmentKey


@contextmanager
def grading_tools(state: StateFolder, order: GradingOrderOut) -> Iterator[GradingTools]:
    """Prepare the tools for an order, and close them at the end. Raises CarrelError."""
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
    """The answer key with the result of the release check, which runs now if there was none."""
    if order.apart is None:
        return check_release(engine, prepared, source, limits=limits).key
    notebooks = tuple(
        replace(notebook, apart=frozenset(order.apart.get(notebook.name, ())))
        for notebook in prepared.key.notebooks
    )
    return replace(prepared.key, notebooks=notebooks)


if __name__ == "__main__":
    sys.exit(main())
