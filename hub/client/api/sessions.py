"""Calls for sessions and quotes."""

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
    """Start, claim, keep and stop sessions; quote requests."""

    async def start_session(self, server: str, options: SessionIn) -> RequestOut:
        """Start a session; ``server`` "" is the default one.

        With ``claim`` its device will be held, and "" is any unused name.
        """
        path = f"sessions/{segment(server or '-')}"
        # Defaults are not sent, so that an older service understands the request.
        return await self._post(path, RequestOut, options.model_dump(exclude_unset=True))

    async def stop_session(self, server: str) -> None:
        path = f"sessions/{segment(server or '-')}"
        await self._transport.send(Call(method="DELETE", path=path))

    async def claim(self, request_id: str) -> RequestOut:
        """Start the session whose device is held. Safe to repeat."""
        return await self._post(f"requests/{segment(request_id)}/claim", RequestOut)

    async def keep_place(self, request_id: str) -> RequestOut:
        """Open a CPU session now; the queued session keeps its position and is held later."""
        return await self._post(f"requests/{segment(request_id)}/keep-place", RequestOut)

    async def extend(self, request_id: str, seconds: int, *, seen: int | None = None) -> RequestOut:
        """Extend the time limit of a running request.

        With ``seen``, the limit as the caller read it, that value is extended, and the call is
        retried after a lost connection.
        """
        path = f"requests/{segment(request_id)}/extend"
        body: dict[str, JsonValue] = {"seconds": seconds}
        if seen is None:
            return await self._post(path, RequestOut, body)
        call = Call(method="POST", path=path, json={**body, "seen_seconds": seen})
        return await self._repeated(call, RequestOut)

    async def change(self, request_id: str, wanted: ChangeIn) -> RequestOut:
        """Request less while it is queued; it keeps its age in the queue. Safe to repeat.

        Only fields that are set in ``wanted`` are sent: a ``model`` of None means any.
        """
        path = f"requests/{segment(request_id)}/change"
        return await self._post(path, RequestOut, wanted.model_dump(exclude_unset=True))

    async def keep(self, request_id: str) -> RequestOut:
        """Keep an idle session that is about to be stopped, once."""
        return await self._post(f"requests/{segment(request_id)}/keep", RequestOut)

    async def tell_kernels(self, request_id: str, kernels: KernelsIn) -> WatchOut:
        """Report the activity of the kernels, from within a session."""
        path = f"requests/{segment(request_id)}/kernels"
        return await self._post(path, WatchOut, kernels.model_dump(mode="json"))

    async def quotes(self, asked: Sequence[QuoteIn]) -> list[QuoteOut]:
        """Quote each of these, as if submitted alone and now; nothing is reserved."""
        body: dict[str, JsonValue] = {
            "quotes": [each.model_dump(mode="json", exclude_unset=True) for each in asked]
        }
        return (await self._post("quotes", QuotesOut, body)).quotes
