"""The words that people read."""

from __future__ import annotations

import pytest

from carrel.hub.messages import requests as request_messages
from carrel.hub.messages import units
from carrel.hub.scheduling.model.plan import Reason, Wait
from carrel.hub.scheduling.model.states import State


@pytest.mark.parametrize(
    ("wait", "sentence"),
    [
        (
            Wait(request_id="a", place=1, reason=Reason.NO_FREE_DEVICE),
            "Place 1. Too few devices are free; it gets the next ones that come free.",
        ),
        (
            Wait(request_id="a", place=2, reason=Reason.BEHIND_OTHERS),
            "Place 2. 1 request is ahead of it.",
        ),
        (
            Wait(request_id="a", place=4, reason=Reason.BEHIND_OTHERS),
            "Place 4. 3 requests are ahead of it.",
        ),
        (
            Wait(request_id="a", place=1, reason=Reason.GROUP_MAXIMUM, detail="cs101"),
            "Place 1. The group cs101 has no room for it within its maximum now.",
        ),
        (
            Wait(request_id="a", place=1, reason=Reason.USER_MAXIMUM, detail="cs101"),
            "Place 1. Its owner has no room for it within the maximum per member of cs101 now.",
        ),
        (
            Wait(request_id="a", place=1, reason=Reason.POOL_TOO_SMALL),
            "Place 1. Too few devices can be lent now; it starts when enough can.",
        ),
        (Wait(request_id="a", place=0, reason=Reason.STARTING), "It starts now."),
    ],
)
def test_a_wait_is_place_and_reason(wait: Wait, sentence: str) -> None:
    assert request_messages.wait_sentence(wait) == sentence
    place = f"Place {wait.place}. " if wait.place else ""
    assert f"{place}{request_messages.wait_reason(wait)}" == sentence


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_a_sentence(reason: Reason) -> None:
    wait = Wait(request_id="a", place=1, reason=reason)
    assert request_messages.wait_sentence(wait).endswith(".")
    assert "owner" not in request_messages.wait_sentence(wait, yours=True), "who reads is the owner"


def test_ones_own_limits_are_told_to_oneself_as_you() -> None:
    wait = Wait(request_id="a", place=1, reason=Reason.USER_MAXIMUM, detail="cs101")
    said = "You have no room for it now within what one member of cs101 may hold."
    assert request_messages.wait_sentence(wait, yours=True) == f"Place 1. {said}"
    assert request_messages.quote_sentence(wait, 0.0) == f"It would wait at place 1. {said}"


@pytest.mark.parametrize("state", list(State))
def test_every_state_has_a_meaning(state: State) -> None:
    assert request_messages.state_meaning(state) != state or state in (
        "running",
        "cancelled",
        "failed",
    )
    assert "_" not in request_messages.state(state)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (-5, "0 s"),
        (45, "45 s"),
        (60, "1 min"),
        (61, "1 min 1 s"),
        (3600, "1 h"),
        (5400, "1 h 30 min"),
        (3605, "1 h"),
        (90000, "1 d 1 h"),
    ],
)
def test_durations_have_two_units_at_most(seconds: float, text: str) -> None:
    assert units.duration(seconds) == text


def test_amounts() -> None:
    assert [units.devices(n) for n in (0, 1, 3)] == ["no device", "1 device", "3 devices"]
    assert units.device_seconds(5400.4) == "5,400 device-seconds"
    assert units.device_seconds(0.7) == "1 device-second"
    assert [units.memory(n) for n in (0, 512 * 2**20, 80 * 2**30)] == ["", "512 MiB", "80 GiB"]
    assert [request_messages.server(name) for name in ("", "lab")] == ["default session", "lab"]


@pytest.mark.parametrize(
    ("kind", "notebook", "command", "labels", "name"),
    [
        ("job", "train.ipynb", [], {}, "train.ipynb"),
        ("job", "", ["echo", "a b"], {"check": "yes", "assignment": "ps1"}, "echo 'a b'"),
        ("grading", "", ["python"], {"check": "yes", "assignment": "ps1"}, "Check of ps1"),
        ("grading", "", ["python"], {"assignment": "ps1"}, "Grading of ps1"),
    ],
)
def test_work_is_called_by_what_it_does(
    kind: str, notebook: str, command: list[str], labels: dict[str, str], name: str
) -> None:
    assert request_messages.work(kind, notebook, command, labels) == name
