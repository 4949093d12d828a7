"""Examples of administration for the OpenAPI description."""

from __future__ import annotations

from typing import Any

_AT = 1_795_258_800.0

BODIES: dict[str, dict[str, dict[str, Any]]] = {
    "SecretIn": {
        "own": {"summary": "A token of your own", "value": {"value": "hf_…"}},
        "group": {
            "summary": "A token for the members of a group",
            "value": {"value": "hf_…", "group": "cs101"},
        },
    },
    "GroupIn": {
        "group": {
            "summary": "A course below a department",
            "value": {
                "parent": "cs",
                "max_devices": 4,
                "max_devices_per_user": 1,
                "max_seconds": 7200,
                "guaranteed": 2,
                "weight": 1.0,
                "teachers": ["grace"],
            },
        }
    },
    "DrainIn": {
        "by a date": {
            "summary": "Remaining work is stopped at that time",
            "value": {"until": _AT, "why": "The fan is replaced."},
        }
    },
    "QuarantineIn": {
        "reason": {"summary": "With its reason", "value": {"why": "It computes wrong sums."}}
    },
    "TermIn": {
        "winter": {
            "summary": "A term, both days included",
            "value": {"first": "2026-10-12", "last": "2027-02-15"},
        }
    },
    "ReservationIn": {
        "every week": {
            "summary": "A lab class every Tuesday",
            "value": {
                "group": "cs101",
                "devices": 8,
                "when": "Tue 10:00-12:00 Europe/Berlin",
                "until": "2027-02-15",
                "why": "The lab class.",
            },
        }
    },
    "PinIn": {
        "until": {
            "summary": "The newest build, until the end of the term",
            "value": {"until": "2027-02-15"},
        }
    },
    "AnnouncementIn": {
        "maintenance": {
            "summary": "A maintenance, from now on",
            "value": {
                "text": "On Saturday all sessions are stopped at 18:00 for a maintenance.",
                "level": "warning",
                "ends_at": _AT,
            },
        }
    },
    "PeopleImportIn": {
        "class": {
            "summary": "Two accounts, one of them in two groups",
            "value": {"table": "name,groups,role\nada,cs101 lab,\nben,cs101,user\n"},
        }
    },
    "PersonRolesIn": {
        "move": {
            "summary": "A member of another group, and no longer a teacher",
            "value": {"groups": ["lab"], "teaches": []},
        }
    },
    "PersonIn": {
        "student": {
            "summary": "A student",
            "value": {"name": "ada", "admin": False, "groups": ["cs101"]},
        }
    },
}

_RESERVED: dict[str, Any] = {
    "id": "r-1a2b3c",
    "group": "cs101",
    "devices": 8,
    "when": "Tue 10:00-12:00 Europe/Berlin",
    "first": "2026-11-21",
    "until": "2027-02-15",
    "why": "The lab class.",
    "starts_at": _AT,
    "ends_at": _AT + 7200,
    "running": False,
}

ANSWERS: dict[str, dict[str, Any]] = {
    "ConsequencesOut": {
        "sentences": [
            "cs101 holds 4 devices, above the new maximum of 2: nothing is stopped, nothing new "
            "starts.",
            "3 queued requests could never start.",
        ],
        "saved": False,
    },
    "TermsOut": {
        "terms": [{"name": "winter", "first": "2026-10-12", "last": "2027-02-15", "running": True}]
    },
    "ReservationsOut": {"reservations": [_RESERVED]},
    "ReservationOut": _RESERVED,
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
                "guaranteed": 2,
                "borrowing": None,
                "lending": None,
                "weight": 1.0,
                "models": None,
                "max_sessions": None,
                "sessions_borrow": False,
                "budget": {"device_seconds": 1080000.0, "period": "term"},
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
