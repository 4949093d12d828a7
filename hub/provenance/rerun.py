"""Bodies of the call that runs a job again by its receipt."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..schemas import In, Out, RequestOut


class RerunIn(In):
    """Body of ``POST /api/v1/reruns``: a job of this site, or a file with a receipt."""

    job: Annotated[str, Field(max_length=64, description="An ended job of this site.")] = ""
    file: Annotated[
        str,
        Field(description="Instead: the text of a receipt, or of an executed notebook with one."),
    ] = ""
    group: Annotated[str, Field(max_length=64, description="By default that of the receipt.")] = ""
    accept_changes: Annotated[
        bool, Field(description="Run also if the image or an input is gone or has changed.")
    ] = False
    dry_run: Annotated[bool, Field(description="Only say what is gone or has changed.")] = False
    idempotency_key: Annotated[str, Field(max_length=128)] = ""


class RerunOut(Out):
    """The new job, and how it differs from the one that it repeats."""

    request: RequestOut | None = None
    """Null for a dry run."""
    rerun_of: str
    changes: list[str] = []
    """What is gone or has changed, one sentence each."""
    unchecked: list[str] = []
    """Inputs that were not compared, with the reason, and further ones that were read."""
