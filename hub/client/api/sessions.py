"""Calls for sessions and quotes."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from ...schemas import (
    ChangeIn,
    JobIn,
    KernelsIn,
    QuoteIn,
    QuoteOut,
    QuotesOut,
    RequestOut,
    SessionIn,
    WatchOut,
)
from ...schemas.programs.bodies import DryRunOut
from ..transport.calls import Call
from ..transport.connection import Connection, segment


class SessionCalls(Connection):
    """The part of ``AsyncClient`` for sessions and quotes."""

    async def start_session(self, server: str, options: SessionIn) -> RequestOut:
        """Start a session on a server; "" is the default server.

        With ``claim`` in ``options``, the service holds the device until it is claimed, and a
        ``server`` of "" selects an unused name.
        """
        path = f"sessions/{segment(server or '-')}"
        # Defaults are not sent, so that an older service understands the request.
        return await self._post(path, RequestOut, options.model_dump(exclude_unset=True))

    async def stop_session(self, server: str) -> None:
        path = f"sessions/{segment(server or '-')}"
        await self._transport.send(Call(method="DELETE", path=path))

    async def claim(self, request_id: str) -> RequestOut:
        """Start a session whose device is held. Safe to repeat."""
        return await self._post(f"requests/{segment(request_id)}/claim", RequestOut)

    async def keep_place(self, request_id: str) -> RequestOut:
        """Open a CPU session now.

        The queued session keeps its position; its device is held once it is granted.
        """
        return await self._post(f"requests/{segment(request_id)}/keep-place", RequestOut)

    async def extend(self, request_id: str, seconds: int, *, seen: int | None = None) -> RequestOut:
        """Extend the time limit of a running request.

        Args:
            seconds: the extension.
            seen: the limit in seconds as the caller read it. With it, the call extends that value,
                and is retried after a lost connection.
        """
        path = f"requests/{segment(request_id)}/extend"
        body: dict[str, JsonValue] = {"seconds": seconds}
        if seen is None:
            return await self._post(path, RequestOut, body)
        call = Call(method="POST", path=path, json={**body, "seen_seconds": seen})
        return await self._send_repeatable(call, RequestOut)

    async def change(self, request_id: str, change: ChangeIn) -> RequestOut:
        """Reduce a queued request; it keeps its age in the queue. Safe to repeat.

        Only the fields that are set in ``change`` are sent: a ``model`` of None means any model.
        """
        path = f"requests/{segment(request_id)}/change"
        return await self._post(path, RequestOut, change.model_dump(exclude_unset=True))

    async def keep(self, request_id: str) -> RequestOut:
        """Keep an idle session that is about to be stopped; possible once per session."""
        return await self._post(f"requests/{segment(request_id)}/keep", RequestOut)

    async def report_kernels(self, request_id: str, kernels: KernelsIn) -> WatchOut:
        """Report the activity of the kernels, from within a session."""
        path = f"requests/{segment(request_id)}/kernels"
        return await self._post(path, WatchOut, kernels.model_dump(mode="json"))

    async def dry_run(self, job: JobIn) -> DryRunOut:
        """Return the cost of a job, its expected wait and run time; submit nothing."""
        body = {"kind": job.kind} | job.model_dump(mode="json", exclude_unset=True)
        return await self._post("requests/dry-run", DryRunOut, body)

    async def quotes(self, queries: Sequence[QuoteIn]) -> list[QuoteOut]:
        """Return a quote for each query, as if it were submitted alone and now.

        Nothing is reserved.
        """
        body: dict[str, JsonValue] = {
            "quotes": [query.model_dump(mode="json", exclude_unset=True) for query in queries]
        }
        return (await self._post("quotes", QuotesOut, body)).quotes
