"""Sentences about programs and approvals."""

from __future__ import annotations

APPROVAL_DAYS = 3
APPROVAL_SECONDS = APPROVAL_DAYS * 86400.0
"""How long a job waits for approval before it is cancelled."""


def approval_sentence(name: str, request_id: str) -> str:
    """Return why a job waits for its owner."""
    return (
        f"It needs the approval of its owner, because it is larger than the program {name} may "
        f"submit alone: see the page Programs, or `carrel approve {request_id}`. It is cancelled "
        f"after {APPROVAL_DAYS} days without one."
    )


def group_refusal(group: str) -> str:
    """Return what to do about a group that does not allow programs."""
    return (
        f"An administrator can allow them with: carrel group set {group} --programs. Those of its "
        "teachers are always allowed."
    )
