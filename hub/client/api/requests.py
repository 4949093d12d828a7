"""Calls for requests and their output."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing

from ...comparison.schemas import ComparisonIn, ComparisonOut
from ...provenance.rerun import RerunIn, RerunOut
from ...schemas import FilesOut, JobIn, PipelineOut, RequestOut, RequestsOut, UtilizationsOut
from ...schemas.resume import HaltIn, ResumeIn, ResumeOut
from ...schemas.sweeps import ReportsOut, SharingOut, TrialsOut
from ..transport.calls import Call
from ..transport.connection import Connection, segment
from ..transport.downloads import LogPart, OutputFile

PAGE = 200
COMPARISON_SECONDS = 60.0
"""The service waits 5 s for other comparisons, and then compares for at most 30 s."""


class RequestCalls(Connection):
    """The part of ``AsyncClient`` for requests: submit, find, read and cancel."""

    async def submit(self, job: JobIn) -> RequestOut:
        """Submit a job.

        With an idempotency key the call is retried after a lost connection: the service returns
        the first request with the same key.
        """
        # Defaults are not sent, so that an older service understands the request.
        body = {"kind": job.kind} | job.model_dump(mode="json", exclude_unset=True)
        call = Call(method="POST", path="requests", json=body)
        if job.idempotency_key:
            return await self._send_repeatable(call, RequestOut)
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
        """Return one page of requests, newest first.

        Args:
            states: a request matches if it is in any of them.
            labels: a request matches if it has all of them.
            mine: False includes the requests of groups that the caller teaches.
            limit: the most requests on the page.
            cursor: ``next`` of the previous page; empty for the first page.
        """
        query: dict[str, str | int | list[str]] = {"limit": limit, "mine": str(mine).lower()}
        if state_names := sorted(states):
            query["state"] = state_names
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
        """Return the newest requests that match, from as many pages as needed.

        Args:
            limit: the most requests to return; None for all. For the others see ``page``.
        """
        state_names = tuple(states)
        requests: list[RequestOut] = []
        cursor = ""
        while limit is None or len(requests) < limit:
            page_size = PAGE if limit is None else min(PAGE, limit - len(requests))
            page = await self.page(
                kind=kind,
                states=state_names,
                labels=labels,
                owner=owner,
                text=text,
                mine=mine,
                limit=page_size,
                cursor=cursor,
            )
            requests += page.requests
            cursor = page.next
            if not cursor:
                break
        return requests

    async def request(self, request_id: str) -> RequestOut:
        return await self._get(f"requests/{segment(request_id)}", RequestOut)

    async def cancel(self, request_id: str, reason: str = "") -> RequestOut:
        """Cancel a request; the owner sees the reason. A request that has ended does not change."""
        query = {"reason": reason} if reason else {}
        call = Call(method="DELETE", path=f"requests/{segment(request_id)}", query=query)
        return self._read(await self._transport.send(call), RequestOut)

    async def halt(self, request_id: str, reason: str = "") -> RequestOut:
        """Let a running job save its work, and stop it; the owner sees the reason."""
        body = HaltIn(reason=reason).model_dump(mode="json", exclude_unset=True)
        call = Call(method="POST", path=f"requests/{segment(request_id)}/halt", json=body)
        return self._read(await self._transport.send(call), RequestOut)

    async def resume(self, request_id: str, how: ResumeIn | None = None) -> ResumeOut:
        """Queue a job that goes on with an ended one, and say from which cell."""
        body = (how or ResumeIn()).model_dump(mode="json", exclude_unset=True)
        call = Call(method="POST", path=f"requests/{segment(request_id)}/resume", json=body)
        return self._read(await self._transport.send(call), ResumeOut)

    async def compare(self, runs: ComparisonIn) -> ComparisonOut:
        """Compare two runs: jobs that have ended, or executed notebooks."""
        body = runs.model_dump(mode="json", exclude_unset=True)
        call = Call(method="POST", path="comparisons", json=body, silence=COMPARISON_SECONDS)
        return self._read(await self._transport.send(call), ComparisonOut)

    async def log(self, request_id: str, offset: int = 0, *, member: int = 0) -> LogPart:
        """Return a part of the log, from a byte offset on.

        ``member``: the rank of a member of a job of several members.
        """
        path = f"requests/{segment(request_id)}/log"
        query = {"offset": offset} | ({"member": member} if member else {})
        call = Call(method="GET", path=path, query=query)
        return LogPart.of(await self._transport.send(call), offset)

    async def whole_log(self, request_id: str, *, member: int = 0) -> AsyncGenerator[bytes, None]:
        """Yield the log up to now, in parts; ``member`` as for ``log``."""
        part = await self.log(request_id, member=member)
        while part.content:
            yield part.content
            part = await self.log(request_id, part.next_offset, member=member)

    async def output(self, request_id: str) -> OutputFile:
        """Return the output notebook.

        Raises:
            NotFound: there is no output yet.
        """
        path = f"requests/{segment(request_id)}/output"
        response = await self._transport.send(Call(method="GET", path=path))
        return OutputFile.of(response, request_id)

    async def receipt(self, request_id: str) -> bytes:
        """Return the receipt of an ended job, as the file that ``carrel verify`` reads.

        Raises:
            Conflict: the job has not ended.
        """
        path = f"requests/{segment(request_id)}/receipt"
        return (await self._transport.send(Call(method="GET", path=path))).content

    async def rerun(self, what: RerunIn) -> RerunOut:
        """Run a job again by its receipt.

        Raises:
            Conflict: the image or an input is gone or has changed.
        """
        body = what.model_dump(mode="json", exclude_unset=True)
        return await self._post("reruns", RerunOut, body)

    async def files(self, request_id: str) -> FilesOut:
        """Return the list of the job's files in ``$CARREL_OUTPUT_DIR``."""
        return await self._get(f"requests/{segment(request_id)}/files", FilesOut)

    async def pipeline(self, request_id: str) -> PipelineOut:
        """Return the jobs that a job waits for and those that wait for it, over all steps."""
        return await self._get(f"requests/{segment(request_id)}/pipeline", PipelineOut)

    async def trials(self, request_id: str) -> TrialsOut:
        """Return the trials of a sweep. Raises NotFound if the job is none."""
        return await self._get(f"requests/{segment(request_id)}/trials", TrialsOut)

    async def sharing(self, request_id: str) -> SharingOut:
        """Return what the trials of a sweep share. Raises NotFound if the job is none."""
        return await self._get(f"requests/{segment(request_id)}/sharing", SharingOut)

    async def stop_trial(self, request_id: str, number: int) -> TrialsOut:
        """Stop one trial of a running sweep.

        Raises:
            Conflict: the sweep does not run.
        """
        path = f"requests/{segment(request_id)}/trials/{number}/stop"
        return await self._send_repeatable(Call(method="POST", path=path), TrialsOut)

    async def reports(
        self, request_id: str, *, trial: int = 0, points: int | None = None
    ) -> ReportsOut:
        """Return what a job, or a trial of a sweep, has reported by ``carrel.report``.

        ``points``: the most for each name, from 4; about 500 by default.
        """
        wanted = {"trial": trial or None, "points": points}
        query = {name: value for name, value in wanted.items() if value is not None}
        call = Call(method="GET", path=f"requests/{segment(request_id)}/reports", query=query)
        return self._read(await self._transport.send(call), ReportsOut)

    async def utilization(self, request_id: str) -> UtilizationsOut:
        """Return what the attempts of a request have used over time."""
        return await self._get(f"requests/{segment(request_id)}/utilization", UtilizationsOut)

    async def file(self, request_id: str, name: str) -> AsyncGenerator[bytes, None]:
        """Yield the content of one of the job's files, in parts."""
        quoted = "/".join(segment(part) for part in name.split("/"))
        call = Call(
            method="GET",
            path=f"requests/{segment(request_id)}/files/{quoted}",
            headers={"Accept": "*/*"},
        )
        async with aclosing(self._transport.parts(call)) as parts:
            async for part in parts:
                yield part
