"""Dependencies of routes: the context, and the caller with the required rights."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated

from fastapi import Depends, Path, Query, Request

from ...records.identity import Identity
from ..html.urls import MOST_NEXT
from .context import WebContext, web_of
from .edit_versions import IfMatch, base_on_header


async def _web(request: Request) -> WebContext:
    return web_of(request)  # async, so that it does not use a worker thread


Carrel = Annotated[WebContext, Depends(_web)]


async def _reader(request: Request) -> Identity:
    return await web_of(request).caller_access.reader(request)


async def _reader_or_hub(request: Request) -> Identity | None:
    return await web_of(request).caller_access.reader_or_hub(request)


async def _writer(request: Request, if_match: IfMatch = None) -> Identity:
    who = await web_of(request).caller_access.writer(request)
    base_on_header(if_match)
    return who


async def _job_reader(request: Request) -> Identity:
    return await web_of(request).caller_access.job_reader(request)


async def _job_reader_or_hub(request: Request) -> Identity | None:
    return await web_of(request).caller_access.job_reader_or_hub(request)


async def _job_writer(request: Request, if_match: IfMatch = None) -> Identity:
    who = await web_of(request).caller_access.job_writer(request)
    base_on_header(if_match)
    return who


async def _signed_in(request: Request) -> Callable[[], Awaitable[bool]]:
    return partial(web_of(request).caller_access.accepts, request)


SignedIn = Annotated[Callable[[], Awaitable[bool]], Depends(_signed_in)]
"""Whether the caller of a stream is still signed in."""
Reader = Annotated[Identity, Depends(_reader)]
ReaderOrHub = Annotated[Identity | None, Depends(_reader_or_hub)]
Writer = Annotated[Identity, Depends(_writer)]
JobReader = Annotated[Identity, Depends(_job_reader)]
"""A user, or a program within its rights: ``who.program`` is then set."""
JobReaderOrHub = Annotated[Identity | None, Depends(_job_reader_or_hub)]
JobWriter = Annotated[Identity, Depends(_job_writer)]
RequestId = Annotated[str, Path(description="Such as `j-7f3k2m9p` or `s-4c8x5w2n`.", max_length=64)]
Server = Annotated[str, Path(description="Name of the session; `-` is the default one.")]


Next = Annotated[str, Query(max_length=MOST_NEXT)]
"""The page inside a session that a link asked for; used only if it is inside the session."""
