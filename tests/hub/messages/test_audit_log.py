"""Sentences of the audit list."""

from __future__ import annotations

import pytest

from carrel.hub.messages.audit_log import differences


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            {"max_seconds": 28800, "idle_seconds": 0},
            {"max_seconds": 5400, "idle_seconds": 1800},
            "max time limit: 8 h → 1 h 30 min, idle warning after: never → 30 min",
        ),
        (
            {},
            {"parent": None, "max_devices": 4, "max_sessions": None},
            "parent group: none, max quota: 4, max sessions: no limit",
        ),
        ({"teachers": []}, {"teachers": ["ada", "ben"]}, "teachers: none → ada, ben"),
        ({"admin": True}, {}, "administrator: yes"),
        ({"owner": "ada", "state": "timed_out"}, {}, "owner: ada, state: timed out"),
        ({}, {"until": 7.0}, "remaining work is stopped: at 7"),
        (
            {},
            {"id": "r-1", "devices": 2, "when": "Tue 10:00-12:00 UTC", "until": "2027-02-15"},
            "id: r-1, devices: 2, when: Tue 10:00-12:00 UTC, until: 2027-02-15",
        ),
        (
            {"image": "a", "until": "2027-02-15"},
            {"image": "a", "until": None},
            "image: a → a, until: 2027-02-15 → no end date",
        ),
        (
            {"budget": None},
            {"budget": {"device_seconds": 1080000.0, "period": "term"}},
            "budget: none → 300 h per term",
        ),
        (
            {"budget": {"device_seconds": 1800.0, "period": "week"}},
            {"budget": {"device_seconds": 4500000, "period": "week"}},
            "budget: 0.5 h per week → 1,250 h per week",
        ),
        ({"starts_at": 5.0}, {"starts_at": 7.0}, "starts at: at 5 → at 7"),
        ({"archived_at": None}, {"archived_at": 7.0}, "archived at: never → at 7"),
        (
            {"for": "ada", "seconds": 3600},
            {"for": "ada", "seconds": 0},
            "for: ada → ada, extension: 1 h → 0 s",
        ),
        ({}, {"due": None}, "due: no due date"),
        ({}, {}, ""),
    ],
)
def test_a_change_is_formatted_for_people(
    before: dict[str, object], after: dict[str, object], said: str
) -> None:
    found = differences(before, after, lambda at: f"at {at:.0f}")
    assert ", ".join(f"{name}: {' → '.join(sides)}" for name, sides in found) == said
