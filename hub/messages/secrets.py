"""Sentences about secrets that belong to another user."""

from __future__ import annotations

from collections.abc import Sequence


def secrets_sentence(secrets: Sequence[str], job: str) -> str:
    """Say which secrets are not copied with a job.

    Args:
        secrets: as ``NAME:file`` or ``NAME:env=VARIABLE``, with ``@GROUP`` for those of a group.
        job: the job that used them, for the sentence.
    """
    names = ", ".join(secrets)
    return (
        f"{job} used secrets of its owner, which are not copied: {names}. If the job needs them, "
        "set your own with these names (page Secrets), and enter them under “More settings”."
    )
