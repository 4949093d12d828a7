"""A home that is gone, a file or a dangling link fails a job with a sentence, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.hub.controller.retries import MAX_ATTEMPTS
from carrel.hub.errors import BackendFailed
from carrel.hub.requests.jobs import JobService

from ..doubles import STUDENT1
from ..requests.samples import job
from ..world import World


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "homes" / STUDENT1.name


def test_a_queued_job_whose_home_becomes_a_file_fails_with_a_sentence(
    tmp_path: Path, home: Path
) -> None:
    world = World.over(tmp_path)
    made = JobService(world.context).submit(STUDENT1, job())
    home.rmdir()
    home.write_text("")
    world.settle_with_back_offs(2 * MAX_ATTEMPTS)
    found = world.see(made)
    assert found.state == "failed"
    assert found.cause is not None
    assert found.cause.message.startswith(
        f"The home of {STUDENT1.name} cannot be used: {home} is not a folder."
    )
    assert found.lease is None or found.lease.released_at is not None


def test_a_submission_with_a_dangling_home_is_refused_with_a_sentence(
    tmp_path: Path, home: Path
) -> None:
    world = World.over(tmp_path)
    home.parent.mkdir(exist_ok=True)
    home.symlink_to("nowhere")
    with pytest.raises(BackendFailed, match="is a link to nowhere, which does not exist") as raised:
        JobService(world.context).submit(STUDENT1, job())
    assert raised.value.http_status == 503


def test_a_home_that_is_gone_is_created_anew(tmp_path: Path, home: Path) -> None:
    world = World.over(tmp_path)
    made = JobService(world.context).submit(STUDENT1, job())
    home.rmdir()
    world.settle(2)
    assert (world.see(made).state, home.is_dir()) == ("starting", True)
