"""Find the processes of a lease by environment and descent, and stop all of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from carrel.courses.sandbox.guest import processes
from carrel.hub.records.leases import Handle
from carrel.hub.supervisor.processes import ProcessId
from carrel.spawners.processes import lease_processes

from ...promises import in_time

SLEEP = "import time; time.sleep(600)"
DEAF = "import signal; [signal.signal(s, signal.SIG_IGN) for s in (2, 15)]; "
UNREADABLE = "import ctypes; ctypes.CDLL(None).prctl(15, b'\\xff\\xfe', 0, 0, 0); "
READY = "print('ready', flush=True); "


class Lease:
    """Starts processes of one lease, and ends them after the test."""

    def __init__(self, name: str) -> None:
        self.id = name
        self.children: list[subprocess.Popen[str]] = []

    def run(self, code: str, *, marked: bool = True, state: str = "") -> psutil.Process:
        """Start Python and wait for its first line."""
        environment = {"PATH": os.environ["PATH"]}
        if state:
            environment["CARREL_STATE"] = state
        if marked:
            environment["CARREL_LEASE"] = self.id
        child = subprocess.Popen(
            [sys.executable, "-c", code],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.children.append(child)
        assert child.stdout is not None
        self.line = child.stdout.readline().strip()
        return psutil.Process(child.pid)

    def members(self, handle: Handle | None = None) -> list[int]:
        return [process.pid for process in lease_processes.scan({self.id: handle})[self.id]]


def stopped(
    lease: Lease, handle: Handle | None = None, *, patience: float = 4.0
) -> dict[str, float]:
    begin = time.monotonic()
    assert lease_processes.stop_set(lease.id, handle, patience=patience)
    return {"stopped": time.monotonic() - begin}


@pytest.fixture
def lease(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lease]:
    lease = Lease(f"j-test{time.time_ns()}.1")
    yield lease
    monkeypatch.undo()
    for process in lease_processes.scan({lease.id: None})[lease.id]:
        process.kill()
    for child in lease.children:
        assert child.stdout is not None
        child.kill()
        child.wait()
        child.stdout.close()


def test_marked_processes_are_found_and_others_are_not(lease: Lease) -> None:
    lease.run(READY + SLEEP, marked=False)
    first = lease.run(READY + SLEEP)
    second = lease.run(READY + SLEEP)
    assert lease.members() == [first.pid, second.pid]
    assert lease_processes.oldest([second, first]) == lease_processes.handle_of(first)


def test_descendants_with_a_cleaned_environment_belong_to_it(lease: Lease) -> None:
    child = f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {SLEEP!r}], "
    parent = lease.run(child + "env={}); print(p.pid, flush=True); p.wait()")
    cleaned = int(lease.line)
    assert lease.members() == [parent.pid, cleaned]
    child_of_it = psutil.Process(cleaned)
    assert lease_processes.lease_of(child_of_it) == lease.id
    assert lease_processes.stop_set(lease.id, None)
    assert not lease_processes.alive(psutil.Process(parent.pid))
    # It may be a zombie: the system decides when an orphan is reaped.
    assert not lease_processes.alive(child_of_it)


def test_a_handle_names_one_process_for_good(lease: Lease) -> None:
    process = lease.run(READY + SLEEP, marked=False)
    handle = lease_processes.handle_of(process)
    assert lease.members(handle) == [process.pid]
    recycled = Handle(pid=handle.pid, started_at=handle.started_at - 60)
    assert lease.members(recycled) == []
    assert lease_processes.find(recycled) is None


def test_a_process_may_have_a_name_that_is_no_text(lease: Lease) -> None:
    named = lease.run(UNREADABLE + READY + SLEEP)
    assert not lease_processes.catches(named.pid, signal.SIGUSR1)
    assert processes.memory(named.pid) > 0
    assert ProcessId.of(named.pid) is not None


def test_a_zombie_is_dead(lease: Lease) -> None:
    process = lease.run(READY)
    handle = lease_processes.handle_of(process)
    assert lease_processes.wait_gone([process], time.monotonic() + 60)
    assert process.status() == psutil.STATUS_ZOMBIE  # not reaped: its parent has to do it
    assert lease_processes.find(handle) is None
    assert lease.members(handle) == []


def test_an_empty_set_is_confirmed_at_once(lease: Lease) -> None:
    in_time(lambda: stopped(lease, Handle(pid=2**22 - 1, started_at=1.0)), {"stopped": 1})


def test_an_interrupt_comes_first_and_may_be_enough(lease: Lease) -> None:
    code = "import sys, signal, time; signal.signal(2, lambda *_: sys.exit(7)); "

    def polite() -> dict[str, float]:
        lease.run(code + READY + "time.sleep(600)")
        took = stopped(lease)
        assert lease.children[-1].wait() == 7
        return took

    in_time(polite, {"stopped": 1.5})


def test_processes_that_ignore_signals_are_killed_within_the_patience(lease: Lease) -> None:
    def deaf() -> dict[str, float]:
        lease.run(DEAF + READY + SLEEP)
        took = stopped(lease, patience=4.0)
        assert lease.children[-1].wait() == -signal.SIGKILL
        return took

    in_time(deaf, {"stopped": 5})


def test_children_started_during_the_stop_are_stopped_too(lease: Lease) -> None:
    heir = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {DEAF + SLEEP!r}])"
    code = f"import signal, sys; signal.signal(2, lambda *_: (exec({heir!r}), sys.exit())); "
    lease.run(code + READY + SLEEP)
    assert lease_processes.stop_set(lease.id, None, patience=4.0)
    assert lease.members() == []


def test_a_process_that_cannot_be_stopped_is_not_confirmed_dead(
    lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease.run(READY + SLEEP)
    monkeypatch.setattr(psutil.Process, "send_signal", lambda *_: None)
    assert not lease_processes.stop_set(lease.id, None, patience=0.3)


def test_a_restored_copy_neither_sees_nor_stops_what_the_original_runs(lease: Lease) -> None:
    running = lease.run(f"{READY}{SLEEP}", state="/srv/original")
    handle = lease_processes.handle_of(running)
    copy, original = Path("/srv/copy"), Path("/srv/original")
    assert lease_processes.find(handle, state=copy) is None
    assert lease_processes.scan({lease.id: handle}, state=copy) == {lease.id: []}
    assert lease_processes.stop_set(lease.id, handle, state=copy)
    assert lease_processes.find(handle, state=original) == running
    assert lease_processes.scan({lease.id: None}, state=original) == {lease.id: [running]}


def test_a_process_that_names_no_state_folder_is_still_its_lease_s(lease: Lease) -> None:
    running = lease.run(f"{READY}{SLEEP}")
    assert lease_processes.scan({lease.id: None}, state=Path("/srv/any")) == {lease.id: [running]}
