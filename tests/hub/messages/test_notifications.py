"""What a message says of a job, and what it leaves out."""

from __future__ import annotations

import pytest

from carrel.hub.messages.notifications import one_line, title_of
from carrel.hub.records.requests import JobSpec, NewRequest
from carrel.hub.scheduling.model.snapshot import Kind
from carrel.hub.transitions import lifecycle


@pytest.mark.parametrize(
    ("job", "title"),
    [
        (JobSpec(notebook_name="train.ipynb"), "train.ipynb (j-1)"),
        (JobSpec(notebook_name="a\r\nBcc: x\u202e.ipynb"), "a Bcc: x .ipynb (j-1)"),
        (JobSpec(notebook_name="", command=("python", "train.py")), "python train.py (j-1)"),
        (JobSpec(notebook_name="", command=("./fit",)), "./fit (j-1)"),
        (JobSpec(notebook_name="", command=("sh", "-c", "TOKEN=x run")), "sh … (j-1)"),
        (JobSpec(notebook_name="", command=("a.sh", "b.py", "--key=x")), "a.sh b.py … (j-1)"),
    ],
)
def test_a_job_is_named_in_one_line_without_its_arguments(job: JobSpec, title: str) -> None:
    new = NewRequest(
        id="j-1",
        kind=Kind.JOB,
        owner="ada",
        group="lab",
        devices=0,
        seconds=60,
        idempotency_key="1",
        job=job,
    )
    assert title_of(lifecycle.queued(new, 0.0).request) == title


def test_a_long_name_is_shortened() -> None:
    assert one_line("x" * 9, 5) == "xxxx…"
