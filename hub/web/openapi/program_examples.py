"""Examples of programs for the OpenAPI description."""

from __future__ import annotations

from typing import Any

_AT = 1_795_258_800.0
PROGRAM: dict[str, Any] = {
    "id": "p-4c8x5w2n",
    "name": "tuner",
    "owner": "student1",
    "device_seconds": 18_000.0,
    "used": 5400.0,
    "reserved": 1800.0,
    "left": 10_800.0,
    "approve_above": 3600.0,
    "reads_owner": False,
    "jobs": 7,
    "live_jobs": 1,
    "created_at": _AT,
    "expires_at": _AT + 30 * 86400,
    "revoked_at": None,
    "revoked_by": "",
    "works": True,
}
BODIES: dict[str, dict[str, Any]] = {
    "ProgramIn": {
        "tuner": {
            "summary": "Five device-hours; a job of more than one waits for approval",
            "value": {
                "name": "tuner",
                "device_seconds": 18_000,
                "approve_above": 3600,
                "days": 30,
            },
        },
    },
}
ANSWERS: dict[str, dict[str, Any]] = {
    "ProgramOut": PROGRAM,
    "ProgramsOut": {"programs": [PROGRAM]},
    "NewProgramOut": {
        "program": PROGRAM | {"used": 0.0, "reserved": 0.0, "left": 18_000.0, "jobs": 0},
        "token": "carrel-program-NAeW3pfs1UY2…",
    },
    "DryRunOut": {
        "group": "cs101",
        "devices": 1,
        "seconds": 1800,
        "device_seconds": 1800.0,
        "sentence": "It would start now.",
        "expected_at": _AT,
        "needs_approval": False,
        "device_seconds_left": 9000.0,
        "run_time": {
            "seconds": 420.0,
            "low": 380.0,
            "high": 510.0,
            "basis": "own_parameters",
            "runs": 6,
            "suggested_seconds": 660,
            "sentence": "About 7 min; 9 of 10 such jobs take 6 min 20 s to 8 min 30 s, by 6 "
            "earlier jobs of yours with the same code and parameters.",
        },
        "cost": {
            "device_seconds": 420.0,
            "low": 380.0,
            "high": 510.0,
            "most": 1800.0,
            "known": True,
            "budgets": [
                {
                    "group": "cs101",
                    "period": "week",
                    "left": 36_000.0,
                    "likely_left": 35_580.0,
                    "least_left": 34_200.0,
                }
            ],
            "sentence": "Likely 0.1 device-hours, at most 0.5. The budget of cs101 "
            "for this week has 10.0 left beside running requests: after this job likely 9.9, at "
            "least 9.5.",
        },
    },
}
