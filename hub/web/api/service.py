"""REST routes for the service itself: health, the caller, their groups and compile cache."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from ...provenance.signature import PublicKeyOut
from ...schemas import GroupsOut, MeOut
from ...schemas.usage import CompileCacheOut
from ..dependencies.callers import Carrel, JobReader, Reader, RequestId, Writer
from ..openapi.description import ERRORS

CacheOwner = Annotated[
    str, Query(max_length=255, description="Another user, for administrators; by default you.")
]

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


@router.get("/compile-cache", tags=["service"], summary="What my jobs have compiled")
def compile_cache(web: Carrel, who: Reader, owner: CacheOwner = "") -> CompileCacheOut:
    """What is kept of it for your next jobs: one entry for each program, image and node.

    If it is more than `limit` bytes, the entries that were not used for longest are deleted.
    """
    return web.compile_caches.show(who, owner)


@router.delete("/compile-cache", tags=["service"], summary="Delete what my jobs have compiled")
def clear_compile_cache(web: Carrel, who: Writer, owner: CacheOwner = "") -> CompileCacheOut:
    """Your next jobs compile again. Safe to repeat; returns what is left.

    Running jobs have a copy of their own and go on; what they compile is kept when they end.
    """
    return web.compile_caches.clear(who, owner=owner)


@router.delete(
    "/compile-cache/{request_id}", tags=["service"], summary="Delete what one job has compiled"
)
def clear_compile_cache_of_job(
    web: Carrel, who: Writer, request_id: RequestId, owner: CacheOwner = ""
) -> CompileCacheOut:
    """The entry of its program. Returns what is left."""
    return web.compile_caches.clear(who, request_id, owner=owner)
