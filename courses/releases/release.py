"""Prepare a release: strip solutions and hidden tests, and check it in the sandbox."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...hub.errors import BackendFailed, Conflict, InvalidInput, Unavailable
from ..files.bundle import FileBundle
from ..model.records import TrialResult
from ..sandbox.interface import SandboxFactory, SandboxLimits

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRelease:
    """Attributes:
    files: what students get.
    source: what the teacher wrote.
    warnings: sentences for the teacher.
    tried: the result of the check in the sandbox; None where there was none.
    """

    files: FileBundle
    source: FileBundle
    warnings: tuple[str, ...] = ()
    tried: TrialResult | None = None


def prepare_release(
    assignment: str,
    source: FileBundle,
    *,
    sandboxes: SandboxFactory | None = None,
    course: str = "",
    image: str = "",
    seconds: int = 600,
    ungraded: bool = False,
) -> PreparedRelease:
    """Prepare a release from the teacher's files; stores nothing.

    If the sandbox itself fails, the release is prepared with a warning.

    Args:
        sandboxes: None to skip the check.
        image: digest of the course's image; empty for that of the engine.
        seconds: the time limit of grading one submission.
        ungraded: no cell needs to have points.

    Raises:
        Conflict: no cell has points, and ``ungraded`` is false.
        InvalidInput: mistakes in the notebooks, in sentences; or the solution does not get all
            points, or the student version gets some.
        Unavailable: nbgrader is not installed beside the service.
    """
    try:
        # Slow to import, and nbgrader is an extra.
        from . import throughput  # noqa: PLC0415
        from .solution_check import check_release  # noqa: PLC0415
        from .student_version import prepare  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise Unavailable(
            f"Assignments cannot be released here: {error.name} is missing.",
            accepted="An administrator installs it with: pip install 'carrel[courses]'",
        ) from error
    prepared = prepare(assignment, source.files)
    cells = [cell for notebook in prepared.key.notebooks for cell in notebook.gradable]
    if not ungraded and not any(cell.points for cell in cells):
        raise Conflict(
            f"No cell of {assignment} has points: there would be nothing to grade.",
            accepted="Cells with points, set in JupyterLab's Create Assignment; or confirm that "
            "you release it without points.",
            field="ungraded",
        )
    files = FileBundle.of(prepared.files.items())
    ready = PreparedRelease(files=files, source=source, warnings=prepared.warnings)
    if sandboxes is None:
        return ready
    try:
        engine = sandboxes(course=course, image=image, imports=prepared.imports)
        try:
            limits = replace(SandboxLimits(), seconds=float(seconds))
            start = throughput.seconds_to_open(engine, limits)
            found = check_release(engine, prepared, source.files, limits=limits)
            _check_points(found.problems)
            pace = throughput.measured(
                *(engine, found.key, prepared, source.files),
                limits=limits,
                start=start,
                one=found.seconds_each,
            )
        finally:
            engine.close()
    except (BackendFailed, Unavailable) as error:
        said = f"It was not tried in the grading sandbox, which failed: {error.message}"
        return replace(ready, warnings=(*ready.warnings, said))
    apart = {each.name: tuple(sorted(each.apart)) for each in found.key.notebooks}
    tried = TrialResult(seconds=found.seconds_each, pace=pace, apart=apart)
    return replace(ready, warnings=(*ready.warnings, *found.in_kernel), tried=tried)


def _check_points(problems: Sequence[str]) -> None:
    if problems:
        raise InvalidInput(
            "\n".join(problems),
            accepted="A solution that gets all points, and a released version that gets none.",
            field="files",
        )


def check_assignment_name(name: str) -> None:
    """Raises InvalidInput."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{name[:80]!r} is not a name that an assignment can have.",
            accepted="It has 1 to 64 letters, digits, dots, underscores and hyphens.",
            field="assignment",
        )
