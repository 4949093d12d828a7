"""REST routes for the service itself: health, the caller and their groups."""

from __future__ import annotations

from fastapi import APIRouter

from ...schemas import GroupsOut, MeOut
from ..dependencies.callers import Carrel, Reader
from ..openapi.description import ERRORS

router = APIRouter(responses=ERRORS)


@router.get("/health", tags=["service"], summary="Is the service up?", responses={})
def health() -> dict[str, str]:
    """Needs no sign-in, and says only that the service responds."""
    return {"status": "ok"}


@router.get("/me", tags=["service"], summary="Who am I?")
def me(web: Carrel, who: Reader) -> MeOut:
    """The caller's name, current groups in JupyterHub, and the groups they teach."""
    return web.membership.me(who)


@router.get("/groups", tags=["service"], summary="The groups I may use")
def groups(web: Carrel, who: Reader) -> GroupsOut:
    """The caller's groups, with the limits that apply to the caller now."""
    return web.membership.groups(who)
