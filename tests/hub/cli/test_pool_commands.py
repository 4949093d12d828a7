"""``carrel pool …`` and ``carrel audit``: what administrators type, and what is sent for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ...fake_service import FakeService
from .test_client_commands import Carrel, carrel, service

__all__ = ["carrel", "service"]

API = "/services/carrel/api/v1"
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
    """What was asked for beyond the list of devices."""
    calls: list[str] = []

    def answer(handler: Any) -> None:
        calls.append(f"{handler.command} {handler.path.removeprefix(API)}")
        handler.say(200, SAID)

    service.extra["GET", f"{API}/pool"] = lambda handler: handler.say(200, POOL)
    for target in ("GPU-0a", "GPU-1a", "n1"):
        for what in ("drain", "quarantine"):
            for verb in ("PUT", "DELETE"):
                service.extra[verb, f"{API}/pool/{target}/{what}"] = answer
    return calls


@pytest.mark.parametrize(
    ("typed", "call"),
    [
        (("drain", "n1"), "PUT /pool/n1/drain"),
        (("drain", "n1#1", "--until", "2h"), "PUT /pool/GPU-1a/drain"),
        (("drain", "0a", "--dry-run"), "PUT /pool/GPU-0a/drain?dry_run=true"),
        (("undrain", "GPU-0a"), "DELETE /pool/GPU-0a/drain"),
        (("quarantine", "n1#0", "--why", "sums"), "PUT /pool/GPU-0a/quarantine"),
        (("release", "n1#0"), "DELETE /pool/GPU-0a/quarantine"),
    ],
)
def test_a_short_form_finds_its_device(
    sent: list[str], carrel: Carrel, typed: tuple[str, ...], call: str
) -> None:
    assert carrel("pool", *typed).output == "Nothing new starts on it.\nNothing runs there.\n"
    assert sent == [call]


def test_what_fits_several_devices_is_asked_back(sent: list[str], carrel: Carrel) -> None:
    refused = carrel("pool", "drain", "GPU")
    assert refused.exit_code == 1
    assert "Several devices fit 'GPU'. One of: GPU-0a, GPU-1a." in refused.output
    assert sent == []


def test_the_bare_word_and_ls_list_the_devices(sent: list[str], carrel: Carrel) -> None:
    assert carrel("pool").output == carrel("pool", "ls").output
    assert json.loads(carrel("pool", "--json").output)["total"] == 2


def test_a_tile_says_what_keeps_it_from_being_lent(service: FakeService, carrel: Carrel) -> None:
    marked = [
        {**DEVICES[0], "state": "taken", "draining": True, "drain_until": 4e9},
        {**DEVICES[1], "state": "sick", "quarantined": True, "why": "In quarantine: sums"},
    ]
    service.extra["GET", f"{API}/pool"] = lambda h: h.say(200, {**POOL, "devices": marked})
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
        "before": {"max_devices": 4},
        "after": {"max_devices": 2},
    }
    service.extra["GET", f"{API}/audit"] = lambda h: h.say(200, {"changes": [line], "next": None})
    text = carrel("audit", "--target", "cs101").output
    assert "cli:root  group set  cs101  max_devices: 4 -> 2" in text
