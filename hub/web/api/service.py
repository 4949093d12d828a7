"""REST routes for the service itself: health, the caller and their groups."""

from __future__ import annotations

from fastapi import APIRouter

from ...provenance.signature import PublicKeyOut
from ...schemas import GroupsOut, MeOut
from ..dependencies.callers import Carrel, JobReader, Reader
from ..openapi.description import ERRORS

router = APIRouter(responses=ERRORS)


@router.get("/health", tags=["service"], summary="Is the service up?", responses={})
def health() -> dict[str, str]:
    """Needs no sign-in, and says only that the service responds."""
    return {"status": "ok"}


@router.get("/site-key", tags=["service"], summary="The public key", responses={})
def site_key(web: Carrel) -> PublicKeyOut:
    """Verifies receipts and heads of logs that this site has signed. Needs no sign-in.

    Keep a copy: signatures are then verified without this site, and you notice if the key changes.
    """
    return web.context.signing_key.public.out()


@router.get("/me", tags=["service"], summary="Who am I?")
def me(web: Carrel, who: Reader) -> MeOut:
    """The caller's name, current groups in JupyterHub, and the groups they teach."""
    return web.membership.me(who)


@router.get("/groups", tags=["service"], summary="The groups I may use")
def groups(web: Carrel, who: JobReader) -> GroupsOut:
    """The caller's groups, with the limits that apply to the caller now."""
    return web.membership.groups(who)
