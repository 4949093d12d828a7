"""Sessions on leases, in a real JupyterHub against a scripted service."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from carrel.hub.client import login
from carrel.hub.errors import Forbidden
from carrel.spawners.processes.identity import environment_of
from carrel.spawners.processes.lease_processes import scan, wait_gone

from ...fake_service import FakeService, eventually
from ...promises import in_time
from ..hub_process import HubProcess, kill_lease

SLOW_TO_END = """
import asyncio

class SlowToEnd(LocalSession):
    async def kill_started(self):
        await asyncio.sleep(2)
        await super().kill_started()

c.JupyterHub.spawner_class = SlowToEnd
"""


@pytest.fixture(scope="module")
def service() -> Iterator[FakeService]:
    with FakeService() as fake:
        fake.on_stop = lambda request: stop_like_the_backend(fake, request)
        yield fake


@pytest.fixture(scope="module")
def hub(service: FakeService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    hub = HubProcess(tmp_path_factory.mktemp("hub"), service)
    yield hub
    hub.stop()
    for request in service.requests.values():
        if request.get("lease"):
            kill_lease(request["lease"]["id"])


def stop_like_the_backend(fake: FakeService, request: dict[str, Any]) -> None:
    """Stop the processes of a stopping request, as the service's backend does."""

    def work() -> None:
        if lease := request.get("lease"):
            kill_lease(lease["id"])
            eventually(lambda: not scan({lease["id"]: None})[lease["id"]])
        fake.end(request)

    threading.Thread(target=work, daemon=True).start()


def of(service: FakeService, owner: str) -> dict[str, Any]:
    """Return the newest request of a user."""
    return [r for r in service.requests.values() if r["owner"] == owner][-1]


def process_of(service: FakeService, owner: str) -> psutil.Process:
    lease = of(service, owner)["lease"]["id"]
    return scan({lease: None})[lease][0]


def start_with_a_free_device(hub: HubProcess, service: FakeService, user: str) -> None:
    service.free = 1
    hub.add_user(user)
    assert hub.spawn(user, options={"devices": 1, "hours": 2}).status_code == 202
    eventually(lambda: hub.ready(user))


def test_a_session_gets_its_lease_and_no_secrets_of_the_hub(
    hub: HubProcess, service: FakeService
) -> None:
    start_with_a_free_device(hub, service, "anna")
    request = of(service, "anna")
    env = environment_of(process_of(service, "anna").pid)
    wanted = {
        "CUDA_VISIBLE_DEVICES": "SIM-1",
        "NVIDIA_VISIBLE_DEVICES": "void",
        "CARREL_LEASE": request["lease"]["id"],
        "CARREL_REQUEST": request["id"],
        "CARREL_STATE": str(hub.state),
        "CARREL_URL": "http://127.0.0.1:8000/services/carrel",
        "CARREL_PUBLIC_URL": "https://carrel.example.org/services/carrel",
        "HOME": str(hub.state / "homes" / "anna"),
    }
    assert {name: env[name] for name in wanted} == wanted
    assert env["CARREL_DEVICES"].endswith("(simulated)")
    assert not {"CARREL_TEST_SECRET", "CONFIGPROXY_AUTH_TOKEN"} & set(env)
    assert "the-hubs-token" not in env.values()
    assert request["state"] == "running"
    assert service.called("PUT", "sessions")[0] == {
        "owner": "anna", "server_name": "", "options": {"devices": 1, "hours": 2.0},
    }  # fmt: skip  # grouped by meaning
    assert (hub.state / "logs" / "anna.log").exists()


def test_stopping_a_server_ends_its_request_and_its_processes(
    hub: HubProcess, service: FakeService
) -> None:
    start_with_a_free_device(hub, service, "stopper")
    process = process_of(service, "stopper")
    hub.cancel("stopper")
    eventually(lambda: of(service, "stopper")["ended"])
    eventually(lambda: not hub.server("stopper").get("ready"))
    assert wait_gone([process], time.monotonic() + 60)
    assert of(service, "stopper")["cause"]["code"] == "stopped"


def test_a_session_is_stopped_while_the_service_is_down(
    hub: HubProcess, service: FakeService
) -> None:
    start_with_a_free_device(hub, service, "lonely")
    process = process_of(service, "lonely")
    service.close()
    try:
        hub.cancel("lonely")
        eventually(lambda: not process.is_running())
    finally:
        service.open()


def test_a_session_waits_for_a_full_pool_with_a_reason_and_starts_by_itself(
    hub: HubProcess, service: FakeService
) -> None:
    people = iter(("bert", "bert2", "bert3"))
    in_time(lambda: _wait_and_start(hub, service, next(people)), {"from grant to process": 1})


def _wait_and_start(hub: HubProcess, service: FakeService, user: str) -> dict[str, float]:
    service.free = 0
    hub.add_user(user)
    assert hub.spawn(user).status_code == 202
    told: list[dict[str, Any]] = []
    reader = threading.Thread(target=lambda: told.extend(hub.progress(user)), daemon=True)
    reader.start()
    service.wait_for(lambda: [r for r in service.requests.values() if r["owner"] == user])
    id_ = of(service, user)["id"]
    service.wait_for(lambda: ("GET", f"requests/{id_}/events", None) in service.calls)
    wait = {"place": 1, "ahead": 0, "reason": "no_free_device"}
    service.change(id_, wait=wait | {"sentence": "Queued at position 1. <b>All</b> are in use."})
    eventually(lambda: any("are in use" in str(each) for each in told))
    granted = time.monotonic()
    service.grant(id_)
    service.wait_for(lambda: of(service, user)["state"] == "running")
    took = time.monotonic() - granted
    reader.join(60)
    messages = [each["message"] for each in told]
    assert len(messages) == len(set(messages)), "a message is told once"
    assert told[-1]["ready"]
    return {"from grant to process": took}


def test_a_queued_start_survives_a_restart_of_the_service(
    hub: HubProcess, service: FakeService
) -> None:
    service.free = 0
    hub.add_user("carl")
    hub.spawn("carl")
    service.wait_for(lambda: any(r["owner"] == "carl" for r in service.requests.values()))
    service.close()
    service.open()
    service.grant(of(service, "carl")["id"])
    eventually(lambda: hub.ready("carl"))
    assert len([r for r in service.requests.values() if r["owner"] == "carl"]) == 1


def test_case_20_ten_refusals_in_a_row_leave_the_hub_up(
    hub: HubProcess, service: FakeService
) -> None:
    hub.add_user("dora")
    service.refuse = (409, {
        "code": "over_maximum", "message": "cs101 lends at most 2 devices to one member.",
        "accepted": "Ask for 2 or fewer.",
    })  # fmt: skip  # grouped by meaning
    try:
        for _ in range(10):
            hub.spawn("dora", options={"devices": 99})
            eventually(lambda: not hub.server("dora").get("pending"))
            said = list(hub.progress("dora"))[-1]
            assert said["failed"]
            assert "at most 2 devices to one member. Ask for 2 or fewer." in said["message"]
    finally:
        service.refuse = None
    assert hub.process.poll() is None
    start_with_a_free_device(hub, service, "dora2")


def test_a_spawner_ends_without_its_request_when_the_place_is_kept(
    hub: HubProcess, service: FakeService
) -> None:
    """Its owner works on CPU meanwhile; another server claims the device later."""
    service.free = 0
    hub.add_user("keeper")
    hub.spawn("keeper", options={"devices": 1})
    service.wait_for(lambda: [r for r in service.requests.values() if r["owner"] == "keeper"])
    waiting = of(service, "keeper")["id"]
    service.change(waiting, server_name="gpu", claim=True)
    eventually(lambda: not hub.server("keeper").get("pending"))
    assert "You keep your place in the queue" in list(hub.progress("keeper"))[-1]["message"]
    assert not service.requests[waiting]["ended"]
    assert service.called("POST", f"requests/{waiting}/stop") == []
    service.free = 1
    hub.spawn("keeper", options={"devices": 0})
    eventually(lambda: hub.ready("keeper"))
    assert of(service, "keeper")["id"] != waiting


@pytest.mark.parametrize(
    "options",
    [
        {"devices": "two"},
        {"devices": True},
        {"devices": 1.5},
        {"hours": None},
        {"hours": float("inf")},
        {"group": ["cs101"]},
        {"group": "\ud800"},
        {"group": "x" * 65},
        {"devices": 1, "colour": "mine"},
        {"devices": 1, "image": 7},
        {"\ud800<script>": 1},
    ],
    ids=ascii,
)
def test_case_29_invalid_options_are_refused_with_what_is_accepted(
    hub: HubProcess, service: FakeService, options: dict[str, Any]
) -> None:
    if "emil" not in [u["name"] for u in hub.http.get("users").json()]:
        hub.add_user("emil")
    asked = len(service.called("PUT", "sessions"))
    # json.dumps of the standard library, because httpx refuses some of these values.
    import json  # noqa: PLC0415

    hub.http.post(
        "users/emil/server",
        content=json.dumps({"user_options": options}).encode(),
        headers={"Content-Type": "application/json"},
    )
    eventually(lambda: not hub.server("emil").get("pending"))
    said = list(hub.progress("emil"))[-1]
    assert "Accepted options: devices (a whole number" in said["message"]
    assert "<script>" not in said.get("html_message", "")
    assert len(service.called("PUT", "sessions")) == asked


def test_cancelling_a_queued_start_withdraws_the_request(
    hub: HubProcess, service: FakeService
) -> None:
    service.free = 0
    hub.add_user("fred")
    hub.spawn("fred")
    service.wait_for(lambda: any(r["owner"] == "fred" for r in service.requests.values()))
    assert hub.cancel("fred").status_code in {202, 204}
    service.wait_for(lambda: of(service, "fred")["ended"])
    assert of(service, "fred")["cause"]["code"] == "cancelled"
    eventually(lambda: not hub.server("fred").get("pending"))
    # The next start is a new request, untouched by the withdrawal.
    service.free = 1
    hub.spawn("fred")
    eventually(lambda: hub.ready("fred"))
    assert of(service, "fred")["state"] == "running"


def test_a_request_cancelled_at_the_desk_ends_the_start_with_its_cause(
    hub: HubProcess, service: FakeService
) -> None:
    service.free = 0
    hub.add_user("gerd")
    hub.spawn("gerd")
    service.wait_for(lambda: any(r["owner"] == "gerd" for r in service.requests.values()))
    cause = {"code": "cancelled", "message": "gerd cancelled it."}
    service.change(of(service, "gerd")["id"], state="cancelled", ended=True, cause=cause)
    eventually(lambda: not hub.server("gerd").get("pending"))
    assert "gerd cancelled it." in list(hub.progress("gerd"))[-1]["message"]


def test_a_start_waits_for_a_previous_session_that_is_stopping(
    hub: HubProcess, service: FakeService
) -> None:
    service.free = 1
    old = service.add("s-old", kind="session", owner="hans", server_name="", state="stopping")
    hub.add_user("hans")
    hub.spawn("hans")
    service.wait_for(lambda: ("GET", "requests/s-old/events", None) in service.calls)
    service.end(old)
    eventually(lambda: hub.ready("hans"))
    assert of(service, "hans")["id"] != "s-old"


def test_case_10_a_lost_lease_is_requested_again(hub: HubProcess, service: FakeService) -> None:
    service.conflicts = ["launch"]
    start_with_a_free_device(hub, service, "lena")
    assert of(service, "lena")["lease"]["epoch"] == 2
    lease = of(service, "lena")["lease"]["id"]
    assert environment_of(process_of(service, "lena").pid)["CARREL_LEASE"] == lease


def test_a_request_cancelled_between_grant_and_launch_stays_cancelled(
    hub: HubProcess, service: FakeService
) -> None:
    service.conflicts = ["cancel"]
    service.free = 1
    hub.add_user("nora")
    hub.spawn("nora")
    eventually(lambda: not hub.server("nora").get("pending"))
    assert not hub.ready("nora")
    assert len([r for r in service.requests.values() if r["owner"] == "nora"]) == 1


def test_case_10_a_server_on_a_stale_lease_is_killed(hub: HubProcess, service: FakeService) -> None:
    service.conflicts = ["started"]
    service.free = 1
    hub.add_user("mona")
    hub.spawn("mona")
    eventually(lambda: not hub.server("mona").get("pending"))
    assert "Another session has it." in list(hub.progress("mona"))[-1]["message"]
    lease = of(service, "mona")["lease"]["id"]
    assert not scan({lease: None})[lease]


def test_case_16_a_killed_server_is_noticed_within_five_seconds(
    hub: HubProcess, service: FakeService
) -> None:
    people = iter(("ida", "ida2", "ida3"))

    def killed() -> dict[str, float]:
        user = next(people)
        start_with_a_free_device(hub, service, user)
        process_of(service, user).send_signal(signal.SIGKILL)
        began = time.monotonic()
        eventually(lambda: not hub.ready(user))
        return {"noticed": time.monotonic() - began}

    in_time(killed, {"noticed": 5})


def test_the_command_line_signs_in_with_a_password_at_a_real_hub(
    hub: HubProcess, service: FakeService
) -> None:
    service.hub_port = hub.port
    site = f"{service.site}hub/home"
    with pytest.raises(Forbidden, match="Invalid username or password"):
        login(site, "Nora@Example", "wrong")
    found = login(site, "Nora@Example", "secret")
    assert (found.url, found.user) == (service.site, "nora@example")
    token = hub.http.get("users/nora@example/tokens").json()["api_tokens"][-1]
    # The hub adds the name of the user; the token has nothing else.
    granted = {s for s in token["scopes"] if not s.startswith(("read:users:", "access:"))}
    assert granted == {"custom:carrel:read", "custom:carrel:submit"}
    assert token["note"].startswith("carrel command line on ")
    assert service.headers[-1]["Authorization"] == f"token {found.token}"


def test_named_servers_of_one_person_have_requests_of_their_own(
    hub: HubProcess, service: FakeService
) -> None:
    hub.add_user("jan")
    for name in ("one", "two"):
        service.free = 1
        hub.spawn("jan", name)
        eventually(lambda name=name: hub.ready("jan", name))
    found = [r for r in service.requests.values() if r["owner"] == "jan"]
    assert [(r["server_name"], r["state"]) for r in found] == [
        ("one", "running"),
        ("two", "running"),
    ]
    assert (hub.state / "logs" / "jan--two.log").exists()


def test_case_30_names_that_look_alike_have_different_homes(
    hub: HubProcess, service: FakeService
) -> None:
    homes = set()
    for user in ("kim x", "kim-x", "kim.x"):
        start_with_a_free_device(hub, service, user)
        homes.add(environment_of(process_of(service, user).pid)["HOME"])
    assert len(homes) == 3


def test_a_session_whose_home_is_no_folder_fails_with_a_sentence(
    hub: HubProcess, service: FakeService
) -> None:
    hub.add_user("homeless")
    (hub.state / "homes").mkdir(exist_ok=True)
    (hub.state / "homes" / "homeless").write_text("")
    service.free += 1
    hub.spawn("homeless", options={"devices": 0})
    eventually(lambda: not hub.server("homeless").get("pending"))
    said = list(hub.progress("homeless"))[-1]
    assert said["failed"]
    assert "The home of homeless cannot be used: " in said["message"]
    assert "is not a folder. Ask an administrator to restore it." in said["message"]


def test_case_30_a_server_is_not_taken_for_another_users_server(
    hub: HubProcess, service: FakeService
) -> None:
    """JupyterHub itself calls both OAuth clients jupyterhub-user-lea-x-y, and fails."""
    clients = set()
    for user, name in (("lea-x", "y"), ("lea", "x-y")):
        service.free = 1
        hub.add_user(user)
        hub.spawn(user, name)
        eventually(lambda user=user, name=name: hub.ready(user, name))
        (found,) = [r for r in service.requests.values() if r["owner"] == user]
        (process, *_) = scan({found["lease"]["id"]: None})[found["lease"]["id"]]
        clients.add(environment_of(process.pid)["JUPYTERHUB_CLIENT_ID"])
    assert len(clients) == 2


class TestOwnHub:
    """Tests that kill the hub, or need another command."""

    @pytest.fixture
    def service(self) -> Iterator[FakeService]:
        with FakeService() as fake:
            fake.on_stop = lambda request: stop_like_the_backend(fake, request)
            yield fake
            for request in fake.requests.values():
                if request.get("lease"):
                    kill_lease(request["lease"]["id"])

    def test_case_17_the_reason_of_an_early_death_is_shown_within_three_seconds(
        self, tmp_path: Path, service: FakeService
    ) -> None:
        script = "import sys; print('no module <named> numpy', file=sys.stderr); sys.exit(3)"
        hub = HubProcess(tmp_path, service, cmd=[sys.executable, "-c", script])
        people = iter(("anna", "bert", "carl"))

        def early_death() -> dict[str, float]:
            user = next(people)
            service.free = 1
            hub.add_user(user)
            began = time.monotonic()
            hub.spawn(user)
            eventually(lambda: not hub.server(user).get("pending"))
            said = list(hub.progress(user))[-1]
            took = time.monotonic() - began
            assert "its server ended with status 3" in said["message"]
            assert "no module &lt;named&gt; numpy" in said["html_message"]
            told = service.called("POST", f"requests/{of(service, user)['id']}/stop")
            assert told[0]["cause"] == "start_failed"
            assert "no module <named> numpy" in told[0]["details"]
            return {"shown": took}

        try:
            in_time(early_death, {"shown": 3})
        finally:
            hub.stop()

    def test_case_14_a_running_session_survives_a_restart_of_the_hub(
        self, tmp_path: Path, service: FakeService
    ) -> None:
        hub = HubProcess(tmp_path, service)
        start_with_a_free_device(hub, service, "anna")
        process = process_of(service, "anna")
        hub.kill()
        hub.start()
        try:
            eventually(lambda: hub.ready("anna"))
            assert process.is_running()
            assert len(service.requests) == 1
            # The process is an orphan now, known only by its environment variables.
            os.kill(process.pid, signal.SIGKILL)
            # Sooner than JupyterHub's own poll, twice a minute.
            eventually(lambda: not hub.ready("anna"), 20)
        finally:
            hub.stop()

    @pytest.mark.slow
    def test_case_14_a_hub_killed_during_a_queued_start_finds_the_request_again(
        self, tmp_path: Path, service: FakeService
    ) -> None:
        service.free = 0
        hub = HubProcess(tmp_path, service)
        hub.add_user("anna")
        hub.spawn("anna")
        service.wait_for(lambda: service.requests)
        hub.kill()
        hub.start()
        try:
            hub.spawn("anna")
            service.grant(of(service, "anna")["id"])
            eventually(lambda: hub.ready("anna"))
            assert len(service.requests) == 1
        finally:
            hub.stop()

    @pytest.mark.slow  # faults/test_kills.py kills the hub of an installation at that moment
    def test_case_2_a_hub_killed_while_a_server_starts_finds_it_again(
        self, tmp_path: Path, service: FakeService
    ) -> None:
        slow = "import time; time.sleep(4); from jupyterhub.tests.mocksu import main; main()"
        hub = HubProcess(tmp_path, service, cmd=[sys.executable, "-c", slow])
        service.free = 1
        hub.add_user("anna")
        hub.spawn("anna")
        service.wait_for(lambda: service.requests and of(service, "anna")["state"] == "running")
        process = process_of(service, "anna")
        hub.kill()
        hub.start()
        try:
            eventually(lambda: hub.ready("anna"))
            assert [process] == scan({of(service, "anna")["lease"]["id"]: None}).popitem()[1]
        finally:
            hub.stop()

    def test_a_hub_that_shuts_down_keeps_queued_requests(
        self, tmp_path: Path, service: FakeService
    ) -> None:
        service.free = 0
        hub = HubProcess(tmp_path, service)
        hub.add_user("anna")
        hub.spawn("anna")
        service.wait_for(lambda: service.requests)
        hub.stop()
        assert of(service, "anna")["state"] == "queued"

    @pytest.mark.parametrize(
        "reported",
        [
            pytest.param(True, id="reported"),
            pytest.param(False, id="not reported", marks=pytest.mark.slow),
        ],
    )
    def test_case_2_a_server_unknown_to_the_hub_is_adopted(
        self, tmp_path: Path, service: FakeService, reported: bool
    ) -> None:
        hub = HubProcess(tmp_path, service)
        start_with_a_free_device(hub, service, "anna")
        process = process_of(service, "anna")
        hub.kill()
        forget_servers(tmp_path / "jupyterhub.sqlite")
        if not reported:
            lease = of(service, "anna")["lease"] | {"pid": None, "started_at": None}
            service.change(of(service, "anna")["id"], state="starting", lease=lease)
        hub.start()
        try:
            hub.spawn("anna")
            eventually(lambda: hub.ready("anna"))
            lease = of(service, "anna")["lease"]["id"]
            assert [p.pid for p in scan({lease: None})[lease]] == [process.pid]
            token = environment_of(process.pid)["JUPYTERHUB_API_TOKEN"]
            headers = {"Authorization": f"token {token}"}
            assert hub.http.get("user", headers=headers).json()["name"] == "anna"
            hub.cancel("anna")
            eventually(lambda: not process.is_running())
        finally:
            hub.stop()

    def test_a_server_that_died_with_its_hub_is_replaced(
        self, tmp_path: Path, service: FakeService
    ) -> None:
        hub = HubProcess(tmp_path, service)
        start_with_a_free_device(hub, service, "anna")
        first = of(service, "anna")
        process = process_of(service, "anna")
        hub.kill()
        process.kill()
        hub.start()
        try:
            service.free = 1
            hub.spawn("anna")
            eventually(lambda: hub.ready("anna"))
            assert service.requests[first["id"]]["cause"]["code"] == "server_died"
            assert of(service, "anna")["id"] != first["id"]
        finally:
            hub.stop()

    def test_a_start_that_takes_too_long_withdraws_its_request(
        self, tmp_path: Path, service: FakeService
    ) -> None:
        service.free = 0
        hub = HubProcess(tmp_path, service, start_timeout=8)
        hub.add_user("anna")
        hub.spawn("anna")
        try:
            service.wait_for(lambda: service.requests and of(service, "anna")["ended"])
            assert of(service, "anna")["cause"]["code"] == "cancelled"
        finally:
            hub.stop()

    @pytest.mark.slow
    def test_a_start_that_is_slow_to_end_once_cancelled_leaves_no_server(
        self, tmp_path: Path, service: FakeService
    ) -> None:
        service.free = 1
        never = [sys.executable, "-c", "import time; time.sleep(600)"]
        hub = HubProcess(tmp_path, service, cmd=never, more=SLOW_TO_END)
        hub.add_user("anna")
        try:
            hub.spawn("anna")
            service.wait_for(lambda: service.requests and of(service, "anna")["lease"])
            eventually(lambda: of(service, "anna")["lease"].get("pid"))
            # JupyterHub waits a second, and gives up.
            assert hub.cancel("anna").status_code == 500
            eventually(lambda: hub.server("anna")["stopped"])
            assert of(service, "anna")["cause"]["code"] == "cancelled"
        finally:
            hub.stop()


def forget_servers(database: Path) -> None:
    """Change the hub's database to its state after a kill between fork and commit."""
    import sqlite3  # noqa: PLC0415

    with sqlite3.connect(database) as db:
        db.execute("UPDATE spawners SET state = '{}'")
