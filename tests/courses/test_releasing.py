"""Before a release the teacher's solution runs in the grading sandbox, and so does the hand-out."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from carrel.courses.parcels import Parcel
from carrel.courses.releasing import made_ready
from carrel.courses.sandbox.local.engine import LocalCages
from carrel.courses.sandbox.port import Cage, CageSettings, Limits
from carrel.hub.errors import BackendFailed, InvalidInput

from .notebooks import SOURCE


class BrokenCages:
    def open(self, limits: Limits, files: Mapping[str, bytes] | None = None) -> Cage:
        raise BackendFailed("bwrap is missing.")

    def close(self) -> None:
        pass


def local() -> LocalCages:
    return LocalCages(CageSettings(imports=()))


def parcel(source: bytes) -> Parcel:
    return Parcel.of([("ps1.ipynb", source)])


def test_what_the_check_found_is_kept_with_the_release() -> None:
    ready = made_ready("ps1", parcel(SOURCE), cages=local)
    assert ready.tried is not None
    assert ready.tried.seconds > 0
    assert ready.tried.apart == {"ps1": ("test-answer",)}
    assert ready.warnings == ()


def test_a_solution_that_fails_is_not_released() -> None:
    wrong = SOURCE.replace(b"    return 42", b"    return 41")
    with pytest.raises(InvalidInput) as refused:
        made_ready("ps1", parcel(wrong), cages=local)
    assert refused.value.message.startswith(
        "The solution does not pass 'test-answer' of ps1.ipynb (failed)"
    )


def test_a_sandbox_that_fails_is_told_and_stops_no_release() -> None:
    ready = made_ready("ps1", parcel(SOURCE), cages=BrokenCages)
    assert ready.tried is None
    assert ready.warnings == (
        "It was not tried in the grading sandbox, which failed: bwrap is missing.",
    )
