"""Sentences about programs and approvals."""

from __future__ import annotations

APPROVAL_DAYS = 3
APPROVAL_SECONDS = APPROVAL_DAYS * 86400.0
"""How long a job waits for approval before it is cancelled."""
PREFIX = "carrel-program-"
"""Tells tokens of programs from those of JupyterHub, and helps to find leaked ones."""
HOW_TO_RENEW = "The owner of the program makes a new one with: carrel token create --program NAME"
"""What to do about a token of a program that is not accepted."""


def is_program_token(token: str) -> bool:
    return token.startswith(PREFIX)


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
