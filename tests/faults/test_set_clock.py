"""A clock that is set, forward and backward, ends no job and changes no charge."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest

from ..e2e.support import Installation, eventually, installation
from ..requirements import need
from .audit import read
from .support import submit

LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
HOURS = 3600
WAITS = """\
import pathlib, time
while not pathlib.Path({flag!r}).exists():
    time.sleep(0.05)
"""

SetClock = Callable[[int], None]


@pytest.fixture
def set_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SetClock:
    """Return a function that sets the clock of the installation's processes, as ``date`` does."""
    need("faketime", LIBRARIES, "libfaketime is not installed")
    offset = tmp_path / "offset"

    def set_clock(seconds: int) -> None:
        offset.with_suffix(".new").write_text(f"{seconds:+d}\n")
        offset.with_suffix(".new").rename(offset)

    set_clock(0)
    monkeypatch.setenv("LD_PRELOAD", str(LIBRARIES[0]))
    monkeypatch.setenv("FAKETIME_TIMESTAMP_FILE", str(offset))
    monkeypatch.setenv("FAKETIME_NO_CACHE", "1")
    monkeypatch.setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1")
    return set_clock


@pytest.fixture
def site(
    tmp_path: Path, set_clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Installation]:
    with installation(tmp_path / "state", "--simulated-devices", "1") as made:
        # ``carrel down`` has the real clock: with this library ``time.sleep`` may fail.
        monkeypatch.delenv("LD_PRELOAD")
        yield made


@pytest.mark.slow
def test_a_clock_that_is_set_ends_no_job_and_charges_nothing(
    site: Installation, set_clock: SetClock, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    began = time.monotonic()
    job = submit(site, "student1", WAITS.format(flag=str(flag)), devices=1, seconds=600)
    site.wait_for(job, "running", user="student1")
    for offset in (2 * HOURS, -3 * HOURS, 0):
        set_clock(offset)

        def follows(offset: int = offset) -> bool:
            now = site.api("GET", "/pool", user="student1").headers["date"]
            ahead = parsedate_to_datetime(now).timestamp() - time.time()
            return abs(ahead - offset) < HOURS / 2

        eventually(follows, "the service has the new time")
        # A job of a moment passes through every step of the scheduler after the clock was set.
        other = submit(site, "student2", "pass", devices=0, seconds=60)
        site.wait_for(other, "succeeded", user="student2")
        state = site.api("GET", f"/requests/{job}", user="student1").json()["state"]
        assert state == "running", offset
    flag.touch()
    site.wait_for(job, "succeeded", user="student1")
    took = time.monotonic() - began
    entries = [each for each in read(site.state).entries if each.request == job]
    assert 0 < sum(each.device_seconds for each in entries) <= took + 1
