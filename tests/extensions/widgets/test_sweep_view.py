"""Views of a sweep and of reported values: what they show while it runs, and what they ask for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from carrel.extensions.job import Job
from carrel.extensions.widgets import JobView, SweepView, report_state, sweep_state
from carrel.hub.client import Client
from carrel.hub.errors import NotFound

from ...fake_service import PREFIX, FakeService, eventually

SWEEP = {
    "trials": 3, "parallel": 1, "share": True, "trial_seconds": 0, "objective": "loss",
    "maximize": False,
}  # fmt: skip  # grouped by meaning


@pytest.fixture
def service() -> Iterator[FakeService]:
    with FakeService() as made:
        made.add("j-1", notebook="a.ipynb", state="running", sweep=SWEEP)
        yield made


class Trials:
    """The trials of j-1 as the service answers them; a stop is accepted or refused."""

    def __init__(self, service: FakeService) -> None:
        self.states = ["succeeded", "running", "waiting"]
        self.refusal = ""
        self.read = 0
        self.so_far: dict[str, float] = {}
        service.extra["GET", f"{PREFIX}/requests/j-1/trials"] = self.answer
        service.extra["POST", f"{PREFIX}/requests/j-1/trials/3/stop"] = self.stop

    def answer(self, handler: Any) -> None:
        self.read += 1
        losses = {1: 2.0, 2: 0.5}
        trials = [
            {
                "number": number, "values": {"lr": 10.0**-number, "flag": number > 1},
                "state": state, "at": float(number), "seconds": 1.5, "notebook": "x.ipynb",
                "reported": {"loss": losses[number]} if state == "succeeded" else self.so_far,
            }
            for number, state in enumerate(self.states, start=1)
        ]  # fmt: skip  # grouped by meaning
        best = 2 if self.states[1] == "succeeded" else 1
        handler.say(200, {
            "trials": trials, "parameters": ["lr", "flag"], "logarithmic": ["lr"],
            "names": ["loss"], "objective": "loss", "best": best,
        })  # fmt: skip  # grouped by meaning

    def stop(self, handler: Any) -> None:
        if self.refusal:
            handler.say(409, {"error": {"code": "conflict", "message": self.refusal}})
            return
        self.states[2] = "stopped"
        self.answer(handler)


@pytest.fixture
def trials(service: FakeService) -> Trials:
    return Trials(service)


def view_of(service: FakeService, **more: str) -> SweepView:
    return SweepView(more.get("job", "j-1"), client=Client(service.url, "t"))


def test_a_sweep_is_shown_with_its_trials_until_it_has_ended(
    service: FakeService, trials: Trials
) -> None:
    view = view_of(service)
    eventually(lambda: view.sweep)
    assert view.sweep["summary"] == "3 trials: 1 succeeded, 1 running, 1 waiting."
    assert [row["may_stop"] for row in view.sweep["rows"]] == [False, True, True]
    assert view.sweep["parallel"] is None

    trials.states[1:] = ["succeeded", "failed"]
    service.change("j-1", state="failed", ended=True)
    eventually(lambda: view.sweep["best"] == 2 and view.job["ended"])
    assert view.sweep["objective"] == "loss = 0.5"
    assert view.sweep["curves"][0]["told"] == "best so far, 0.5"
    assert [axis["name"] for axis in view.sweep["parallel"]["axes"]] == ["lr", "flag", "loss"]
    assert view.sweep["parallel"]["about"].startswith("Parallel coordinates of 2 trials over lr (")


def test_a_trial_that_is_stopped_before_its_turn_is_shown_as_such(
    service: FakeService, trials: Trials
) -> None:
    view = view_of(service)
    eventually(lambda: view.sweep)
    view._handle_custom_msg({"do": "stop", "number": 3}, [])
    eventually(lambda: [row["state"] for row in view.sweep["rows"]][2] == "stopped")
    assert view.refused == ""


def test_what_a_running_trial_reports_is_read_without_an_event(
    service: FakeService, trials: Trials, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_state, "LIVE_SECONDS", 0.01)
    monkeypatch.setattr(sweep_state, "TRIAL_SECONDS", 0.01)
    view = view_of(service)
    eventually(lambda: view.sweep and view.sweep["rows"][1]["reported"] == [""])
    trials.so_far["loss"] = 0.75
    eventually(lambda: view.sweep["rows"][1]["reported"] == ["0.75"])


def test_what_trials_share_is_fetched_when_it_is_asked_for(
    service: FakeService, trials: Trials
) -> None:
    cell = {"number": 1, "runs": 1, "why": "All 3 trials share it."}
    body = {"summary": "3 trials.", "tree": ["cell 1"], "cells": [cell], "notes": []}
    path = f"{PREFIX}/requests/j-1/sharing"
    service.extra["GET", path] = lambda handler: handler.say(200, body)
    view = view_of(service)
    assert view.sharing == ""
    view._handle_custom_msg({"do": "sharing"}, [])
    eventually(lambda: "   1     1  All 3 trials share it." in view.sharing)
    del service.extra["GET", path]
    view._handle_custom_msg({"do": "sharing"}, [])
    eventually(lambda: "All 3 trials" not in view.sharing)


def test_a_refused_stop_is_told(service: FakeService, trials: Trials) -> None:
    trials.refusal = "Only trials of a running sweep stop."
    view = view_of(service)
    eventually(lambda: view.sweep)
    view._handle_custom_msg({"do": "stop", "number": 3}, [])
    eventually(lambda: "Only trials of a running sweep stop." in view.refused)


def test_the_whole_sweep_is_cancelled(service: FakeService, trials: Trials) -> None:
    view = view_of(service)
    view._handle_custom_msg({"do": "cancel"}, [])
    eventually(lambda: view.job and view.job["state"] == "cancelled")


def test_a_job_that_is_no_sweep_is_told(service: FakeService) -> None:
    service.add("j-2", state="running")
    service.extra["GET", f"{PREFIX}/requests/j-2/trials"] = lambda handler: handler.say(
        404, {"error": {"code": "not_found", "message": "j-2 is no sweep."}}
    )
    view = view_of(service, job="j-2")
    eventually(lambda: "j-2 is no sweep." in view.problem)


def test_without_a_job_it_shows_the_newest_sweep(service: FakeService, trials: Trials) -> None:
    client = Client(service.url, "t")
    service.add("j-9", notebook="b.ipynb", state="running", submitted_at=5000.0)
    assert SweepView(client=client).request_id == "j-1"
    service.requests.pop("j-1")
    with pytest.raises(NotFound, match="None of your newest 100 jobs is a sweep"):
        SweepView(client=client)


def test_the_trials_are_a_table_of_pandas(service: FakeService, trials: Trials) -> None:
    client = Client(service.url, "t")
    for frame in (view_of(service).frame(), Job(client, client.request("j-1")).frame()):
        assert list(frame.columns) == ["lr", "flag", "state", "seconds", "loss", "message"]
        assert list(frame.index) == [1, 2, 3]
        assert frame.loc[1, "loss"] == 2.0
        assert frame.loss.isna().tolist() == [False, True, True]


def test_reported_values_are_curves_while_the_job_runs(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_state, "REPORT_SECONDS", 0.01)
    values: list[float | None] = [2.0]

    def answer(handler: Any) -> None:
        report = {
            "name": "loss", "steps": list(range(len(values))), "values": list(values),
            "last": values[-1], "least": 0.5, "most": 2.0,
        }  # fmt: skip  # grouped by meaning
        function = {"function": "step", "place": "", "outcome": "Compiled.", "obstacles": []}
        handler.say(200, {"reports": [report], "compilations": [function]})

    service.extra["GET", f"{PREFIX}/requests/j-3/reports"] = answer
    service.add("j-3", notebook="a.ipynb", state="running")
    service.grant("j-3")
    service.change("j-3", state="running")
    view = JobView("j-3", client=Client(service.url, "t"))
    eventually(lambda: [each["told"] for each in view.reports] == ["last 2"])
    assert [each["function"] for each in view.compilations] == ["step"]
    values.append(1.0)
    eventually(lambda: view.reports[0]["told"] == "last 1")
    assert view.reports[0]["line"] == "M0.00 0.00L1000.00 100.00"
    values.append(0.5)
    service.change("j-3", state="succeeded", ended=True)
    eventually(lambda: view.job["ended"] and view.reports[0]["told"] == "last 0.5")
