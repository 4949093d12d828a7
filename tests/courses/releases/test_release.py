"""The solution and the student version run in the grading sandbox before a release."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from carrel.courses.files.bundle import FileBundle
from carrel.courses.releases.release import prepare_release
from carrel.courses.sandbox.interface import Sandbox, SandboxLimits, SandboxSettings
from carrel.courses.sandbox.local.engine import LocalSandboxes
from carrel.hub.errors import BackendFailed, InvalidInput
from carrel.hub.schemas.courses import ReleaseIn

from ...hub.doubles import TEACHER
from .. import course_site
from ..course_site import files
from ..notebook_samples import SOURCE


class BrokenSandboxes:
    def open(self, limits: SandboxLimits, files: Mapping[str, bytes] | None = None) -> Sandbox:
        raise BackendFailed("bwrap is missing.")

    def close(self) -> None:
        pass


def local(*, course: str, image: str, imports: tuple[str, ...]) -> LocalSandboxes:
    return LocalSandboxes(SandboxSettings(image=image, imports=imports))


def broken(*, course: str, image: str, imports: tuple[str, ...]) -> BrokenSandboxes:
    return BrokenSandboxes()


def bundle(source: bytes) -> FileBundle:
    return FileBundle.of([("ps1.ipynb", source)])


def test_the_result_of_the_check_is_stored_with_the_release() -> None:
    ready = prepare_release("ps1", bundle(SOURCE), sandboxes=local)
    assert ready.tried is not None
    assert ready.tried.seconds > 0
    assert ready.tried.apart == {"ps1": ("test-answer",)}
    assert ready.warnings == ()


def test_a_solution_that_fails_is_not_released() -> None:
    wrong = SOURCE.replace(b"    return 42", b"    return 41")
    with pytest.raises(InvalidInput) as refused:
        prepare_release("ps1", bundle(wrong), sandboxes=local)
    assert refused.value.message.startswith(
        "The solution does not pass 'test-answer' of ps1.ipynb (failed)"
    )


def test_files_made_by_nbgrader_are_checked_by_the_source_sent_with_them(tmp_path: Path) -> None:
    site = course_site.build_site(tmp_path, sandboxes=local)
    site.create()
    services = site.services
    wrong = ReleaseIn(files=files({"ps1.ipynb": SOURCE.replace(b"return 42", b"return 41")}))
    stripped = FileBundle.of([("ps1.ipynb", SOURCE), ("more.txt", b"of nbgrader")])
    with pytest.raises(InvalidInput, match="The solution does not pass"):
        services.assignments.release(TEACHER, "cs101", "ps1", wrong, stripped=stripped)

    right = ReleaseIn(files=files({"ps1.ipynb": SOURCE}), due="")
    services.assignments.release(TEACHER, "cs101", "ps1", right, stripped=stripped)
    made = services.access.store.released_version("cs101", "ps1")
    assert made.tried is not None
    assert made.tried.pace.each > 0
    assert {each.name for each in made.files.files} == {"ps1.ipynb", "more.txt"}


def test_a_failing_sandbox_is_a_warning_and_does_not_stop_a_release() -> None:
    ready = prepare_release("ps1", bundle(SOURCE), sandboxes=broken)
    assert ready.tried is None
    assert ready.warnings == (
        "It was not tried in the grading sandbox, which failed: bwrap is missing.",
    )
