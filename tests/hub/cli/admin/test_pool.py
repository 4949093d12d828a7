"""``carrel pool …`` and ``carrel audit``, and the calls that they make."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from ....fake_service import PREFIX, FakeService
from ..invocation import Carrel, carrel, service

__all__ = ["carrel", "service"]

DEVICES = [
    {
        "id": f"GPU-{number}a",
        "node": "n1",
        "index": number,
        "model": "H200",
        "memory_bytes": 2**33,
        "simulated": False,
        "state": "free",
    }
    for number in range(2)
]
POOL = {"devices": DEVICES, "free": 2, "total": 2, "waiting": 0, "simulated": False}
SAID = {"sentences": ["Nothing new starts on it.", "Nothing runs there."], "saved": True}


@pytest.fixture
def sent(service: FakeService) -> list[str]:
    """The calls other than for the list of devices."""
    calls: list[str] = []

    def answer(handler: Any) -> None:
        calls.append(f"{handler.command} {handler.path.removeprefix(PREFIX)}")
        handler.say(200, SAID)

    service.extra["GET", f"{PREFIX}/pool"] = lambda handler: handler.say(200, POOL)
    for target in ("GPU-0a", "GPU-1a", "n1"):
        for what in ("drain", "quarantine"):
            for verb in ("PUT", "DELETE"):
                service.extra[verb, f"{PREFIX}/pool/{target}/{what}"] = answer
    return calls


@pytest.fixture
def in_berlin(carrel: Carrel) -> Iterator[Carrel]:
    """A terminal in the time zone of Berlin."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield carrel
    time.tzset()


@pytest.mark.parametrize(
    ("typed", "call"),
    [
        (("drain", "n1"), "PUT /pool/n1/drain"),
        (("drain", "0a", "--dry-run"), "PUT /pool/GPU-0a/drain?dry_run=true"),
        (("undrain", "GPU-0a"), "DELETE /pool/GPU-0a/drain"),
        (("quarantine", "n1#0", "--why", "sums"), "PUT /pool/GPU-0a/quarantine"),
        (("release", "n1#0"), "DELETE /pool/GPU-0a/quarantine"),
    ],
)
def test_a_short_id_finds_its_device(
    sent: list[str], carrel: Carrel, typed: tuple[str, ...], call: str
) -> None:
    assert carrel("pool", *typed).output == "Nothing new starts on it.\nNothing runs there.\n"
    assert sent == [call]


@pytest.mark.parametrize(("verb", "method"), [("drain", "PUT"), ("undrain", "DELETE")])
def test_the_name_of_a_node_without_devices_finds_no_device(
    service: FakeService, sent: list[str], carrel: Carrel, verb: str, method: str
) -> None:
    """A short name is a part of many ids."""
    service.extra[method, f"{PREFIX}/pool/0a/drain"] = lambda handler: handler.say(200, SAID)
    assert carrel("node", verb, "0a").exit_code == 0
    assert sent == []


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("2034-11-22 18:00", "2034-11-22T17:00:00+00:00"),
        ("2034-11-22T18:00+05:00", "2034-11-22T13:00:00+00:00"),
    ],
)
def test_a_drain_by_a_date_is_read_in_the_zone_of_the_terminal(
    sent: list[str], service: FakeService, in_berlin: Carrel, typed: str, meant: str
) -> None:
    bodies: list[Any] = []

    def answer(handler: Any) -> None:
        bodies.append(json.loads(handler.raw))
        handler.say(200, SAID)

    service.extra["PUT", f"{PREFIX}/pool/n1/drain"] = answer
    output = in_berlin("pool", "drain", "n1", "--until", typed).output
    assert bodies == [{"why": "", "until": datetime.fromisoformat(meant).timestamp()}]
    then = datetime.fromisoformat(meant).astimezone(ZoneInfo("Europe/Berlin"))
    assert f"Work still running at 22 Nov 2034 {then:%H:%M} is stopped." in output


def test_a_drain_accepts_a_duration_and_refuses_invalid_times(
    sent: list[str], carrel: Carrel
) -> None:
    said = carrel("pool", "drain", "n1#1", "--until", "2h").output
    assert sent == ["PUT /pool/GPU-1a/drain"]
    assert "is stopped." in said
    for given in ("18:00", "2034-11-22", "tomorrow"):
        refused = carrel("pool", "drain", "n1", "--until", given)
        assert refused.exit_code != 0
        assert "a date and time such as 2026-11-22 18:00" in refused.output
    assert len(sent) == 1


def test_an_ambiguous_device_is_refused(sent: list[str], carrel: Carrel) -> None:
    refused = carrel("pool", "drain", "GPU")
    assert refused.exit_code == 1
    assert "Several devices match 'GPU'. One of: GPU-0a, GPU-1a." in refused.output
    assert sent == []


def test_a_number_of_two_devices_of_different_makers_is_refused(
    sent: list[str], service: FakeService, carrel: Carrel
) -> None:
    other = {**DEVICES[0], "id": "GPU-ab", "model": "MI300X", "driver": "amd"}
    pool = {**POOL, "devices": [*DEVICES, other]}
    service.extra["GET", f"{PREFIX}/pool"] = lambda handler: handler.say(200, pool)
    refused = carrel("pool", "drain", "n1#0")
    assert "Several devices match 'n1#0'. One of: GPU-0a, GPU-ab." in refused.output
    assert sent == []


def test_pool_and_pool_ls_list_the_devices(sent: list[str], carrel: Carrel) -> None:
    assert carrel("pool").output == carrel("pool", "ls").output
    assert json.loads(carrel("pool", "--json").output)["total"] == 2


RESERVED = {
    "id": "r-1",
    "group": "cs101",
    "devices": 8,
    "when": "Wed 10:00-12:00 Europe/Berlin",
    "first": "2034-11-01",
    "until": "2035-02-15",
    "starts_at": datetime.fromisoformat("2034-11-22T09:00:00+00:00").timestamp(),
    "ends_at": datetime.fromisoformat("2034-11-22T11:00:00+00:00").timestamp(),
}


@pytest.mark.parametrize(
    ("reserved", "said"),
    [
        (
            RESERVED,
            "8 devices are reserved for cs101 from 22 Nov 2034 10:00 "
            "(Wed 10:00-12:00 Europe/Berlin)",
        ),
        (
            {**RESERVED, "devices": 1, "running": True, "why": "The lab \x1b[31mclass."},
            "1 device is reserved for cs101 until 22 Nov 2034 12:00 "
            "(Wed 10:00-12:00 Europe/Berlin): The lab class.",
        ),
    ],
    ids=["next", "now"],
)
def test_reservations_are_listed_below_the_devices(
    service: FakeService, in_berlin: Carrel, reserved: dict[str, Any], said: str
) -> None:
    pool = {**POOL, "reservations": [reserved]}
    service.extra["GET", f"{PREFIX}/pool"] = lambda handler: handler.say(200, pool)
    assert in_berlin("pool").output.splitlines()[-1] == said
    assert json.loads(in_berlin("pool", "--json").output)["reservations"][0]["id"] == "r-1"


def test_only_a_pool_that_is_simulated_altogether_is_called_so(
    service: FakeService, carrel: Carrel
) -> None:
    for both, said in ((False, False), (True, True)):
        devices = [{**DEVICES[0], "simulated": both}, {**DEVICES[1], "simulated": True}]
        pool = {**POOL, "devices": devices, "simulated": True}
        service.extra["GET", f"{PREFIX}/pool"] = lambda h, pool=pool: h.say(200, pool)
        assert ("All of them are simulated." in carrel("pool").output) is said


def test_a_tile_shows_why_its_device_is_not_available(service: FakeService, carrel: Carrel) -> None:
    marked = [
        {**DEVICES[0], "state": "taken", "draining": True, "drain_until": 4e9},
        {**DEVICES[1], "state": "sick", "quarantined": True, "why": "In quarantine: sums"},
    ]
    service.extra["GET", f"{PREFIX}/pool"] = lambda h: h.say(200, {**POOL, "devices": marked})
    text = carrel("pool").output
    assert "taken, draining until" in text
    assert "sick, quarantined" in text
    assert "In quarantine: sums" in text


def test_the_audit_list_shows_both_sides(service: FakeService, carrel: Carrel) -> None:
    line = {
        "id": 1,
        "at": 1e9,
        "who": "cli:root",
        "action": "group set",
        "target": "cs101",
        "why": "",
        "before": {"max_devices": 4, "max_seconds": 28800, "budget": None},
        "after": {
            "max_devices": 2,
            "max_seconds": 5400,
            "budget": {"device_seconds": 1080000.0, "period": "term"},
        },
    }
    reserved = {
        **line,
        "action": "reserve",
        "before": {},
        "after": {"when": "Tue 10:00-12:00 Europe/Berlin", "until": "2027-02-15"},
    }
    service.extra["GET", f"{PREFIX}/audit"] = lambda h: h.say(
        200, {"changes": [line, reserved], "next": None}
    )
    text = carrel("audit", "--target", "cs101").output
    assert "when: Tue 10:00-12:00 Europe/Berlin, until: 2027-02-15" in text
    assert (
        "cli:root  group set  cs101  max quota: 4 -> 2, "
        "max time limit: 8 h -> 1 h 30 min, budget: none -> 300 h per term" in text
    )
