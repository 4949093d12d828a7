"""The trusted grader: ``python -m carrel.hub.grader``, started under the lease of a grading run.

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

from ..courses.blobs import FolderBlobs
from ..courses.carrying import contents
from ..courses.course_folders import add_source
from ..courses.grading.key import AssignmentKey
from ..courses.grading.link import Link
from ..courses.grading.release_check import check_release
from ..courses.grading.run import Terms, grade_class
from ..courses.grading.service_bench import ServiceBench
from ..courses.handout import Prepared, prepare
from ..courses.lasting import parallel
from ..courses.sandbox.port import CageEngine, Limits
from .config import Settings, StateFolder
from .engines import book as open_book
from .engines import cages
from .errors import CarrelError
from .wire.grading import GradingOrderOut


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
    link = Link(Path(os.environ["CARREL_OUTPUT_DIR"]).parent)
    blobs = FolderBlobs(state.blobs)
    order = link.order()
    with at_hand(state, order) as tools:
        folder = state.course(order.course)
        with closing(open_book(state, Settings.load(state), course=order.course)) as book:
            due = None if order.due is None else datetime.fromtimestamp(order.due, UTC)
            book.save_release(tools.prepared, due=due)
            add_source(folder, order.assignment, tools.source)
            told = Path(os.environ["CARREL_PROGRESS"])
            bench = ServiceBench(order, link.judge, blobs, book, told=told)
            terms = Terms(
                parallel=parallel(),
                only=frozenset({order.question}) if order.question else None,
                limits=tools.limits,
                files=tools.prepared.files,
            )
            grade_class(tools.engine, tools.key, bench, terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What it takes to grade submissions to one version of an assignment."""

    source: Mapping[str, bytes]
    prepared: Prepared
    engine: CageEngine
    limits: Limits
    key: AssignmentKey


@contextmanager
def at_hand(state: StateFolder, order: GradingOrderOut) -> Iterator[Tools]:
    """Raises CarrelError."""
    source = contents(FolderBlobs(state.blobs), order.source)
    prepared = prepare(order.assignment, source)
    engine = cages(
        *(state, Settings.load(state)),
        course=order.course,
        image=order.image,
        imports=prepared.imports,
    )
    limits = replace(Limits(), seconds=float(order.seconds))
    try:
        key = _key(engine, order, prepared, source, limits)
        yield Tools(source=source, prepared=prepared, engine=engine, limits=limits, key=key)
    finally:
        engine.close()


def _key(
    engine: CageEngine,
    order: GradingOrderOut,
    prepared: Prepared,
    source: Mapping[str, bytes],
    limits: Limits,
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
