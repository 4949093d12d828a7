"""Examples for the OpenAPI description: requests and responses."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from ...errors import (
    CarrelError,
    IllegalMove,
    InvalidInput,
    NotAMember,
    NotFound,
    NotSignedIn,
    TooLarge,
    TooManyCalls,
    Unavailable,
)
from ...records.edits import ChangedMeanwhile
from ..html.documentation import problem_type
from . import (
    admin_examples,
    comparison_examples,
    course_examples,
    gallery_examples,
    notification_examples,
    program_examples,
    usage_examples,
)

_AT = 1_795_258_800.0
_NOTEBOOK = (
    '{"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": {"name": "python3", '
    '"display_name": "Python 3"}}, "cells": [{"id": "a", "cell_type": "code", "metadata": {}, '
    '"source": "print(1)", "outputs": [], "execution_count": null}]}'
)

BODY_EXAMPLES: dict[str, dict[str, dict[str, Any]]] = {
    **comparison_examples.BODIES,
    **admin_examples.BODIES,
    **course_examples.BODIES,
    **notification_examples.BODIES,
    **gallery_examples.BODIES,
    **program_examples.BODIES,
    "JobIn": {
        "notebook": {
            "summary": "A notebook on one device",
            "value": {
                "group": "cs101",
                "devices": 1,
                "seconds": 3600,
                "notebook": {"name": "train.ipynb", "content": _NOTEBOOK},
                "labels": {"sweep": "7"},
                "idempotency_key": "train-7",
            },
        },
        "command": {
            "summary": "A command in a folder of the home, retried if it is lost",
            "value": {
                "group": "cs101",
                "devices": 1,
                "seconds": 7200,
                "command": ["python", "train.py", "--lr", "0.1"],
                "workdir": "thesis/code",
                "memory_bytes": 8589934592,
                "retries": 2,
            },
        },
        "roles": {
            "summary": "Members that run together: a server, and two to four workers",
            "value": {
                "group": "cs101",
                "seconds": 7200,
                "roles": [
                    {"name": "server", "command": ["python", "server.py"]},
                    {
                        "name": "worker",
                        "command": ["torchrun", "train.py"],
                        "devices": 4,
                        "minimum": 2,
                        "maximum": 4,
                    },
                ],
                "must_succeed": ["worker"],
            },
        },
    },
    "SessionIn": {
        "session": {
            "summary": "Two hours with one device",
            "value": {"devices": 1, "hours": 2.0, "group": "cs101"},
        },
        "held": {
            "summary": "The same, with the device held for its owner when it is available",
            "value": {"devices": 1, "hours": 2.0, "group": "cs101", "claim": True},
        },
    },
    "KernelsIn": {
        "idle": {
            "summary": "Two kernels without a running cell for ten minutes",
            "value": {"count": 2, "running": 0, "cell_seconds_ago": 600.0},
        }
    },
    "HaltIn": {
        "halt": {"summary": "Without a reason", "value": {}},
        "reason": {
            "summary": "With a reason, which its owner sees",
            "value": {"reason": "The node gets a new fan."},
        },
    },
    "RerunIn": {
        "rerun": {"summary": "On the same image and inputs", "value": {"job": "j-7f3k2m9p"}},
        "accept": {
            "summary": "Also if something is gone or has changed",
            "value": {"job": "j-7f3k2m9p", "accept_changes": True},
        },
    },
    "ResumeIn": {
        "resume": {"summary": "After the last cell whose variables were saved", "value": {}},
        "from_cell": {
            "summary": "From the fourth code cell, with more memory",
            "value": {"from_cell": 4, "memory_bytes": 17179869184},
        },
    },
    "ChangeIn": {
        "change": {
            "summary": "One device instead of two, at the same place in the queue",
            "value": {"devices": 1},
        },
        "any_model": {
            "summary": "Devices of any model",
            "value": {"model": None},
        },
    },
    "ExtendIn": {
        "extend": {
            "summary": "Half an hour beyond a limit of one hour; safe to repeat",
            "value": {"seconds": 1800, "seen_seconds": 3600},
        }
    },
    "QuotesIn": {
        "quotes": {
            "summary": "One hour with one device, and with two",
            "value": {
                "quotes": [
                    {"kind": "session", "group": "cs101", "devices": 1, "seconds": 3600},
                    {"kind": "session", "group": "cs101", "devices": 2, "seconds": 3600},
                ]
            },
        }
    },
}

_REQUEST: dict[str, Any] = {
    "id": "j-7f3k2m9p",
    "kind": "job",
    "owner": "student1",
    "group": "cs101",
    "devices": 1,
    "seconds": 3600,
    "state": "queued",
    "submitted_at": _AT,
    "notebook": "train.ipynb",
    "output": "train.ipynb",
    "labels": {"sweep": "7"},
    "wait": {
        "place": 2,
        "ahead": 1,
        "reason": "behind_others",
        "sentence": "Queued at position 2. 1 request is ahead of it.",
        "expected_at": _AT + 1800,
        "latest_at": _AT + 1800,
    },
    "ended": False,
}

ANSWER_EXAMPLES: dict[str, dict[str, Any]] = {
    **admin_examples.ANSWERS,
    **course_examples.ANSWERS,
    **comparison_examples.ANSWERS,
    **notification_examples.ANSWERS,
    **usage_examples.ANSWERS,
    **program_examples.ANSWERS,
    "ApprovalsOut": {"approvals": [{"request": _REQUEST, "cancelled_at": _AT + 3 * 86400}]},
    "RequestOut": _REQUEST,
    "RequestsOut": {"requests": [_REQUEST], "next": "j-7f3k2m9p"},
    "FilesOut": {
        "files": [{"name": "plots/loss.png", "size": 18342, "modified_at": _AT}],
        "left_out": 0,
    },
    "GroupsOut": {
        "groups": [
            {
                "name": "cs101",
                "max_devices": 4,
                "max_devices_per_user": 2,
                "max_seconds": 28800,
                "teachers": ["teacher1"],
            }
        ]
    },
    "WatchOut": {
        "state": "running",
        "warning": {
            "kind": "idle",
            "stops_at": _AT + 600,
            "message": "This session has been idle for 30 min and holds 1 device.",
            "seen": [
                "Its kernel ran no cell.",
                "Its processes used 0.4 s of CPU.",
                "NVIDIA H200 #0 did no work; 1 process on it, 3 GiB of its memory in use.",
            ],
            "can_keep": True,
        },
        "held": {
            "request_id": "s-4c8x5w2n",
            "server_name": "gpu",
            "claim_by": _AT + 900,
            "message": (
                "Your device is ready and held for the session gpu. "
                "Claim it before the time runs out."
            ),
        },
        "shown": "warning",
        "again_seconds": 5.0,
        "follow": ["s-7f3k2m9p", "s-4c8x5w2n"],
    },
    "QueueOut": {
        "queue": [
            {
                "place": 1,
                "kind": "session",
                "devices": 1,
                "sentence": "Queued at position 1.",
                "expected_at": _AT + 600,
                "yours": False,
            },
            {
                "place": 2,
                "kind": "job",
                "devices": 1,
                "sentence": "Queued at position 2. 1 request is ahead of it.",
                "expected_at": _AT + 1800,
                "yours": True,
                "request_id": "j-7f3k2m9p",
                "owner": "student1",
                "group": "cs101",
                "title": "train.ipynb",
            },
        ],
        "total": 2,
    },
    "UtilizationsOut": {
        "attempts": [
            {
                "epoch": 1,
                "begins_at": _AT,
                "seconds": 5.0,
                "cores": [None, 0.98, 1.02],
                "memory_bytes": [402653184, 805306368, 1073741824],
                "device_percent": [0.0, 84.5, 91.0],
                "device_bytes": [1073741824, 4294967296, 4294967296],
                "mean_cores": 1.0,
                "peak_memory_bytes": 1073741824,
                "mean_device_percent": 58.5,
                "peak_device_bytes": 4294967296,
            }
        ]
    },
    "QuotesOut": {
        "quotes": [
            {
                "admitted": True,
                "sentence": "Queued at position 2, starts in about 30 min. "
                "1 request is ahead of it.",
                "group": "cs101",
                "devices": 1,
                "starts_now": False,
                "place": 2,
                "ahead": 1,
                "expected_at": _AT + 1800,
                "latest_at": _AT + 1800,
                "device_seconds": 3600.0,
                "message": "",
                "accepted": "",
            },
            {
                "admitted": False,
                "sentence": "One person may hold at most 1 device in cs101 at one time; you asked "
                "for 2. Ask for 0 to 1.",
                "group": "cs101",
                "devices": 2,
                "message": "One person may hold at most 1 device in cs101 at one time; you asked "
                "for 2.",
                "accepted": "Ask for 0 to 1.",
            },
        ]
    },
    "PublicKeyOut": {
        "algorithm": "Ed25519",
        "id": "21fe31dfa154a261",
        "key": "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
        "pem": "-----BEGIN PUBLIC KEY-----\n"
        "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
        "-----END PUBLIC KEY-----\n",
    },
    "MeOut": {"name": "student1", "admin": False, "groups": ["cs101"], "teaches": []},
}

_PROBLEMS: dict[int, CarrelError] = {
    400: InvalidInput("The field 'devices' is 'two' (text).", accepted="A whole number."),
    401: NotSignedIn("You are not signed in.", accepted="Send a JupyterHub token."),
    403: NotAMember("You are not a member of cs102.", accepted="Your groups: cs101."),
    404: NotFound("There is no request j-7f3k2m9p."),
    409: IllegalMove("A request that is succeeded cannot grant."),
    412: ChangedMeanwhile(
        "It has changed since you read it: group set of cs101 by ada at 2026-11-25 14:02 UTC.",
        accepted="Nothing was saved. Compare with the current values, then repeat the change.",
    ),
    413: TooLarge("train.ipynb has 40 MiB.", accepted="At most 32 MiB."),
    429: TooManyCalls("You make more calls than one user may.", accepted="Wait 2 s and try again."),
    503: Unavailable("JupyterHub does not answer.", accepted="Try again in a moment."),
}


def problem_example(status: int) -> dict[str, Any]:
    """Return an example error of this status."""
    error = _PROBLEMS[status]
    fields = {"code": error.code, "accepted": error.accepted}
    return {
        "type": problem_type(error),
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": error.message,
        **fields,
        "request_id": "r-5f0c6a2be19d4c37",
        "error": {**fields, "message": error.message},
    }
