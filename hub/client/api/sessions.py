"""The calls about sessions."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from ...schemas import (
    ChangeIn,
    KernelsIn,
    QuoteIn,
    QuoteOut,
    QuotesOut,
    RequestOut,
    SessionIn,
    WatchOut,
)
from ..transport.calls import Call
from ..transport.connection import Connection, segment


class SessionCalls(Connection):
    """Ask for one, come for it, keep it, stop it; and what would have to be expected."""

    async def start_session(self, server: str, options: SessionIn) -> RequestOut:
        """Ask for a session; ``server`` "" is the default one.

        With ``claim`` its device will be held, and "" is any name that is free.
        """
        path = f"sessions/{segment(server or '-')}"
        # What was left at its default is not sent, so that an older service understands it.
        return await self._post(path, RequestOut, options.model_dump(exclude_unset=True))

    async def stop_session(self, server: str) -> None:
        path = f"sessions/{segment(server or '-')}"
        await self._transport.send(Call(method="DELETE", path=path))

    async def claim(self, request_id: str) -> RequestOut:
        """Start the session whose device is held; twice is the same as once."""
        return await self._post(f"requests/{segment(request_id)}/claim", RequestOut)

    async def keep_place(self, request_id: str) -> RequestOut:
        """Open a CPU session now; the session that waits keeps its place and is held later."""
        return await self._post(f"requests/{segment(request_id)}/keep-place", RequestOut)

    async def extend(self, request_id: str, seconds: int, *, seen: int | None = None) -> RequestOut:
        """Add to the time limit of what runs.

        With ``seen``, the limit as it was seen, it is that one that grows, and the call is sent
        again where the answer got lost.
        """
        path = f"requests/{segment(request_id)}/extend"
        body: dict[str, JsonValue] = {"seconds": seconds}
        if seen is None:
            return await self._post(path, RequestOut, body)
        call = Call(method="POST", path=path, json={**body, "seen_seconds": seen})
        return await self._repeated(call, RequestOut)

    async def change(self, request_id: str, wanted: ChangeIn) -> RequestOut:
        """Ask for less while it waits; it keeps its age in the queue. Safe to repeat.

        Only what is set in ``wanted`` is sent: a ``model`` of None is, and means any.
        """
        path = f"requests/{segment(request_id)}/change"
        return await self._post(path, RequestOut, wanted.model_dump(exclude_unset=True))

    async def keep(self, request_id: str) -> RequestOut:
        """Keep a session that is about to be stopped for being idle: once."""
        return await self._post(f"requests/{segment(request_id)}/keep", RequestOut)

    async def tell_kernels(self, request_id: str, kernels: KernelsIn) -> WatchOut:
        """From within a session: what its kernels do."""
        path = f"requests/{segment(request_id)}/kernels"
        return await self._post(path, WatchOut, kernels.model_dump(mode="json"))

    async def quotes(self, asked: Sequence[QuoteIn]) -> list[QuoteOut]:
        """What each of these would have to expect, sent alone and now; reserves nothing."""
        body: dict[str, JsonValue] = {
            "quotes": [each.model_dump(mode="json", exclude_unset=True) for each in asked]
        }
        return (await self._post("quotes", QuotesOut, body)).quotes
