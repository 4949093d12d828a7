"""The state of a job view after status changes and events."""

from __future__ import annotations

from typing import Any

import pytest

from carrel.extensions.job_text import facts
from carrel.extensions.widgets.job_state import JobState, Tail, job_facts
from carrel.hub.schemas import EventOut, RequestOut


def request(**fields: Any) -> RequestOut:
    plain = {
        "id": "j-1", "kind": "job", "owner": "anna", "group": "cs101", "devices": 1,
        "seconds": 3600, "state": "running", "submitted_at": 1000.0, "notebook": "a.ipynb",
    }  # fmt: skip  # grouped by meaning
    return RequestOut.model_validate(plain | fields)


def told(*events: tuple[str, dict[str, Any]], epoch: int = 1) -> JobState:
    state = JobState()
    for number, (kind, data) in enumerate(events, start=1):
        state.apply(event(number, kind, data, epoch=epoch))
    return state


def event(number: int, kind: str, data: dict[str, Any], *, epoch: int = 1) -> EventOut:
    return EventOut(
        id=number, request_id="j-1", epoch=epoch, at=1000.0 + number, kind=kind, data=data
    )


def stream(text: str) -> dict[str, Any]:
    output = {"output_type": "stream", "name": "stdout", "text": text}
    return {"index": 1, "number": 1, "output": output}


def test_cells_are_followed_from_start_to_end() -> None:
    state = told(
        ("cells", {"cells": 3}),
        ("cell_started", {"index": 0, "number": 1}),
        ("cell_finished", {"index": 0, "number": 1, "seconds": 1.5}),
        ("cell_started", {"index": 2, "number": 2}),
        ("progress", {"number": 2, "done": 3, "of": 10, "text": "epochs"}),
    )

    assert state.total == 3
    assert [(cell.state, cell.seconds) for cell in state.cells.values()] == [
        ("done", 1.5),
        ("runs", None),
    ]
    assert state.step == {"done": 3, "of": 10, "text": "epochs"}


def test_a_cell_that_failed_stays_failed_when_it_is_finished() -> None:
    state = told(
        ("cell_started", {"number": 1}),
        ("cell_failed", {"number": 1, "ename": "ValueError", "evalue": "<b>no</b>"}),
        ("cell_finished", {"number": 1, "seconds": 0.1}),
    )

    assert state.cells[1].plain() == {
        "number": 1,
        "state": "failed",
        "started_at": 1001.0,
        "seconds": 0.1,
        "note": "ValueError: <b>no</b>",
    }


def test_a_failed_cell_does_not_count_as_done() -> None:
    state = told(
        ("cells", {"cells": 3}),
        ("cell_started", {"number": 1}),
        ("cell_finished", {"number": 1, "seconds": 0.1}),
        ("cell_started", {"number": 2}),
        ("cell_failed", {"number": 2, "ename": "KeyboardInterrupt", "evalue": ""}),
    )

    assert (state.done, state.total) == (1, 3)


def test_a_new_attempt_begins_from_the_first_cell() -> None:
    state = told(
        ("cells", {"cells": 9}), ("cell_started", {"number": 1}), ("cell_output", stream("old"))
    )
    state.apply(event(7, "cells", {"cells": 9}, epoch=2))

    assert (state.cells, state.tail.text, state.total, state.last_event) == ({}, "", 9, 7)


@pytest.mark.parametrize(
    ("printed", "seen"),
    [
        (["a\n", "b\n"], "a\nb\n"),
        (["  0%\r", " 50%\r", "100%\n"], "100%\n"),
        (["one\r\ntwo\r\n"], "one\ntwo\n"),
        (["\x1b[31mred\x1b[0m\n"], "red\n"),
        (["<script>alert(1)</script>"], "<script>alert(1)</script>"),
    ],
)
def test_the_tail_is_what_a_terminal_would_show(printed: list[str], seen: str) -> None:
    tail = Tail()
    for text in printed:
        tail.add(text)
    assert tail.text == seen


def test_the_tail_is_bounded_whatever_is_printed() -> None:
    tail = Tail()
    for _ in range(50):
        tail.add("x" * 10_000 + "\n" * 100)
    assert len(tail.text) <= 16_000
    assert tail.text.count("\n") < 200


@pytest.mark.parametrize(
    "data", [{}, {"output": 3}, {"output": {"output_type": "display_data", "data": None}}]
)
def test_an_output_without_text_adds_nothing(data: dict[str, Any]) -> None:
    assert told(("cell_output", data)).tail.text == ""


def test_signs_of_a_running_job_are_shown_while_they_last() -> None:
    sign = {
        "kind": "loss-not-finite", "title": "Loss not finite", "since": 1001.0, "figures": {},
        "message": "The loss has been NaN since step 2.", "suggestion": "Clip gradients.",
        "found_at": 1002.0, "seen_at": 1002.0, "ended_at": None,
    }  # fmt: skip  # grouped by meaning
    state = JobState()
    shown = []
    for signs in ([], [sign], [{**sign, "ended_at": 1003.0}]):
        state.apply(request(signs=signs))
        assert state.request is not None
        shown.append(job_facts(state.request)["signs"])
    assert shown == [[], ["The loss has been NaN since step 2. Clip gradients."], []]
    assert ("Signs", "") in facts(request(signs=[sign], state="failed", ended=True))


def test_a_simulated_device_is_called_so() -> None:
    device = {
        "id": "d", "node": "n", "index": 0, "model": "Sim", "memory_bytes": 0,
        "simulated": True, "state": "yours",
    }  # fmt: skip  # grouped by meaning
    lease = {"id": "j-1.1", "epoch": 1, "state": "live", "granted_at": 1.0, "devices": [device]}
    facts = job_facts(request(lease=lease))
    assert facts["devices"] == ["Sim #0 (simulated)"]
    assert facts["can_cancel"] is True


@pytest.mark.parametrize("state", ["stopping", "succeeded", "cancelled", "failed"])
def test_a_job_that_is_stopping_or_has_ended_cannot_be_cancelled(state: str) -> None:
    assert job_facts(request(state=state))["can_cancel"] is False


def test_a_sweep_whose_trials_are_trained_as_one_says_so() -> None:
    sweep = {
        "trials": 12, "parallel": 1, "share": True, "trial_seconds": 0, "objective": "",
        "maximize": False, "together": True,
    }  # fmt: skip  # grouped by meaning
    assert job_facts(request(sweep=sweep))["trials_text"] == "12 trials trained as one"
    assert job_facts(request())["trials_text"] == ""
