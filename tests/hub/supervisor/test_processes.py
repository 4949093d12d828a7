"""Identities of processes, the lock, stale parts, ports."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.config.settings import Settings
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.errors import PortBusy, StateInUse
from carrel.hub.supervisor import tcp_ports
from carrel.hub.supervisor.lock import holder, locked
from carrel.hub.supervisor.processes import ProcessId, leased, stop_all
from carrel.hub.supervisor.stale import stop_stale

STEPS = ((signal.SIGTERM, 0.3), (signal.SIGKILL, 10.0))


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    found = StateFolder.at(tmp_path / "state")
    found.create()
    return found


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        yield process
        process.kill()


def identity(process: subprocess.Popen[bytes]) -> ProcessId:
    found = ProcessId.of(process.pid)
    assert found is not None
    return found


class TestProcessId:
    def test_a_process_id_identifies_one_process(
        self, sleeper: subprocess.Popen[bytes], tmp_path: Path
    ) -> None:
        found = identity(sleeper)
        found.save(tmp_path / "note")
        assert ProcessId.load(tmp_path / "note") == found
        assert found.alive
        assert not replace(found, ticks=found.ticks - 1).alive
        assert not replace(found, boot="another boot").alive

    def test_a_zombie_is_not_alive(self) -> None:
        process = subprocess.Popen(["sleep", "600"])
        found = identity(process)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not found.alive
        process.wait()

    def test_a_recycled_pid_is_not_signalled(self, sleeper: subprocess.Popen[bytes]) -> None:
        replace(identity(sleeper), ticks=1).send(signal.SIGKILL)
        assert sleeper.poll() is None

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
    def test_a_damaged_pid_file_is_ignored(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "note").write_text(text)
        assert ProcessId.load(tmp_path / "note") is None
        assert ProcessId.load(tmp_path / "missing") is None


class TestStopping:
    def test_a_process_that_ignores_sigterm_is_killed(self) -> None:
        program = (
            "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
            "print('deaf', flush=True); signal.pause(); signal.pause()"
        )
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as deaf:
            assert deaf.stdout is not None
            deaf.stdout.readline()
            found = identity(deaf)
            assert stop_all(lambda: (found,) if found.alive else (), STEPS) == ()
            assert deaf.wait() == -signal.SIGKILL

    def test_processes_of_a_lease_are_found_by_their_environment(self, state: StateFolder) -> None:
        def start(**environment: str) -> subprocess.Popen[bytes]:
            return subprocess.Popen(["sleep", "600"], env={**os.environ, **environment})

        mine = start(CARREL_LEASE="s-aaaaaaaa.1", CARREL_STATE=str(state.root))
        others = (
            start(CARREL_LEASE="s-aaaaaaaa.1", CARREL_STATE=f"{state.root}2"),
            start(CARREL_LEASE="s-aaaaaaaa.1"),
            start(CARREL_STATE=str(state.root)),
        )
        try:
            assert [(one.process.pid, one.lease_id) for one in leased(state.root)] == [
                (mine.pid, "s-aaaaaaaa.1")
            ]
        finally:
            for process in (mine, *others):
                process.kill()
                process.wait()


class TestLock:
    def test_a_folder_in_use_is_refused_and_its_holder_named(self, state: StateFolder) -> None:
        with (
            locked(state),
            pytest.raises(StateInUse, match=rf"in use by process {os.getpid()} \(.*python"),
            locked(state),
        ):
            pytest.fail("it was locked twice")
        assert holder(state) is None
        with locked(state):
            found = holder(state)
            assert found is not None
            assert found.pid == os.getpid()

    def test_a_killed_process_releases_the_lock(self, state: StateFolder) -> None:
        program = (
            "import sys\n"
            "from carrel.hub.config.settings import StateFolder\n"
            "from carrel.hub.supervisor.lock import locked\n"
            "with locked(StateFolder.at(sys.argv[1])):\n"
            "    print('held', flush=True)\n"
            "    sys.stdin.read()\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", program, str(state.root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as other:
            assert other.stdout is not None
            other.stdout.readline()
            with pytest.raises(StateInUse, match=f"process {other.pid}"), locked(state):
                pytest.fail("it was locked twice")
            other.kill()
        assert holder(state) is None
        with locked(state):
            pass


class TestStale:
    def test_processes_of_a_dead_supervisor_are_stopped(
        self, state: StateFolder, sleeper: subprocess.Popen[bytes]
    ) -> None:
        identity(sleeper).save(state.run / "hub.json")
        said: list[str] = []
        assert stop_stale(state, said.append) == ("hub",)
        assert sleeper.wait(60) == -signal.SIGTERM
        assert said == [f"Stopping the hub of an earlier start (process {sleeper.pid})."]
        assert stop_stale(state, said.append) == ()

    def test_a_process_with_a_recycled_pid_is_not_stopped(
        self, state: StateFolder, sleeper: subprocess.Popen[bytes]
    ) -> None:
        replace(identity(sleeper), ticks=1).save(state.run / "hub.json")
        assert stop_stale(state, pytest.fail) == ()
        assert sleeper.poll() is None
        assert not (state.run / "hub.json").exists()


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


class TestPorts:
    def test_ports_are_chosen_once_and_kept(self) -> None:
        first = tcp_ports.settle(Settings(port=0), pytest.fail)
        chosen = {first.port, first.hub_port, first.service_port, first.proxy_api_port}
        assert len(chosen) == 4
        assert 0 not in chosen
        assert tcp_ports.settle(first, pytest.fail) == first

    def test_a_busy_public_port_is_refused_and_its_user_named(self, taken: int) -> None:
        with pytest.raises(
            PortBusy, match=rf"Port {taken} on 127.0.0.1 is taken by process {os.getpid()} \("
        ):
            tcp_ports.settle(Settings(port=taken), pytest.fail)

    def test_a_busy_internal_port_is_replaced_with_a_message(
        self, taken: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hasty = tuple(replace(one, patience=0.0) for one in tcp_ports.INTERNAL)
        monkeypatch.setattr(tcp_ports, "INTERNAL", hasty)
        first = tcp_ports.settle(Settings(port=0), pytest.fail)
        said: list[str] = []
        second = tcp_ports.settle(first.changed(service_port=taken), said.append)
        assert second.service_port not in {taken, *(first.port, first.hub_port)}
        assert second == first.changed(service_port=second.service_port)
        assert len(said) == 1
        assert said[0].startswith(f"Port {taken} of the Carrel service is in use by process")

    def test_a_port_that_comes_free_soon_is_waited_for(self) -> None:
        first = tcp_ports.settle(Settings(port=0), pytest.fail)
        program = (
            "import socket, sys\n"
            f"with socket.create_server(('127.0.0.1', {first.service_port})):\n"
            "    print('taken', flush=True)\n"
            "    sys.stdin.read(1)\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as other:
            assert other.stdout is not None
            assert other.stdin is not None
            other.stdout.readline()
            other.stdin.close()
            other.stdin = None
            assert tcp_ports.settle(first, pytest.fail) == first
