"""Examples of courses for the OpenAPI description."""

from __future__ import annotations

from typing import Any

_AT = 1_795_258_800.0
_SHA256 = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
_FILES = [{"name": "ps1.ipynb", "content": "eyJjZWxscyI6IFtdfQ=="}]

BODIES: dict[str, dict[str, dict[str, Any]]] = {
    "CourseIn": {
        "course": {
            "summary": "A course with its class",
            "value": {
                "name": "cs101",
                "title": "Introduction",
                "teachers": ["grace"],
                "students": "student,name,section\nada,Ada Lovelace,blue\n",
                "guaranteed": 8,
                "max_devices": 20,
                "budget": {"device_seconds": 1080000.0, "period": "term"},
            },
        }
    },
    "CloneIn": {
        "clone": {
            "summary": "For the next term",
            "value": {"name": "cs101-summer", "teachers": ["grace"]},
        }
    },
    "RosterIn": {
        "roster": {"summary": "Two students", "value": {"students": "student\nada\nben\n"}}
    },
    "ReleaseIn": {
        "first": {
            "summary": "The teacher's notebook, due in February",
            "value": {
                "files": _FILES,
                "due": "2027-02-01 18:00 Europe/Berlin",
                "late": "24h:-10%",
                "devices": 0,
                "seconds": 600,
            },
        },
        "due date": {
            "summary": "Another due date for a released assignment",
            "value": {"due": "2027-02-03 18:00 Europe/Berlin"},
        },
    },
    "SubmitIn": {"notebook": {"summary": "One notebook", "value": {"files": _FILES, "version": 1}}},
    "GradeIn": {
        "all": {"summary": "The whole class", "value": {}},
        "question": {"summary": "Grade one question again", "value": {"question": "squares"}},
    },
    "ManualPointsIn": {
        "points": {
            "summary": "Points and a comment on an answer without points so far",
            "value": {
                "person": "ada",
                "notebook": "ps1",
                "cell": "essay",
                "points": 2.5,
                "comment": "Say why.",
                "seen": {"points": None, "comment": ""},
            },
        }
    },
    "RegradeIn": {
        "cell": {
            "summary": "About one cell",
            "value": {"notebook": "ps1", "cell": "essay", "text": "I did say why, in line 3."},
        }
    },
    "RegradeReplyIn": {
        "answer": {
            "summary": "Answer and close",
            "value": {"text": "True: you have 3 points now.", "close": True},
        }
    },
    "FeedbackIn": {"person": {"summary": "For one student", "value": {"person": "ada"}}},
    "ExtensionIn": {
        "person": {
            "summary": "Two days for one student",
            "value": {"person": "ada", "seconds": 172800, "why": "ill"},
        }
    },
    "PrefixIn": {
        "on": {"summary": "For jobs with one device", "value": {"on": True, "devices": 1}},
        "off": {"summary": "Switch it off", "value": {"on": False}},
    },
    "LeaderboardIn": {
        "open": {
            "summary": "Five submissions a day, scored by accuracy",
            "value": {
                "metric": "accuracy",
                "per_day": 5,
                "files": [
                    {"name": "leaderboard.py", "content": "aW1wb3J0IHRvcmNoCg=="},
                ],
            },
        },
        "change": {
            "summary": "The last submission counts, and private scores are shown in the end",
            "value": {"per_day": 5, "counts": "last", "private_after_due": True},
        },
    },
    "WeightsIn": {
        "weights": {
            "summary": "A safetensors file",
            "value": {"file": {"name": "weights.safetensors", "content": "AAAAAAAAAAA="}},
        },
    },
    "OfficialCheckRuleIn": {
        "verdict": {"summary": "Three runs a day, without names", "value": {"per_day": 3}},
        "names": {
            "summary": "One run a day, which names the tests",
            "value": {"per_day": 1, "names_cells": True},
        },
    },
    "RehearsalIn": {
        "next": {"summary": "On the newest build of the course's image", "value": {}},
        "candidate": {
            "summary": "One assignment on a candidate image",
            "value": {"image": f"datascience@sha256:{_SHA256}", "assignment": "ps1"},
        },
    },
    "OutageIn": {
        "all": {
            "summary": "Three hours, for all courses",
            "value": {"starts_at": _AT, "ends_at": _AT + 10800, "why": "The power was off."},
        }
    },
}

ANSWERS: dict[str, dict[str, Any]] = {
    "ReceiptOut": {
        "id": 17,
        "number": 1,
        "course": "cs101",
        "assignment": "ps1",
        "person": "ada",
        "at": _AT,
        "sha256": _SHA256,
        "files": [{"name": "ps1.ipynb", "sha256": _SHA256, "size": 4711}],
        "size": 4711,
        "standing": "on time",
        "penalty": 0.0,
        "counts": True,
        "sentence": "On time; this one is graded.",
        "missing": [],
    },
}
