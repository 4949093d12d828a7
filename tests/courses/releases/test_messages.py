"""Messages about the check of a release."""

from __future__ import annotations

from carrel.courses.files.bundle import FileBundle
from carrel.courses.files.transfer import store_bundle
from carrel.courses.model.records import ReleasedVersion, TrialResult
from carrel.courses.releases.graded_cells import report
from carrel.courses.releases.messages import sentences

from ...stores import TemporaryBlobs
from ..notebook_samples import SOURCE


def told(tried: TrialResult | None) -> list[str]:
    blobs = TemporaryBlobs()
    source = store_bundle(
        blobs, FileBundle.of([("ps1.ipynb", SOURCE), ("more/x.ipynb", b"not looked into")])
    )
    made = ReleasedVersion(
        course="cs101",
        assignment="ps1",
        version=1,
        files=source,
        source=source,
        released_at=0.0,
        released_by="teacher",
        tried=tried,
    )
    return list(sentences(report(blobs, made)))


def test_points_time_and_where_each_test_runs() -> None:
    assert told(TrialResult(seconds=0.84, apart={"ps1": ("test-answer",)})) == [
        "Tried in the grading sandbox: the solution gets all 2 points that tests give, "
        "the released version none.",
        "Grading one submission takes about 0.8 s.",
        "ps1: apart from the student's kernel run test-answer.",
    ]
    in_kernel = told(TrialResult(seconds=75.0, apart={"ps1": ()}))
    assert in_kernel[1:] == [
        "Grading one submission takes about 1 min 15 s.",
        "ps1: in the student's kernel run test-answer.",
    ]


def test_the_report_says_if_a_release_was_not_checked() -> None:
    assert told(None) == ["It was not tried in the grading sandbox before it was released."]
