"""Examples of usage and pool history for the OpenAPI description."""

from __future__ import annotations

from typing import Any

_AT = 1_795_258_800.0
_WAITS = {"kind": "session", "count": 12, "median_seconds": 40.0, "ninetieth_seconds": 900.0}

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
