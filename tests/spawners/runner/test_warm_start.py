"""A runner that starts before its job, and serves one job."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from nbformat import NotebookNode

from carrel.hub.attempts.spec import LOG, OUTPUT, WAKE_PIPE, AttemptSpec
from carrel.hub.records.requests import JobSpec

from ...fake_service import eventually
from ..fake_service import FakeService
from ..notebooks import notebook, read, text_of

WHOSE = (
    "print(next(each.removeprefix('CARREL_LEASE=') for each in "
    "open('/proc/self/environ').read().split('\\0') if each.startswith('CARREL_LEASE=')))"
)
"""Prints the lease that the kernel was started for."""
WHO = (
    "import os, pathlib\n"
    "print(os.environ['HOME'], os.environ['USER'], os.environ['CARREL_LEASE'], os.getcwd())\n"
    "print(os.popen('echo $USER').read().strip(), pathlib.Path('~').expanduser())\n"
    "print(sorted(name for name in globals() if not name.startswith('_')))\n" + WHOSE
)
WAIT_SECONDS = 60.0


@dataclass(slots=True, kw_only=True)
class Seat:
    """A warm runner, in an environment without an owner."""

    root: Path
    service: FakeService
    process: subprocess.Popen[bytes]

    @property
    def folder(self) -> Path:
        return self.root / "attempt"

    @property
    def home(self) -> Path:
        return self.root / "homes" / "ada"

    def order(self, book: NotebookNode, command: tuple[str, ...] = ()) -> AttemptSpec:
        path = self.root / "input.ipynb"
        path.write_text(text_of(book))
        return AttemptSpec(
            lease_id="j-1.1",
            request_id="j-1",
            epoch=1,
            token="the-token",
            service_url=self.service.url,
            input_path=str(path),
            home=str(self.home),
            owner="ada",
            devices=(),
            device_ids=(),
            job=JobSpec(notebook_name="in.ipynb", command=command),
        )

    def ring(self, order: AttemptSpec) -> None:
        order.write(self.folder)
        self.reach(b"\n")

    def reach(self, word: bytes) -> None:
        """Connect as soon as the runner listens."""
        eventually(lambda: self._reached(word))

    def _reached(self, word: bytes) -> bool:
        try:
            pipe = os.open(self.root / WAKE_PIPE, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return False  # the runner does not listen yet
        os.write(pipe, word)
        os.close(pipe)
        return True


@pytest.fixture
def seat(service: FakeService, tmp_path: Path) -> Iterator[Seat]:
    (tmp_path / "attempt").mkdir()
    (tmp_path / "homes" / "ada").mkdir(parents=True)
    os.mkfifo(tmp_path / WAKE_PIPE)
    environment: Mapping[str, str] = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "nobody")}
    process = subprocess.Popen(
        [sys.executable, "-m", "carrel.spawners.runner", "--wait", str(tmp_path / "attempt")],
        env={**environment, "CARREL_LEASE": "warm-1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    yield Seat(root=tmp_path, service=service, process=process)
    process.kill()
    process.wait()


def printed(seat: Seat) -> list[str]:
    cell = read(seat.folder / OUTPUT).cells[-1]
    return "".join(output["text"] for output in cell.outputs).splitlines()


def run(seat: Seat, order: AttemptSpec) -> int:
    seat.ring(order)
    return seat.process.wait(WAIT_SECONDS)


def test_the_forked_kernel_works_as_its_owner_and_leaves_no_trace(seat: Seat) -> None:
    seat.reach(b"")  # a check whether a runner listens does not wake it
    assert run(seat, seat.order(notebook(WHO))) == 0
    home = str(seat.home)
    assert printed(seat) == [
        f"{home} ada j-1.1 {home}",
        f"ada {home}",
        "['In', 'Out', 'exit', 'get_ipython', 'open', 'os', 'pathlib', 'quit']",
        "j-1.1",
    ]
    assert seat.service.ended["code"] == "succeeded"
    assert [lease for lease, _ in seat.service.started] == ["j-1.1"]
    assert "ada" in (seat.folder / LOG).read_text()


def test_a_kernel_reads_the_startup_files_of_its_home(seat: Seat) -> None:
    startup = seat.home / ".ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00-mine.py").write_text("mine = 42")
    assert (
        run(seat, seat.order(notebook("import os\nprint(mine, os.getppid() != os.getpgid(0))")))
        == 0
    )
    assert printed(seat) == ["42 True"]


def test_a_home_with_packages_of_its_own_gets_a_kernel_that_starts_in_it(seat: Seat) -> None:
    (seat.home / ".local" / "lib" / f"python3.{sys.version_info.minor}").mkdir(parents=True)
    assert run(seat, seat.order(notebook("print('done')"))) == 0
    assert (
        "started as usual, not forked: the home has its own .local/lib"
        in (seat.folder / LOG).read_text()
    )
    assert printed(seat) == ["done"]


def test_a_command_runs_without_the_kernel(seat: Seat) -> None:
    words = ("/bin/sh", "-c", "echo $USER $CARREL_LEASE in $PWD")
    assert run(seat, seat.order(notebook(), words)) == 0
    assert f"ada j-1.1 in {seat.home}\n" in (seat.folder / LOG).read_text()
