"""Server-sent events through a real server: contents, rate, and a prompt end."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from carrel.hub.supervisor.proxy import node
from carrel.hub.web import Server
from carrel.hub.web.live import sse
from carrel.hub.web.live.sse import KEEP_ALIVE_SECONDS, StreamPace, message
from carrel.hub.web.security.access import SESSION_COOKIE

from ....promises import in_time
from ..fakes import HUB_TOKEN, World, cause, job, session, waiting

PREFIX = "/services/carrel"
ENDS = Path(__file__).parents[4] / "hub" / "jupyterhub" / "proxy" / "ends.cjs"
AT_ONCE, A_SECOND = 3, 10
"""The pace of a stream."""


@dataclass(frozen=True)
class Event:
    name: str
    data: str
    id: str = ""


class Live:
    """The application under uvicorn in a thread."""

    def __init__(self) -> None:
        self.world = World()
        self.server = Server.of(self.world.app, port=0)
        self.thread = threading.Thread(target=self.server.run)

    def start(self) -> None:
        self.thread.start()
        deadline = time.monotonic() + 60
        while not self.server.started and time.monotonic() < deadline:
            self.thread.join(0.01)
        port = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}{PREFIX}"

    def stop(self) -> float:
        """Stop the server as SIGTERM does; return how long that took."""
        began = time.monotonic()
        self.server.should_exit = True
        self.thread.join(60)
        assert not self.thread.is_alive()
        return time.monotonic() - began

    @contextmanager
    def follow(self, path: str, **headers: str) -> Iterator[Iterator[Event]]:
        cookie = {"Cookie": f"{SESSION_COOKIE}={self.world.cookie()}"}
        with httpx.stream(
            "GET", f"{self.url}{path}", headers=headers or cookie, timeout=60
        ) as answer:
            assert answer.status_code == 200, answer.read()
            assert answer.headers["content-type"].startswith("text/event-stream")
            yield parsed(answer.iter_lines())


def parsed(lines: Iterator[str]) -> Iterator[Event]:
    fields: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields.setdefault(name, []).append(value)
        elif fields:
            yield Event(
                name=fields["event"][0],
                data="\n".join(fields["data"]),
                id=fields.get("id", [""])[0],
            )
            fields = {}


@pytest.fixture
def live() -> Iterator[Live]:
    made = Live()
    made.start()
    yield made
    made.stop()


def test_a_stream_reports_a_request_from_the_queue_to_its_end(live: Live) -> None:
    service = live.world.service
    service.put(job(wait=waiting(2).model_dump()))
    with live.follow("/api/v1/requests/j-aaaaaaaa/events") as events:
        first = next(events)
        assert (first.name, json.loads(first.data)["wait"]["place"]) == ("status", 2)
        service.put(job(wait=waiting(1).model_dump()))
        assert json.loads(next(events).data)["wait"]["place"] == 1
        service.happen("j-aaaaaaaa", "cell_started", {"index": 0, "number": 1})
        started = next(events)
        assert (started.name, started.id) == ("cell_started", "1")
        assert json.loads(started.data)["data"] == {"index": 0, "number": 1}
        service.put(
            job(state="succeeded", ended=True, cause=cause("succeeded", "Done.").model_dump())
        )
        last = next(events)
        assert (last.name, json.loads(last.data)["state"]) == ("status", "succeeded")
        assert next(events) == Event(name="end", data="{}")
        assert next(events, None) is None


def test_a_late_reader_gets_all_events_or_continues(live: Live) -> None:
    service = live.world.service
    for number in (1, 2, 3):
        service.happen("j-aaaaaaaa", "cell_finished", {"number": number})
    service.put(job(state="failed", ended=True))
    path = "/api/v1/requests/j-aaaaaaaa/events"
    token = {"Authorization": "token ada-all"}
    with live.follow(path, **token) as events:
        assert [(e.name, e.id) for e in events] == [
            ("status", ""),
            ("cell_finished", "1"),
            ("cell_finished", "2"),
            ("cell_finished", "3"),
            ("end", ""),
        ]
    with live.follow(f"{path}?after=2", **token) as events:
        assert [e.id for e in events] == ["", "3", ""]
    with live.follow(path, **token, **{"Last-Event-ID": "1"}) as events:
        assert [e.id for e in events] == ["", "2", "3", ""]


def test_a_growing_charge_alone_sends_no_event(live: Live) -> None:
    service = live.world.service
    service.put(job(state="running", device_seconds=1.0))
    with live.follow("/api/v1/requests/j-aaaaaaaa/events") as events:
        next(events)
        service.put(job(state="running", device_seconds=2.0))
        service.put(job(state="stopping", device_seconds=3.0))
        assert json.loads(next(events).data)["state"] == "stopping"


def test_many_changes_become_few_events_including_the_last(live: Live) -> None:
    service = live.world.service
    service.put(job(wait=waiting(500).model_dump()))
    with live.follow("/api/v1/requests/j-aaaaaaaa/events") as events:
        next(events)
        began = time.monotonic()
        for place in range(499, 0, -1):
            service.put(job(wait=waiting(place).model_dump()))
        places = []
        while not places or places[-1] != 1:
            places.append(json.loads(next(events).data)["wait"]["place"])
        assert len(places) <= AT_ONCE + 1 + (time.monotonic() - began) * A_SECOND


def test_a_few_changes_are_sent_immediately_and_many_at_a_limited_rate() -> None:
    pace = StreamPace(at_once=3, seconds=0.1)
    now, pauses = 100.0, []
    for _ in range(6):
        pauses.append(pace.pause(now))
        now += pauses[-1]
    assert pauses == pytest.approx([0, 0, 0.1, 0.1, 0.1, 0.1])
    assert [pace.pause(now + 1) for _ in range(3)] == pytest.approx([0, 0, 0.1])


def test_the_hub_counts_as_present_while_it_listens(live: Live) -> None:
    service = live.world.service
    service.put(session())
    path = "/api/v1/requests/s-aaaaaaaa/events"
    with live.follow(path, Authorization=f"token {HUB_TOKEN}") as events:
        assert next(events).name == "status"
        assert service.attached == ["s-aaaaaaaa"]
        with live.follow(path) as own:
            next(own)
            assert service.attached == ["s-aaaaaaaa"], "a person's stream is no spawner"
    with service.changed:
        assert service.changed.wait_for(lambda: service.attached == [], timeout=60)


@pytest.mark.parametrize("path", ["/events", "/api/v1/events", "/requests/j-aaaaaaaa/feed"])
def test_a_stream_ends_with_the_sign_in_of_its_reader(
    live: Live, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(sse, "SIGN_IN_CHECK_SECONDS", 0.05)
    live.world.service.put(job(state="running"))
    with live.follow(path) as events:
        next(events)
        live.world.sign_in.people.pop("ada-oauth")
        assert list(events) == []


def test_missing_or_hidden_requests_get_an_error_instead_of_a_stream(live: Live) -> None:
    live.world.service.put(job(id="j-bbbbbbbb", owner="ben"))
    headers = {"Authorization": "token ada-all"}
    for request_id in ("j-nothing1", "j-bbbbbbbb"):
        answer = httpx.get(f"{live.url}/api/v1/requests/{request_id}/events", headers=headers)
        assert answer.status_code == 404
    answer = httpx.get(
        f"{live.url}/api/v1/requests/j-aaaaaaaa/events",
        headers=headers | {"Last-Event-ID": "1; drop"},
    )
    assert answer.status_code in (400, 404)
    assert httpx.get(f"{live.url}/events").status_code == 401


def test_a_page_gets_events_only_for_what_it_shows(live: Live) -> None:
    service = live.world.service
    service.put(job(), job(id="j-bbbbbbbb", owner="ben"))
    with live.follow("/events") as events:
        assert next(events).name == "changed"
        service.put(job(id="j-bbbbbbbb", owner="ben", state="running"))
        time_of_bens = time.monotonic()
        service.put(job(state="running"))
        assert next(events).name == "changed"
        assert time.monotonic() - time_of_bens < KEEP_ALIVE_SECONDS, "not for want of news"


def test_the_waiting_page_opens_the_session_when_it_is_ready(live: Live) -> None:
    service = live.world.service
    service.put(session(wait=waiting(1).model_dump()))
    with live.follow("/wait/-/events?request_id=s-aaaaaaaa") as events:
        first = next(events)
        assert first.name == "status"
        assert 'class="place-number">1<' in first.data
        service.put(session(state="running"))
        assert "It is running and opens in a moment." in next(events).data
        service.ready_servers.add(("ada", ""))
        assert [e.name for e in events] == ["ready", "end"]


def test_the_waiting_page_shows_why_the_session_failed(live: Live) -> None:
    service = live.world.service
    service.put(session(state="running"))
    with live.follow("/wait/-/events?request_id=s-aaaaaaaa") as events:
        next(events)
        why = cause("start_failed", "The server did not come up.", "<script>alert(1)</script>")
        service.put(session(state="failed", ended=True, ended_at=1.0, cause=why.model_dump()))
        ended = next(events)
        assert "The server did not come up." in ended.data
        assert "&lt;script&gt;" in ended.data
        assert "<script>" not in ended.data
        assert [e.name for e in events] == ["end"]


def test_a_shutdown_ends_open_streams_immediately() -> None:
    in_time(_shutdown, {"shutdown": 2})


def _shutdown() -> dict[str, float]:
    live = Live()
    live.start()
    live.world.service.put(session(), job())
    with (
        live.follow("/events") as page,
        live.follow("/wait/-/events?request_id=s-aaaaaaaa") as wait,
        live.follow("/api/v1/requests/j-aaaaaaaa/events") as request,
    ):
        for events in (page, wait, request):
            next(events)
        took = live.stop()
        for events in (page, wait, request):
            assert list(events) == []
    return {"shutdown": took}


def test_a_200_megabyte_notebook_gets_a_response(live: Live) -> None:
    chunk = b" " * (1 << 20)
    answer = httpx.post(
        f"{live.url}/api/v1/requests",
        content=(chunk for _ in range(200)),
        headers={
            "Authorization": "token ada-all",
            "Content-Type": "application/json",
            "Content-Length": str(200 << 20),
        },
        timeout=180,
    )
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "too_large"
    assert not live.world.service.calls


def test_a_message_keeps_its_line_breaks_and_cannot_be_split() -> None:
    assert message("status", "a\nb\r\nevent: forged\n\nc", event_id=3) == (
        b"event: status\nid: 3\ndata: a\ndata: b\ndata: event: forged\ndata: \ndata: c\n\n"
    )
    assert message("end") == b"event: end\ndata: {}\n\n"


def test_a_browser_faster_than_the_spawner_gets_the_waiting_page(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrel.hub.web.pages.sessions.SPAWNER_SECONDS", 60.0)
    service = live.world.service
    asked, seen = threading.Event(), service.requests

    def requests(*args: object, **more: object) -> object:
        asked.set()
        return seen(*args, **more)  # type: ignore[arg-type]

    service.requests = requests  # type: ignore[method-assign,assignment]
    threading.Thread(target=lambda: asked.wait(60) and service.put(session())).start()
    cookie = {"Cookie": f"{SESSION_COOKIE}={live.world.cookie()}"}
    answer = httpx.get(f"{live.url}/wait/-", headers=cookie)
    assert answer.status_code == 200
    assert "s-aaaaaaaa" in answer.text


def test_the_proxy_closes_idle_connections_before_the_service(live: Live) -> None:
    """Otherwise a request at that moment would get a 503."""
    program = node()
    if program is None:
        pytest.skip("no Node here, which the proxy runs on")
    script = """
const http = require("node:http");
const agent = new http.Agent({ keepAlive: true });
http.get(process.argv[1], { agent }, (answer) => {
  answer.resume();
  answer.on("end", () => setImmediate(() => {
    const [free] = Object.values(agent.freeSockets).flat();
    console.log(free.timeout / 1000);
    process.exit();
  }));
});
"""
    done = subprocess.run(
        [program, "--require", str(ENDS), "-e", script, f"{live.url}/healthz"],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert 0 < float(done.stdout) < live.server.config.timeout_keep_alive


def test_line_separators_of_unicode_stay_in_one_line_of_data() -> None:
    text = "one\u2028two\u2029three\u0085four\x0bfive\x0csix\x1cseven"
    assert message("status", text) == f"event: status\ndata: {text}\n\n".encode()
