"""REST route for links: what a session is to open."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query

from ....schemas.open_links.bodies import MaterialOut
from ...dependencies.callers import Carrel, Reader
from ...openapi.description import ERRORS

Ticket = Annotated[
    str, Query(max_length=2000, description="From the address that a confirmed link leads to.")
]

router = APIRouter(responses=ERRORS, tags=["sessions"])


@router.get("/open-links/material", summary="The material of a confirmed link")
def material(web: Carrel, who: Reader, ticket: Ticket) -> MaterialOut:
    """JupyterLab asks for it with the `carrel-open` of its address, and fetches the files."""
    return MaterialOut(**asdict(web.open_links.read(who.name, ticket)))
