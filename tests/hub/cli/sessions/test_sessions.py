"""``carrel session …`` and ``carrel quote``."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from carrel.hub.cli.common import display
from carrel.hub.cli.sessions import sessions
from carrel.hub.client.transport import connection
from carrel.hub.schemas import RequestOut

from ....fake_service import PREFIX, FakeService
from ..invocation import Carrel, carrel, service

__all__ = ["carrel", "service"]


def session(service: FakeService, name: str = "", **fields: Any) -> dict[str, Any]:
    id_ = f"s-{name or 'default'}"
    return service.add(id_, **({"kind": "session", "server_name": name} | fields))


def answers(service: FakeService, path: str, answer: dict[str, Any]) -> list[Any]:
    """The service's next answers to a POST; the bodies that were sent are collected."""
    sent: list[Any] = []

    def answer_it(handler: Any) -> None:
        sent.append(json.loads(handler.raw) if handler.raw else None)
        handler.say(202, answer)

    service.extra["POST", f"{PREFIX}/{path}"] = answer_it
    return sent


def test_a_session_sends_the_given_options(service: FakeService, carrel: Carrel) -> None:
    made = session(service, "lab", wait={
        "place": 2, "ahead": 1, "reason": "behind_others",
        "sentence": "Queued at position 2. Behind 1.",
    })  # fmt: skip  # grouped by meaning
    sent = answers(service, "sessions/lab", made)
    done = carrel("session", "start", "--devices", "1", "--hours", "2", "--name", "lab")
    assert done.exit_code == 0, done.output
    assert sent == [{"devices": 1, "hours": 2.0, "group": ""}]
    assert done.output == (
        f"s-lab: queued. Queued at position 2. Behind 1.\nIt starts automatically at "
        f"{service.site}user/anna/lab/\n"
    )


def test_open_prints_the_public_address(
    service: FakeService, carrel: Carrel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container the service has another address than outside."""
    session(service, "lab", state="running")
    monkeypatch.setenv("CARREL_PUBLIC_URL", "https://carrel.example.org/services/carrel")
    done = carrel("session", "open", "lab")
    assert done.output == "https://carrel.example.org/user/anna/lab/\n"


def test_a_held_session_is_started_with_claim(service: FakeService, carrel: Carrel) -> None:
    sent = answers(service, "sessions/-", session(service, "gpu", claim=True))
    done = carrel("session", "start", "--devices", "1", "--claim")
    assert sent == [{"devices": 1, "hours": 1.0, "group": "", "claim": True}]
    assert "Its device will be held for you" in done.output


def test_a_session_for_a_model_is_requested(service: FakeService, carrel: Carrel) -> None:
    sent = answers(service, "sessions/-", session(service))
    asked = ("session", "start", "--devices", "1", "--model")
    carrel(*asked, "NVIDIA H200")
    carrel(*asked, "any")
    same = {"devices": 1, "hours": 1.0, "group": ""}
    assert sent == [same | {"model": "NVIDIA H200"}, same]


def test_waiting_prints_the_position_and_then_the_address(
    service: FakeService, carrel: Carrel, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = {"place": 1, "ahead": 0, "reason": "no_free_device",
            "sentence": "Queued at position 1. Too few.",
            "expected_at": time.time() + 1800}  # fmt: skip  # grouped by meaning
    answers(service, "sessions/-", session(service, wait=wait))
    change = display.change

    def told(item: RequestOut, now: float) -> str:
        """Grant the device once the position was printed."""
        if item.wait:
            service.change("s-default", state="running", wait=None)
        return change(item, now)

    monkeypatch.setattr(display, "change", told)
    done = carrel("session", "start", "--wait")
    assert done.exit_code == 0, done.output
    first, *_, last = done.output.splitlines()
    assert "queued, position 1  Queued at position 1. Too few. Expected start: " in first
    assert last == f"s-default: {service.site}user/anna/"


def test_waiting_with_claim_ends_when_the_device_is_held(
    service: FakeService, carrel: Carrel
) -> None:
    until = time.time() + 300
    answers(service, "sessions/-", session(service, "gpu", state="granted", claim_by=until))
    done = carrel("session", "start", "--devices", "1", "--claim", "--wait")
    assert done.exit_code == 0
    assert "its device is held for you for" in done.output
    assert "carrel session claim gpu" in done.output


def test_ctrl_c_keeps_the_position(
    service: FakeService, carrel: Carrel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    answers(service, "sessions/-", session(service))
    monkeypatch.setattr(sessions, "wait_for_session", interrupted)
    done = carrel("session", "start", "--wait")
    assert done.exit_code == 130
    assert "s-default keeps its position in the queue" in done.stderr
    assert "carrel session stop -" in done.stderr
    assert not service.called("DELETE", "requests/s-default")


def test_a_session_that_is_refused_while_waiting_is_an_exit_status(
    service: FakeService, carrel: Carrel
) -> None:
    cause = {"code": "unclaimed", "message": "The session was not claimed."}
    answers(service, "sessions/-", session(service, state="cancelled", ended=True, cause=cause))
    done = carrel("session", "start", "--wait")
    assert done.exit_code == 3
    assert "The session was not claimed." in done.output


@pytest.mark.parametrize("called", ["-", "default", "s-default"])
def test_sessions_are_called_by_name_or_id(
    service: FakeService, carrel: Carrel, called: str
) -> None:
    session(service)
    session(service, "lab")
    assert carrel("session", "stop", called).exit_code == 0
    assert service.requests["s-default"]["ended"]
    assert service.requests["s-lab"]["state"] == "queued"


def test_an_unknown_name_lists_the_known_ones(service: FakeService, carrel: Carrel) -> None:
    session(service)
    session(service, "lab")
    done = carrel("session", "stop", "thesis")
    assert done.exit_code == 1
    assert "You have no queued or running session 'thesis'" in done.stderr
    assert "- (default), lab" in done.stderr


def test_claim_keep_and_extend_call_the_service(service: FakeService, carrel: Carrel) -> None:
    found = session(service, "gpu", state="running", ends_by=time.time() + 7200)
    answers(service, "requests/s-gpu/claim", found)
    answers(service, "requests/s-gpu/keep-place", found | {"claim": True})
    sent = answers(service, "requests/s-gpu/extend", found)
    assert carrel("session", "claim", "gpu").output == f"s-gpu: {service.site}user/anna/gpu/\n"
    kept = carrel("session", "keep-place", "gpu").output
    assert kept == (
        f"s-gpu keeps its position as the session gpu.\nThe CPU session: {service.site}user/anna/\n"
    )
    extended = carrel("session", "extend", "gpu", "--time", "30m")
    assert sent == [{"seconds": 1800, "seen_seconds": 3600}]
    assert "s-gpu runs until" in extended.output
    assert json.loads(carrel("session", "extend", "gpu", "--json").stdout)["id"] == "s-gpu"


def test_a_lost_response_extends_once(service: FakeService, carrel: Carrel) -> None:
    found = session(service, "gpu", state="running", ends_by=time.time() + 7200)
    sent: list[Any] = []

    def answer(handler: Any) -> None:
        sent.append(json.loads(handler.raw))
        if len(sent) == 1:
            handler.close_connection = True
        else:
            handler.say(200, found)

    service.extra["POST", f"{PREFIX}/requests/s-gpu/extend"] = answer
    assert carrel("session", "extend", "gpu").exit_code == 0
    assert sent == 2 * [{"seconds": 3600, "seen_seconds": 3600}]


def test_without_a_response_it_says_how_to_retry_safely(
    service: FakeService, carrel: Carrel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "RETRY_SECONDS", 0.5)
    ends_by = float(int(time.time()) + 7200)
    found = session(service, "gpu", state="running", ends_by=ends_by)
    path = ("POST", f"{PREFIX}/requests/s-gpu/extend")
    service.extra[path] = lambda handler: handler.say(503, {})
    lost = carrel("session", "extend", "gpu")
    assert lost.exit_code != 0
    command = lost.stderr.rpartition("carrel ")[2].split()
    assert command[:3] == ["session", "extend", "s-gpu"]

    sent = answers(service, "requests/s-gpu/extend", found)
    carrel(*command)
    assert sent == [{"seconds": 3600, "seen_seconds": 3600}], "it had not been done"
    session(service, "gpu", state="running", ends_by=ends_by + 3600, seconds=7200)
    assert "s-gpu runs until" in carrel(*command).output
    assert len(sent) == 1, "it had been done"


def test_a_warned_session_is_kept(service: FakeService, carrel: Carrel) -> None:
    warning = {
        "stops_at": time.time() + 300,
        "message": "This session has been idle for 30 min and holds 1 device.",
        "seen": ["Its kernel ran no cell."],
    }
    found = session(service, "gpu", state="running", warning=warning)
    assert "running, idle" in carrel("ps").output
    shown = carrel("show", "s-gpu").output
    assert "Warning:" in shown
    assert "or it is kept. Its kernel ran no cell." in shown
    answers(service, "requests/s-gpu/keep", found | {"warning": None})
    kept = carrel("session", "keep", "gpu").output
    assert kept == "s-gpu is kept; its idle time restarts.\n"
    assert json.loads(carrel("session", "keep", "gpu", "--json").stdout)["warning"] is None


@pytest.mark.parametrize(
    ("kind", "shown"), [("time_limit", "running, ends soon"), ("drain", "running, to be stopped")]
)
def test_the_list_shows_what_ends_a_session(
    service: FakeService, carrel: Carrel, kind: str, shown: str
) -> None:
    warning = {"kind": kind, "stops_at": time.time() + 300, "message": "It ends.", "final": True}
    session(service, "gpu", state="running", warning=warning)
    assert shown in carrel("ps").output


def test_the_list_shows_held_sessions(service: FakeService, carrel: Carrel) -> None:
    assert "carrel session start" in carrel("session", "ls").output
    session(service, "gpu", state="granted", claim_by=time.time() + 300)
    service.add("j-1")
    done = carrel("session", "ls").output
    assert "session gpu" in done
    assert "carrel session claim gpu" in done
    assert "j-1" not in done
    listed = json.loads(carrel("session", "ls", "--json").stdout)
    assert [each["id"] for each in listed["requests"]] == ["s-gpu"]


def test_open_prints_the_address(service: FakeService, carrel: Carrel) -> None:
    session(service, "lab")
    done = carrel("session", "open", "lab")
    assert done.stdout == f"{service.site}user/anna/lab/\n"
    assert "waiting in the queue" in done.stderr
    opened = json.loads(carrel("session", "open", "lab", "--json").stdout)
    assert opened == {
        "id": "s-lab", "state": "queued", "url": f"{service.site}user/anna/lab/",
    }  # fmt: skip  # grouped by meaning


def test_a_quote_compares_choices(service: FakeService, carrel: Carrel) -> None:
    found = {"quotes": [
        {"admitted": True, "sentence": "Starts immediately.", "devices": 0},
        {"admitted": True, "sentence": "Queued at position 2.", "devices": 1,
         "device_seconds": 7200.0},
        {"admitted": False, "sentence": "Too many. Ask for 0 to 1.", "devices": 2},
    ]}  # fmt: skip  # grouped by meaning
    sent = answers(service, "quotes", found)
    done = carrel("quote", "--devices", "0", "--devices", "1", "--devices", "2", "--hours", "2")
    assert [each["devices"] for each in sent[0]["quotes"]] == [0, 1, 2]
    assert {each["seconds"] for each in sent[0]["quotes"]} == {7200}
    assert not any("model" in each for each in sent[0]["quotes"]), "an older service lacks it"
    carrel("quote", "--model", "NVIDIA H200")
    assert sent[1]["quotes"][0]["model"] == "NVIDIA H200"
    assert done.output == (
        "no device: Starts immediately.\n"
        "1 device: Queued at position 2. Uses up to 2.0 device-hours.\n"
        "2 devices: refused. Too many. Ask for 0 to 1.\n"
    )
