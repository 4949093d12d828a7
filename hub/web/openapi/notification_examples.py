"""Examples of notifications for the OpenAPI description."""

from __future__ import annotations

from typing import Any

_AT = 1_795_258_800.0
_CHANNEL = {
    "id": "n-1a2b3c4d5e",
    "kind": "mail",
    "address": "st…@example.edu",
    "events": ["session-ready", "job-attention"],
    "confirmed": True,
    "problem": "",
    "stopped": False,
    "waiting": 0,
    "last_sent_at": _AT,
}

BODIES: dict[str, dict[str, dict[str, Any]]] = {
    "ChannelIn": {
        "mail": {
            "summary": "Your e-mail address, as the site knows it",
            "value": {"address": "", "events": ["session-ready", "job-attention"]},
        },
        "webhook": {
            "summary": "A webhook",
            "value": {"address": "jsons://hooks.example.edu/carrel", "events": ["job-ended"]},
        },
    },
    "ChannelEventsIn": {
        "events": {"summary": "Only failed jobs", "value": {"events": ["job-attention"]}}
    },
    "DeliveryTestIn": {
        "all": {"summary": "All your channels", "value": {}},
        "one": {"summary": "One channel", "value": {"channel": "n-1a2b3c4d5e"}},
    },
}
ANSWERS: dict[str, dict[str, Any]] = {
    "ChannelOut": _CHANNEL,
    "ChannelsOut": {
        "channels": [_CHANNEL],
        "available": True,
        "sentence": "Your e-mail address, student1@example.edu.",
        "own_address": "student1@example.edu",
        "dropped": [],
    },
    "DeliveryTestsOut": {
        "results": [
            {
                "channel": "n-1a2b3c4d5e",
                "address": "st…@example.edu",
                "delivered": False,
                "sentence": "The mail server does not answer.",
            }
        ]
    },
}
