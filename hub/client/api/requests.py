"""Calls for requests and their output."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing

from ...schemas import FilesOut, JobIn, RequestOut, RequestsOut
from ..transport.calls import Call
from ..transport.connection import Connection, segment
from ..transport.downloads import LogPart, OutputFile

PAGE = 200


class RequestCalls(Connection):
    """Submit, find, read and cancel."""

    async def submit(self, job: JobIn) -> RequestOut:
        """Submit a job.

        With an idempotency key it is retried after a lost connection: the service returns the first
        request with the same key.
        """
        # Defaults are not sent, so that an older service understands the request.
        body = {"kind": job.kind} | job.model_dump(mode="json", exclude_unset=True)
        call = Call(method="POST", path="requests", json=body)
        if job.idempotency_key:
            return await self._repeated(call, RequestOut)
        return self._read(await self._transport.send(call), RequestOut)

    async def page(
        self,
        *,
        kind: str | None = None,
        states: Iterable[str] = (),
        labels: Mapping[str, str] | None = None,
        owner: str | None = None,
        text: str = "",
        mine: bool = True,
        limit: int = PAGE,
        cursor: str = "",
    ) -> RequestsOut:
        """Return one page, newest first; its ``next`` is the ``cursor`` of the next page.

        Without ``mine`` it includes the groups that the caller teaches. Any of several ``states``
        matches; all of several ``labels`` must match.
        """
        query: dict[str, str | int | list[str]] = {"limit": limit, "mine": str(mine).lower()}
        if wanted := sorted(states):
            query["state"] = wanted
        if labels:
            query["label"] = [f"{key}={value}" for key, value in sorted(labels.items())]
        query |= {
            name: value
            for name, value in (
                ("kind", kind),
                ("owner", owner),
                ("text", text),
                ("cursor", cursor),
            )
            if value
        }
        return self._read(
            await self._transport.send(Call(method="GET", path="requests", query=query)),
            RequestsOut,
        )

    async def requests(
        self,
        *,
        kind: str | None = None,
        states: Iterable[str] = (),
        labels: Mapping[str, str] | None = None,
        owner: str | None = None,
        text: str = "",
        mine: bool = True,
        limit: int | None = PAGE,
    ) -> list[RequestOut]:
        """Return the newest requests of ``page``, from as many pages as needed.

        ``limit=None`` returns all.
        """
        wanted = tuple(states)
        found: list[RequestOut] = []
        cursor = ""
        while limit is None or len(found) < limit:
            left = PAGE if limit is None else min(PAGE, limit - len(found))
            page = await self.page(
                kind=kind,
                states=wanted,
                labels=labels,
                owner=owner,
                text=text,
                mine=mine,
                limit=left,
                cursor=cursor,
            )
            found += page.requests
            cursor = page.next
            if not cursor:
                break
        return found

    async def request(self, request_id: str) -> RequestOut:
        return await self._get(f"requests/{segment(request_id)}", RequestOut)

    async def cancel(self, request_id: str, reason: str = "") -> RequestOut:
        """Cancel it; an ended request does not change. Its owner sees the reason."""
        query = {"reason": reason} if reason else {}
        call = Call(method="DELETE", path=f"requests/{segment(request_id)}", query=query)
        return self._read(await self._transport.send(call), RequestOut)

    async def log(self, request_id: str, offset: int = 0) -> LogPart:
        """Return its log from a byte offset on."""
        path = f"requests/{segment(request_id)}/log"
        answer = await self._transport.send(Call(method="GET", path=path, query={"offset": offset}))
        return LogPart.of(answer, offset)

    async def whole_log(self, request_id: str) -> AsyncGenerator[bytes, None]:
        """Yield the complete log so far, in parts."""
        part = await self.log(request_id)
        while part.content:
            yield part.content
            part = await self.log(request_id, part.next_offset)

    async def output(self, request_id: str) -> OutputFile:
        """Return the output notebook; NotFound before there is one."""
        path = f"requests/{segment(request_id)}/output"
        answer = await self._transport.send(Call(method="GET", path=path))
        return OutputFile.of(answer, request_id)

    async def files(self, request_id: str) -> FilesOut:
        """Return the list of its files in ``$CARREL_OUTPUT_DIR``."""
        return await self._get(f"requests/{segment(request_id)}/files", FilesOut)

    async def file(self, request_id: str, name: str) -> AsyncGenerator[bytes, None]:
        """Yield the content of one of its files, in parts."""
        inner = "/".join(segment(part) for part in name.split("/"))
        call = Call(
            method="GET",
            path=f"requests/{segment(request_id)}/files/{inner}",
            headers={"Accept": "*/*"},
        )
        async with aclosing(self._transport.parts(call)) as parts:
            async for part in parts:
                yield part
