"""Sentences about requests."""

from __future__ import annotations

import pytest

from carrel.hub.messages import requests as request_messages
from carrel.hub.messages import units, wait_reasons
from carrel.hub.scheduling.model.plan import Estimate, Reason, Wait
from carrel.hub.scheduling.model.states import State


@pytest.mark.parametrize(
    ("wait", "sentence"),
    [
        (
            Wait(request_id="a", place=1, reason=Reason.NO_FREE_DEVICE),
            "Queued at position 1. Not enough devices are free; it gets the next ones that are "
            "released.",
        ),
        (
            Wait(request_id="a", place=2, reason=Reason.BEHIND_OTHERS),
            "Queued at position 2. 1 request is ahead of it.",
        ),
        (
            Wait(request_id="a", place=4, reason=Reason.BEHIND_OTHERS),
            "Queued at position 4. 3 requests are ahead of it.",
        ),
        (
            Wait(request_id="a", place=1, reason=Reason.GROUP_MAXIMUM, detail="cs101"),
            "Queued at position 1. It would exceed the max quota of cs101.",
        ),
        (
            Wait(request_id="a", place=1, reason=Reason.USER_MAXIMUM, detail="cs101"),
            "Queued at position 1. Its owner would exceed the maximum number of devices per "
            "member of cs101.",
        ),
        (
            Wait(request_id="a", place=1, reason=Reason.POOL_TOO_SMALL),
            "Queued at position 1. Not enough devices are in service; it starts when enough are.",
        ),
        (Wait(request_id="a", place=0, reason=Reason.STARTING), "It starts now."),
    ],
)
def test_a_wait_has_position_and_reason(wait: Wait, sentence: str) -> None:
    assert wait_reasons.wait_sentence(wait) == sentence
    place = f"Queued at position {wait.place}. " if wait.place else ""
    assert f"{place}{wait_reasons.wait_reason(wait)}" == sentence


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_a_sentence(reason: Reason) -> None:
    wait = Wait(request_id="a", place=1, reason=reason)
    assert wait_reasons.wait_sentence(wait).endswith(".")
    assert "owner" not in wait_reasons.wait_sentence(wait, yours=True), "who reads is the owner"


def test_the_owner_is_addressed_as_you() -> None:
    wait = Wait(request_id="a", place=1, reason=Reason.USER_MAXIMUM, detail="cs101")
    said = "You would exceed your maximum number of devices in cs101."
    assert wait_reasons.wait_sentence(wait, yours=True) == f"Queued at position 1. {said}"
    assert wait_reasons.quote_sentence(wait, 0.0) == f"Queued at position 1. {said}"


@pytest.mark.parametrize(
    ("used", "maximum", "sentence"),
    [
        (2.0, 2.0, "You already use your maximum of 2 devices in cs101."),
        (1.0, 1.0, "You already use your maximum of 1 device in cs101."),
        (1.5, 2.0, "You use 1.5 of your maximum of 2 devices in cs101."),
    ],
)
def test_a_quote_says_how_much_of_the_maximum_is_used(
    used: float, maximum: float, sentence: str
) -> None:
    wait = Wait(
        request_id="a",
        place=2,
        reason=Reason.USER_MAXIMUM,
        detail="cs101",
        estimate=Estimate(at=7170.0, latest=7170.0),
    )
    usage = wait_reasons.OwnUsage(group="cs101", used=used, maximum=maximum)
    assert wait_reasons.quote_sentence(wait, 0.0, usage) == (
        f"Queued at position 2, starts in about 2 h. {sentence}"
    )


@pytest.mark.parametrize("state", list(State))
def test_every_state_has_a_meaning(state: State) -> None:
    assert request_messages.state_meaning(state) != state or state in (
        "running",
        "cancelled",
        "failed",
    )
    assert "_" not in request_messages.state_name(state)


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
    assert units.device_hours(5400.4) == "1.5 device-hours"
    assert units.device_hours_likely(3600, 1800, 7200) == "1.0 device-hours (0.5 to 2.0)"
    assert units.device_hours_likely(2, 1, 9) == "less than 0.01 device-hours"
    assert [units.memory(n) for n in (0, 512 * 2**20, 80 * 2**30)] == ["", "512 MiB", "80 GiB"]
    assert [request_messages.session_name(name) for name in ("", "lab")] == [
        "default session",
        "lab",
    ]


@pytest.mark.parametrize(
    ("kind", "notebook", "command", "labels", "name"),
    [
        ("job", "train.ipynb", [], {}, "train.ipynb"),
        ("job", "", ["echo", "a b"], {"check": "yes", "assignment": "ps1"}, "echo 'a b'"),
        ("grading", "", ["python"], {"check": "yes", "assignment": "ps1"}, "Check of ps1"),
        ("grading", "", ["python"], {"assignment": "ps1"}, "Grading of ps1"),
    ],
)
def test_work_has_a_title(
    kind: str, notebook: str, command: list[str], labels: dict[str, str], name: str
) -> None:
    assert request_messages.work_title(kind, notebook, command, labels) == name
