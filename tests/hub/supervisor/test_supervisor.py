"""The supervisor's loop, over small programs that stand in for the three parts."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.errors import BackendFailed, Unavailable
from carrel.hub.supervisor.child_process import Backoff, Child, Component, rotate, tail
from carrel.hub.supervisor.liveness import LivenessCheck
from carrel.hub.supervisor.processes import ProcessId
from carrel.hub.supervisor.supervisor import RestartPolicy, Supervisor

from ...fake_service import eventually

QUICK = Backoff(first=0.01, longest=0.05)

# Creates a file and sleeps; on SIGTERM it records its name and ends.
SERVER = """
import os, signal, sys
folder, name = sys.argv[1:]

def stop(*_):
    with open(os.path.join(folder, "stopped"), "a") as file:
        file.write(name + "\\n")
    sys.exit(0)

signal.signal(signal.SIGTERM, stop)
with open(os.path.join(folder, name + ".up"), "w") as file:
    file.write(str(os.getpid()))
while True:
    signal.pause()
"""
STUBBORN = """
import os, signal, sys
folder, name = sys.argv[1:]
signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getppid(), signal.SIGINT))
open(os.path.join(folder, name + ".up"), "w").close()
while True:
    signal.pause()
"""
DEAF = STUBBORN.replace("lambda *_: os.kill(os.getppid(), signal.SIGINT)", "signal.SIG_IGN")
FAILING = "import sys; print('no such table'); sys.exit(3)"


class Stage:
    """A supervisor with fake parts that records its messages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.parts: list[Component] = []
        self.said: list[str] = []
        self.when_said: Callable[[str], None] = lambda text: None
        self.patience = RestartPolicy(start=120.0, ask=0.02, stop=60.0)
        (folder / "run").mkdir()

    def part(
        self,
        name: str,
        program: str = SERVER,
        *,
        ready: Callable[[], bool] | None = None,
        settled: Callable[[], bool] = lambda: True,
        alive: Callable[[], bool] = lambda: True,
    ) -> None:
        up = self.folder / f"{name}.up"
        self.parts.append(
            Component(
                name=name,
                title=f"the {name}",
                command=(sys.executable, "-S", "-c", program, str(self.folder), name),
                environment={"PATH": os.environ["PATH"], "MARK": name},
                ready=ready or (lambda: up.exists() and up.read_text() != ""),
                settled=settled,
                alive=alive,
            )
        )

    def build(self, ready: Callable[[], bool] = lambda: True) -> Supervisor:
        def say(text: str) -> None:
            self.said.append(text)
            self.when_said(text)

        return Supervisor(
            self.parts,
            logs=self.folder,
            run=self.folder / "run",
            say=say,
            ready=ready,
            backoff=QUICK,
            patience=self.patience,
        )

    @property
    def stopped(self) -> list[str]:
        return (self.folder / "stopped").read_text().split()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def pids(supervisor: Supervisor) -> dict[str, int]:
    return {c.part.name: c.process.pid for c in supervisor.children if c.process is not None}


def test_parts_are_stopped_in_reverse_order(stage: Stage) -> None:
    for name in ("proxy", "hub", "service"):
        stage.part(name)
    supervisor = stage.build()
    supervisor.run(supervisor.request_stop)
    assert stage.stopped == ["service", "hub", "proxy"]
    assert list((stage.folder / "run").iterdir()) == []


def test_the_supervisor_is_ready_when_all_parts_and_the_route_are(stage: Stage) -> None:
    answers = iter([False, False, True])
    stage.part("hub")
    supervisor = stage.build(ready=lambda: next(answers))
    seen = []

    def when_ready() -> None:
        seen.append((stage.folder / "hub.up").exists())
        supervisor.request_stop()

    supervisor.run(when_ready)
    assert (seen, list(answers)) == ([True], [])


def test_a_part_that_dies_is_restarted_alone(stage: Stage) -> None:
    for name in ("proxy", "hub"):
        stage.part(name)
    supervisor = stage.build()
    before: dict[str, int] = {}
    after: dict[str, int] = {}

    def when_ready() -> None:
        before.update(pids(supervisor))
        (stage.folder / "hub.up").unlink()
        os.kill(before["hub"], signal.SIGKILL)

    def when_said(text: str) -> None:
        if text == "the hub is back.":
            after.update(pids(supervisor))
            supervisor.request_stop()

    stage.when_said = when_said
    supervisor.run(when_ready)
    assert after["proxy"] == before["proxy"]
    assert after["hub"] != before["hub"]
    assert "killed by SIGKILL" in stage.said[0]


def test_a_part_that_hangs_is_restarted_alone(stage: Stage) -> None:
    """A process that is stopped (SIGSTOP) takes connections and never answers."""
    stage.patience = replace(stage.patience, check=0.01, missed=3)
    stage.part("proxy")
    stage.part("service", alive=(stage.folder / "service.up").exists)
    supervisor = stage.build()
    before: dict[str, int] = {}
    after: dict[str, int] = {}

    def when_ready() -> None:
        before.update(pids(supervisor))
        os.kill(before["service"], signal.SIGSTOP)
        (stage.folder / "service.up").unlink()

    def when_said(text: str) -> None:
        if text == "the service is back.":
            after.update(pids(supervisor))
            supervisor.request_stop()

    stage.when_said = when_said
    supervisor.run(when_ready)
    assert after["proxy"] == before["proxy"]
    assert after["service"] != before["service"]
    assert stage.said[0] == "the service does not respond any more and is restarted."


def test_a_part_that_misses_some_probes_is_left_alone() -> None:
    answers = iter([False, False, True, False, False])
    check = LivenessCheck(lambda: next(answers), every=1.0, now=0.0)
    missed = []
    for now in range(1, 6):
        check.poll(float(now))
        eventually(lambda: not any(each.name == "liveness" for each in threading.enumerate()))
        missed.append(check.poll(float(now)))
    assert missed == [1, 2, 0, 1, 2]


def test_a_restarted_part_is_ready_only_when_it_reports_so(stage: Stage) -> None:
    answers = [False, False, True]
    asked: list[bool] = []

    def settled() -> bool:
        asked.append(announced.is_set())
        if len(asked) == len(answers):
            supervisor.request_stop()
        return answers[len(asked) - 1]

    announced = threading.Event()
    stage.part("proxy", settled=settled)
    supervisor = stage.build()

    def when_ready() -> None:
        announced.set()
        (stage.folder / "proxy.up").unlink()
        os.kill(pids(supervisor)["proxy"], signal.SIGKILL)

    supervisor.run(when_ready)
    assert asked == [True, True, True]


def test_a_part_that_cannot_start_ends_the_supervisor_with_its_log(stage: Stage) -> None:
    stage.part("proxy")
    stage.part("hub", FAILING)
    with pytest.raises(Unavailable, match=r"the hub ended 4 times(?s:.*)no such table"):
        stage.build().run(lambda: pytest.fail("it was never ready"))
    assert not ProcessId.load(stage.folder / "run" / "proxy.json")
    assert "exit status 3" in stage.said[0]


def test_a_part_that_never_gets_ready_is_named(stage: Stage) -> None:
    stage.patience = RestartPolicy(start=0.3, ask=0.02)
    stage.part("proxy")
    stage.part("hub", ready=lambda: False)
    with pytest.raises(Unavailable, match="the hub is not ready after 0 s"):
        stage.build().run(lambda: pytest.fail("it was never ready"))


def test_a_missing_program_is_reported_and_other_parts_are_stopped(stage: Stage) -> None:
    stage.part("proxy", ready=lambda: True)
    part = stage.parts[0]
    stage.parts.append(
        Component(
            name="hub",
            title="the hub",
            command=("/no/such/program",),
            environment=part.environment,
            ready=part.ready,
        )
    )
    supervisor = stage.build()
    with pytest.raises(BackendFailed, match="the hub cannot be started"):
        supervisor.run(lambda: None)
    assert pids(supervisor) == {}


def test_a_part_that_ignores_sigterm_is_killed(stage: Stage) -> None:
    stage.patience = RestartPolicy(ask=0.02, stop=0.2)
    stage.part("hub", DEAF, ready=(stage.folder / "hub.up").exists)
    supervisor = stage.build()
    supervisor.run(supervisor.request_stop)
    assert pids(supervisor) == {}


def test_a_second_ctrl_c_does_not_wait(stage: Stage) -> None:
    # The part answers SIGTERM with the second Ctrl-C; otherwise it would have a minute.
    stage.patience = RestartPolicy(ask=0.02, stop=60.0)
    stage.part("hub", STUBBORN, ready=(stage.folder / "hub.up").exists)
    supervisor = stage.build()
    supervisor.run(supervisor.request_stop)
    assert pids(supervisor) == {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_stop_the_supervisor_and_their_handlers_are_restored(
    stage: Stage, number: signal.Signals
) -> None:
    before = signal.getsignal(number)
    stage.part("hub")
    stage.build().run(lambda: os.kill(os.getpid(), number))
    assert stage.stopped == ["hub"]
    assert signal.getsignal(number) == before


def test_ctrl_c_in_the_terminal_does_not_reach_the_parts(stage: Stage) -> None:
    stage.part("hub")
    supervisor = stage.build()
    seen = []

    def when_ready() -> None:
        pid = pids(supervisor)["hub"]
        seen.append((os.getsid(pid) == pid, ProcessId.load(stage.folder / "run" / "hub.json")))
        assert seen[0][1] == ProcessId.of(pid)
        supervisor.request_stop()

    supervisor.run(when_ready)
    assert seen[0][0]


def test_the_wait_before_a_restart_doubles_up_to_ten_seconds() -> None:
    waits = [Backoff().after(deaths) for deaths in range(1, 9)]
    assert waits == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]


def test_a_large_log_is_rotated_at_start(tmp_path: Path) -> None:
    log = tmp_path / "hub.log"
    log.write_text("x" * 20)
    rotate(log, limit=20)
    assert log.exists()
    rotate(log, limit=19)
    assert not log.exists()
    assert (tmp_path / "hub.log.1").read_text() == "x" * 20


def test_the_tail_has_whole_lines(tmp_path: Path) -> None:
    log = tmp_path / "hub.log"
    assert tail(log) == ""
    log.write_text("first\nsecond\nthird\n")
    assert tail(log) == "first\nsecond\nthird"
    assert tail(log, size=9) == "third"


def test_logs_and_notes_that_cannot_be_written_end_nothing(tmp_path: Path) -> None:
    """On a full disk a component runs without them; its note is written once there is space."""
    lasting = "import signal; print('a line', flush=True); signal.pause()"
    command = (sys.executable, "-c", lasting)
    part = Component(
        name="a", title="a", command=command, environment={}, ready=bool, alive=lambda: True
    )
    child = Child(part, logs=tmp_path / "missing", run=tmp_path / "run", backoff=Backoff())
    child.start(0.0)
    assert child.process is not None
    assert not child.noted
    (tmp_path / "run").mkdir()
    child.save_note()
    assert child.noted
    assert ProcessId.load(child.note) == ProcessId.of(child.process.pid)
    child.stop(5.0)
    assert not child.note.exists()
