"""Examples of administration for the API's description."""

from __future__ import annotations

from typing import Any

_AT = 1_795_258_800.0

BODIES: dict[str, dict[str, dict[str, Any]]] = {
    "GroupIn": {
        "group": {
            "summary": "A course below a department",
            "value": {
                "parent": "cs",
                "max_devices": 4,
                "max_devices_per_user": 1,
                "max_seconds": 7200,
                "teachers": ["grace"],
            },
        }
    },
    "DrainIn": {
        "by a date": {
            "summary": "What is left then is stopped",
            "value": {"until": _AT, "why": "The fan is replaced."},
        }
    },
    "QuarantineIn": {
        "reason": {"summary": "With its reason", "value": {"why": "It computes wrong sums."}}
    },
    "PersonIn": {
        "student": {
            "summary": "A student",
            "value": {"name": "ada", "admin": False, "groups": ["cs101"]},
        }
    },
}

ANSWERS: dict[str, dict[str, Any]] = {
    "ConsequencesOut": {
        "sentences": [
            "cs101 holds 4 devices, above the new maximum of 2: nothing is stopped, nothing new "
            "starts.",
            "3 requests that wait could never start and would be told.",
        ],
        "saved": False,
    },
    "ChangesOut": {
        "changes": [
            {
                "id": 17,
                "at": _AT,
                "who": "admin",
                "action": "group set",
                "target": "cs101",
                "why": "",
                "before": {"max_devices": 4},
                "after": {"max_devices": 2},
            }
        ],
        "next": None,
    },
    "QuotaTreeOut": {
        "groups": [
            {
                "name": "cs101",
                "parent": None,
                "depth": 0,
                "max_devices": 4,
                "max_devices_per_user": 2,
                "max_seconds": 28800,
                "idle_seconds": 1800,
                "teachers": ["teacher1"],
                "held": 2,
                "waiting": 3,
                "device_seconds": 86400.0,
            }
        ]
    },
    "PeopleOut": {
        "people": [
            {
                "name": "ada",
                "admin": False,
                "account": True,
                "groups": ["cs101"],
                "teaches": [],
                "live": 1,
                "device_seconds": 5400.0,
            }
        ],
        "hub_away": False,
    },
}
