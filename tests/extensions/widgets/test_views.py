"""Views: their traits, restarts of the service, and cancelling a job."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from carrel.extensions.widgets import JobView, QueueView
from carrel.extensions.widgets.pool_state import pool_facts, row_facts
from carrel.extensions.widgets.stream_feeds import Heartbeat, Snapshot, StreamFeed
from carrel.extensions.widgets.views import service_link
from carrel.hub.client import Client
from carrel.hub.errors import InvalidInput, NotFound
from carrel.hub.schemas import PoolOut, QueueEntryOut
from carrel.hub.schemas.calendar import ReservationOut

from ...fake_service import PREFIX, FakeService, eventually

NAME = "<img src=x onerror=alert(1)>.ipynb"


@pytest.fixture
def service() -> Iterator[FakeService]:
    with FakeService() as made:
        yield made


def view_of(service: FakeService, job: str) -> JobView:
    return JobView(job, client=Client(service.url, "t"))


def test_a_view_follows_its_job_and_survives_a_restart_of_the_service(
    service: FakeService,
) -> None:
    service.add("j-1", notebook=NAME, state="running")
    service.add_event("j-1", "cells", cells=2)
    view = view_of(service, "j-1")
    eventually(lambda: view.job and view.progress.get("total") == 2)
    assert view.job["title"] == NAME  # as it is: the page shows it as text

    service.add_event("j-1", "cell_started", index=0, number=1)
    eventually(lambda: [cell["state"] for cell in view.cells] == ["runs"])
    service.close()
    service.open()
    service.add_event("j-1", "cell_finished", index=0, number=1, seconds=0.5)
    eventually(lambda: [cell["state"] for cell in view.cells] == ["done"])

    service.change("j-1", state="succeeded", ended=True)
    eventually(lambda: view.job["ended"])
    assert view.job["can_cancel"] is False


def test_an_explanation_is_fetched_when_it_is_opened(service: FakeService) -> None:
    service.add("j-1", notebook="a.ipynb", state="queued")
    asked: list[str] = []

    def answer(handler: Any) -> None:
        asked.append(handler.path)
        handler.say(200, {
            "request_id": "j-1",
            "wait": {"place": 1, "ahead": 0, "reason": "no_free_device",
                     "sentence": "Queued at position 1.",
                     "expected_at": 4e9, "latest_at": 5e9},
            "sentences": ["Queued at position 1.",
                          "It requests 2 devices; 1 of 4 devices is free now."],
            "reserved_from": 4e9, "reserved_until": 5e9, "refills_at": 6e9,
            "ahead_sentences": ["1 request goes first."],
            "suggestions": [{"change": "fewer_devices", "devices": 1, "sentence": "With 1 now."}],
        })  # fmt: skip  # grouped by meaning

    service.extra["GET", f"{PREFIX}/requests/j-1/why"] = answer
    client = Client(service.url, "t")
    for view in (JobView("j-1", client=client), QueueView(client=client)):
        assert view.why is None
        view._handle_custom_msg({"do": "why", "request_id": "j-1"}, [])
        eventually(lambda view=view: view.why)
        assert view.why == {
            "request_id": "j-1",
            "why": ["It requests 2 devices; 1 of 4 devices is free now."],
            "ahead": ["1 request goes first."],
            "helps": ["With 1 now."],
            "start": [
                {"before": "Expected start: ", "at": 4e9, "after": "", "show": "coming"},
                {"before": ", at the latest ", "at": 5e9, "after": ".", "show": "clock"},
            ],
            "dated": [
                [
                    {"before": "Reserved from ", "at": 4e9, "after": "", "show": "clock"},
                    {"before": " to ", "at": 5e9, "after": ".", "show": "clock"},
                ],
                [
                    {
                        "before": "The budget is renewed: ",
                        "at": 6e9,
                        "after": ".",
                        "show": "clock",
                    },
                ],
            ],
        }
        view.close()
    assert len(asked) == 2, "nothing is fetched on a heartbeat"


def test_the_output_of_a_command_is_that_of_its_newest_attempt(service: FakeService) -> None:
    service.add("j-1", command=["python"], state="queued")
    service.grant("j-1")
    service.logs["j-1"] = b"the first attempt"
    service.change("j-1", state="running")
    view = JobView("j-1", client=Client(service.url, "t"))
    eventually(lambda: view.log == "the first attempt")
    service.logs["j-1"] = b"again"
    service.grant("j-1")
    service.change("j-1", state="running")
    eventually(lambda: view.log == "again")
    view.close()


def test_the_pool_shows_reservations_and_a_row_its_reason_and_expected_start() -> None:
    reserved = ReservationOut(
        id="r-1", group="cs101", devices=2, when="Tue 10:00-12:00 UTC", first="2026-11-01",
        until="2027-02-15", starts_at=4e9, ends_at=5e9,
    )  # fmt: skip  # grouped by meaning
    pool = PoolOut(devices=[], free=0, total=0, waiting=0, simulated=False, reservations=[reserved])
    assert pool_facts(pool)["reserved"] == [
        {
            "before": "2 devices are reserved for cs101 from ",
            "at": 4e9,
            "after": " (Tue 10:00-12:00 UTC)",
            "show": "clock",
        }
    ]
    row = QueueEntryOut(
        place=1, kind="job", devices=1, model="H200",
        sentence="Queued at position 1. Full.", why="Full.",
        yours=True, expected_at=4e9, latest_at=4e9,
    )  # fmt: skip  # grouped by meaning
    facts = row_facts(row, 3e9)
    assert [facts[name] for name in ("devices", "why", "sentence", "expected")] == [
        "1 device (H200)",
        "Full.",
        "Queued at position 1. Full.",
        [{"before": "Expected start: ", "at": 4e9, "after": ".", "show": "coming"}],
    ]


def test_a_second_view_of_the_same_job_begins_with_all_that_is_known(service: FakeService) -> None:
    service.add("j-2", notebook="a.ipynb", state="running")
    service.add_event("j-2", "cell_started", index=0, number=1)
    first = view_of(service, "j-2")
    eventually(lambda: first.cells)
    assert view_of(service, "j-2").cells == first.cells
    streams = [path for _method, path, _body in service.calls if path.endswith("/events")]
    assert len(streams) == 1


def test_cancel_asks_the_service_once(service: FakeService) -> None:
    service.add("j-3", state="running")
    view = view_of(service, "j-3")
    eventually(lambda: view.job)
    view._handle_custom_msg({"do": "cancel"}, [])
    eventually(lambda: view.job["state"] == "cancelled")
    assert view.asked
    assert len(service.called("DELETE", "requests/j-3")) == 1


def test_a_refused_cancel_stays_visible_after_later_changes(service: FakeService) -> None:
    service.extra["DELETE", f"{PREFIX}/requests/j-5"] = lambda handler: handler.say(
        403, {"error": {"code": "forbidden", "message": "Only its owner may cancel it."}}
    )
    service.add("j-5", state="running")
    view = view_of(service, "j-5")
    eventually(lambda: view.job)
    view._handle_custom_msg({"do": "cancel"}, [])
    eventually(lambda: "Only its owner" in view.refused)
    assert not view.asked
    service.add_event("j-5", "cell_started", index=0, number=1)
    eventually(lambda: view.cells)
    assert "Only its owner" in view.refused


def test_a_refusal_of_the_service_is_shown(service: FakeService) -> None:
    view = view_of(service, "j-nobody")
    eventually(lambda: view.problem)
    assert "There is no request j-nobody" in view.problem


def test_only_what_a_view_shows_is_sent_to_the_page(service: FakeService) -> None:
    service.add("j-4")
    sent = set(view_of(service, "j-4").keys)
    assert {"job", "cells", "progress", "log", "problem", "heartbeat", "service"} <= sent
    assert not {name for name in sent if "token" in name or "client" in name}


def test_a_view_leads_to_the_address_that_browsers_know(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.add("j-4")
    monkeypatch.setenv("CARREL_URL", service.url)
    monkeypatch.setenv("CARREL_PUBLIC_URL", "https://host/jupyter/services/carrel")
    assert view_of(service, "j-4").service == "https://host/jupyter/services/carrel/"
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/jupyter/user/anna/")
    assert view_of(service, "j-4").service == "/jupyter/services/carrel/"


def test_inside_a_session_links_stay_on_the_browsers_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/anna/")
    assert service_link("http://127.0.0.1:8000/services/carrel") == "/services/carrel/"
    monkeypatch.delenv("JUPYTERHUB_SERVICE_PREFIX")
    assert service_link("https://host/services/carrel") == "https://host/services/carrel/"


def test_a_heartbeat_whose_callback_fails_still_reaches_the_others() -> None:
    beaten = threading.Event()

    def fails() -> None:
        raise RuntimeError("the comm is closed")

    heartbeat = Heartbeat(0.01)
    heartbeat.add(fails)
    heartbeat.add(beaten.set)
    assert beaten.wait(60)
    heartbeat.remove(fails)
    heartbeat.remove(beaten.set)


def test_a_feed_publishes_its_last_change_before_it_ends() -> None:
    class Counted:
        number = 0

        def follow(self, told: object) -> None:
            self.number = 3

        def snapshot(self) -> Snapshot:
            return {"number": self.number}

    heard: list[Snapshot] = []
    feed = StreamFeed(Counted())
    feed.listen(heard.append)
    feed.start()
    assert feed.ended.wait(60)
    assert heard[0] == {"number": 0}
    assert heard[-1] == {"number": 3}


def test_a_wrong_job_is_refused() -> None:
    with pytest.raises(InvalidInput, match="id of the job is empty"):
        JobView("", client=Client("http://127.0.0.1:1", "t"))


def test_without_a_job_it_shows_the_newest(service: FakeService) -> None:
    client = Client(service.url, "t")
    with pytest.raises(NotFound, match="You have no jobs yet"):
        JobView(client=client)
    service.add("s-1", kind="session", state="running", submitted_at=3.0)
    service.add("j-2", notebook="second.ipynb", state="running", submitted_at=2.0)
    service.add("j-1", notebook="first.ipynb", state="succeeded", ended=True, submitted_at=1.0)
    view = JobView(client=client)
    eventually(lambda: view.job)
    assert (view.request_id, view.job["title"]) == ("j-2", "second.ipynb")
