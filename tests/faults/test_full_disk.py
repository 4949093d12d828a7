"""A full disk ends nothing: what cannot be accepted is refused, and space brings all back."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from ..docker_engine import unmount
from ..e2e.support import Installation, eventually, installation
from ..requirements import need
from .support import submit

DISK = "192m"
BACK_SECONDS = 15.0
PRINTS_UNTIL = """\
import pathlib, time
count = 0
while not pathlib.Path({flag!r}).exists():
    print("line", count, flush=True)
    count += 1
    time.sleep(0.05)
print("the last line")
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    need("docker", os.geteuid() == 0 and shutil.which("mount"), "a small disk needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={DISK}"]
    mounted = subprocess.run(["mount", *options, "tmpfs", folder], check=False)
    need("docker", mounted.returncode == 0, "a small disk cannot be mounted here")
    yield folder
    unmount(folder)


@pytest.fixture
def site(disk: Path) -> Iterator[Installation]:
    with installation(disk / "state", "--simulated-devices", "1") as made:
        yield made


def fill(disk: Path) -> Path:
    """Fill the disk to the last byte; return the file that does."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            with suppress(OSError):
                while True:
                    file.write(b"\0" * size)
    return filler


def state(site: Installation, request: str) -> str:
    return str(site.api("GET", f"/requests/{request}", user="student1").json()["state"])


def try_to_submit(site: Installation) -> httpx.Response:
    body = {"group": "cs101", "devices": 0, "seconds": 60, "command": ["true"]}
    return site.api("POST", "/requests", user="student2", json=body)


def test_a_full_disk_ends_nothing_and_all_is_back_with_space(
    site: Installation, disk: Path, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    assert site.token("student2")
    job = submit(site, "student1", PRINTS_UNTIL.format(flag=str(flag)))
    site.wait_for(job, "running", user="student1")
    log = site.state / "outputs" / job / "1" / "log.txt"
    eventually(lambda: log.exists() and "line 20" in log.read_text(), "it prints")
    pids = {part: site.pid_of(part) for part in ("proxy", "hub", "service")}

    filler = fill(disk)
    refused = try_to_submit(site)
    assert refused.status_code == 503, refused.text
    assert "full" in refused.json()["detail"]
    began = time.monotonic()
    for _ in range(30):
        # The proxy logs what it cannot forward; its log cannot be written.
        with httpx.Client(timeout=10) as client:
            client.get(f"{site.url}/user/nobody/lab")
            page = client.get(f"{site.url}/hub/login")
            assert page.status_code == 200
        fill(disk)
    assert time.monotonic() - began < 60
    assert state(site, job) == "running"
    flag.touch()

    filler.unlink()
    freed = time.monotonic()
    eventually(
        lambda: try_to_submit(site).status_code == 201, "a job is accepted", within=BACK_SECONDS
    )
    ended = site.wait_for(job, "succeeded", user="student1", within=60)
    assert ended["cause"]["code"] == "succeeded"
    output = (site.state / "outputs" / job / "1" / "output.ipynb").read_text()
    assert "the last line" in output
    assert {part: site.pid_of(part) for part in pids} == pids, "no component was restarted"
    assert time.monotonic() - freed < 60
