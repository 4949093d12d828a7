"""Examples of usage and pool history for the OpenAPI description."""

from __future__ import annotations

from typing import Any

_AT = 1_795_258_800.0
_WAITS = {"kind": "session", "count": 12, "median_seconds": 40.0, "ninetieth_seconds": 900.0}
_REPORT_ROW = {
    "device_seconds": 7200.0,
    "of_pool": 0.25,
    "money": "5.00",
    "kwh": 1.4,
    "measured_seconds": 7000.0,
    "idle_seconds": 1800.0,
    "idle_money": "1.25",
    "granted": 12,
    "median_wait_seconds": 40.0,
    "ninetieth_wait_seconds": 900.0,
}

_WAIT_NOW = {
    "requests": 812,
    "median_wait_seconds": 40.0,
    "ninetieth_wait_seconds": 900.0,
    "utilization": 0.71,
}
_WAIT_CHANGED = {
    "requests": 812,
    "median_wait_seconds": 2.0,
    "ninetieth_wait_seconds": 120.0,
    "utilization": 0.47,
}

ANSWERS: dict[str, dict[str, Any]] = {
    "SecretsOut": {
        "secrets": [
            {
                "name": "HF_TOKEN",
                "group": "",
                "set_by": "student1",
                "set_at": _AT,
                "used_at": _AT + 600,
                "used_by": "student1",
                "used_in": "j-7f3k2m9p",
            }
        ]
    },
    "UsageReport": {
        "device_seconds": 5400.0,
        "by_group": [{"owner": "student1", "group": "cs101", "charged": 5340.0, "open": 60.0}],
        "by": "day",
        "since": _AT - 86400,
        "rows": [
            {
                "day": "2026-11-21",
                "charged": 5340.0,
                "open": 60.0,
                "first_at": _AT,
                "last_at": _AT + 5400,
            }
        ],
        "rows_left_out": 0,
        "ledger": [
            {
                "id": 7,
                "lease_id": "j-7f3k2m9p.1",
                "request_id": "j-7f3k2m9p",
                "epoch": 1,
                "owner": "student1",
                "group": "cs101",
                "devices": 1,
                "starts_at": _AT,
                "ends_at": _AT + 5340,
                "device_seconds": 5340.0,
                "kind": "charge",
            }
        ],
        "ledger_complete": True,
    },
    "ProofDocument": {
        "kind": "carrel proof",
        "format": 1,
        "head": {
            "text": '{"at":1795258800.0,"format":1,"kind":"carrel log head","root":"…","size":9}',
            "key": "21fe31dfa154a261",
            "signature": "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
        },
        "logs": [],
    },
    "SiteReportOut": {
        "since": _AT - 30 * 86400,
        "until": _AT,
        "utilization": 0.5,
        "currency": "EUR",
        "total": {**_REPORT_ROW, "name": ""},
        "waits": [_WAITS],
        "by_group": [{**_REPORT_ROW, "name": "cs101"}],
        "by_user": [{**_REPORT_ROW, "name": "student1"}],
        "by_course": [{**_REPORT_ROW, "name": "cs101"}],
        "by_model": [
            {
                "name": "NVIDIA H100",
                "device_seconds": 7200.0,
                "of_pool": 0.25,
                "money": "5.00",
                "kwh": 1.4,
                "measured_seconds": 7000.0,
                "idle_seconds": 1800.0,
                "idle_money": "1.25",
            }
        ],
        "notes": ["kWh is an estimate from the watts of each model in the settings."],
    },
    "WhatIfOut": {
        "requests": 812,
        "since": _AT - 90 * 86400,
        "until": _AT,
        "devices": 8,
        "changed_devices": 12,
        "total": {"name": "", "now": _WAIT_NOW, "changed": _WAIT_CHANGED},
        "by_group": [
            {
                "name": "cs101",
                "now": {"requests": 812, "median_wait_seconds": 40.0},
                "changed": {"requests": 812, "median_wait_seconds": 2.0},
            }
        ],
        "notes": ["It rests on 812 requests of the ledger."],
    },
    "SemesterPlanOut": {
        "since": _AT,
        "until": _AT + 60 * 86400,
        "term": "winter",
        "pool": 8,
        "works": [
            {
                "course": "cs101",
                "assignment": "ps1",
                "due": _AT + 5 * 86400,
                "students": 40,
                "device_hours": 80.0,
                "source": "usage before 2 earlier due dates",
            }
        ],
        "days": [
            {
                "day": "2026-12-01",
                "device_hours": {"cs101": 32.0},
                "reserved": {"lab": 6},
                "needed": 10,
            }
        ],
        "clashes": [
            {"day": "2026-12-01", "needed": 10, "pool": 8, "parts": {"lab": 6, "cs101": 4}}
        ],
        "proposals": [
            {
                "course": "cs101",
                "assignment": "ps1",
                "due": _AT + 5 * 86400,
                "wanted": 4,
                "reservation": {
                    "group": "cs101",
                    "devices": 2,
                    "when": "2026-12-01 13:59-23:59 Europe/Berlin",
                    "why": "Before ps1 is due",
                },
            }
        ],
        "notes": ["lab has no students: nothing is planned for it."],
    },
    "ForecastHistoryOut": {
        "goal": 0.9,
        "weeks": [
            {
                "week": "2026-11-23",
                "run_times": {
                    "outcomes": 120,
                    "inside": 0.91,
                    "median_error": 0.18,
                    "stopped": 9,
                },
                "waits": {"outcomes": 34, "inside": 0.62, "median_error": 0.4, "stopped": 2},
            }
        ],
    },
    "EfficiencyOut": {
        "group": "cs101",
        "since": 1795996800.0,
        "until": 1796601600.0,
        "ended": True,
        "device_seconds": 360000.0,
        "measured_device_seconds": 345600.0,
        "unused_device_seconds": 172800.0,
        "low_percent": 30.0,
        "rows": [
            {
                "request_id": "j-7k2m4qpz",
                "kind": "job",
                "title": "train.ipynb",
                "owner": "student1",
                "group": "cs101",
                "device_seconds": 36000.0,
                "used": 0.12,
                "idle": 0.71,
                "unused_device_seconds": 31680.0,
                "signs": ["Devices idle"],
            }
        ],
        "left_out": 0,
    },
    "HistoryOut": {
        "span": "day",
        "group": "cs101",
        "periods": [
            {
                "starts_at": _AT,
                "ends_at": _AT + 3600,
                "leased": 3.0,
                "healthy": 4.0,
                "share": 0.75,
                "queued": 1.5,
                "waits": [_WAITS],
            }
        ],
        "waits": [_WAITS],
    },
}
