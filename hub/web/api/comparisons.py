"""REST routes that compare runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from ...comparison.schemas import ComparisonIn, ComparisonOut
from ..dependencies.bodies import json_body
from ..dependencies.callers import Carrel, Reader
from ..openapi.description import ERRORS, body_of

router = APIRouter(responses=ERRORS, tags=["requests"])


@router.post("/comparisons", summary="Compare two runs", openapi_extra=body_of(ComparisonIn))
def compare(
    web: Carrel, who: Reader, body: Annotated[ComparisonIn, Depends(json_body(ComparisonIn))]
) -> ComparisonOut:
    """Compares two jobs that have ended and that the caller may see, or executed notebooks.

    Sources are compared by lines, images by pixels, tables by cell, and the numbers of all other
    outputs under the tolerance; also parameters, the command, the image and versions. Nothing is
    stored. Notebooks have at most 32 MiB, and the comparison takes at most 30 s.
    """
    return web.comparisons.compare(who, body)
