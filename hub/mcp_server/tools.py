"""The tools of the MCP server: submit, status, logs, outputs, quote, cancel and pool.

Each answer is bounded; one that is cut says so, and how to get the rest. Every error of Carrel is a
tool error with its sentence: what was wrong, and what is accepted.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field, ValidationError

from ..client import AsyncClient
from ..errors import CarrelError, NotSignedIn, TooManyCalls
from ..messages.validation import invalid_body
from ..schemas import JobIn, QuoteIn, RequestOut

AT_ONCE: Final = 8
"""Calls in progress; others are refused, so that a client that floods is told to wait."""
LONGEST_WAIT: Final = 60.0
"""Seconds that one call of ``status`` may wait for the end of a job."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 5.0
LARGEST: Final = 100_000
"""Bytes of a log or file in one answer."""
USUAL: Final = 20_000
_MOST_LISTED = 50
_MOST_FILES = 200
_MOST_DEVICES = 200
_LONGEST_TEXT = 4_000

_ID = r"^[A-Za-z0-9-]+$"
Job = Annotated[str, Field(max_length=64, pattern=_ID, description="Such as j-7k2m4qpz.")]
Group = Annotated[
    str,
    Field(max_length=64, description="The group that is charged; needed if the owner has several."),
]
Devices = Annotated[int, Field(ge=0, le=100_000, description="Whole devices; 0: on CPU.")]
Minutes = Annotated[float, Field(gt=0, le=60 * 24 * 366, description="The time limit.")]
Model = Annotated[str, Field(max_length=255, description="Only devices of this model.")]
Offset = Annotated[int, Field(ge=0, le=2**53 - 1, description="The first byte.")]
Limit = Annotated[int, Field(ge=1, le=LARGEST, description="The most bytes in the answer.")]
Answer = dict[str, Any]  # JSON of the protocol


@dataclass(slots=True)
class Tools:
    """The tools over one client; each public coroutine is a tool, and its docstring its text."""

    client: AsyncClient
    _running: int = field(default=0, init=False)

    async def submit(
        self,
        *,
        command: Annotated[
            list[str] | None, Field(max_length=256, description="Program and arguments.")
        ] = None,
        notebook: Annotated[
            # The library parses text that is JSON, whatever the client sent.
            str | dict[str, Any] | None,
            Field(description="Instead of a command: the text of an .ipynb file or of a script."),
        ] = None,
        notebook_name: Annotated[
            str, Field(max_length=255, description="Its name, which ends in .ipynb or .py.")
        ] = "notebook.ipynb",
        parameters: Annotated[
            dict[str, Any] | None, Field(description="Parameters of the notebook, by name.")
        ] = None,
        group: Group = "",
        devices: Devices = 0,
        minutes: Minutes = 60,
        model: Model = "",
        image: Annotated[str, Field(max_length=160)] = "",
        workdir: Annotated[
            str, Field(max_length=1024, description="Working folder below the owner's home.")
        ] = "",
        after: Annotated[
            list[str] | None,
            Field(max_length=64, description="Jobs that it waits for: JOB, or JOB:any."),
        ] = None,
        labels: dict[str, str] | None = None,
        key: Annotated[
            str,
            Field(max_length=200, description="The same key again returns the job of the first."),
        ] = "",
        dry_run: Annotated[
            bool, Field(description="Only check it, and return its cost and expected wait.")
        ] = False,
    ) -> Answer:
        """Submit a job: a command or a notebook, on CPU or on devices of the pool.

        The answer has the cost: the most that it may charge to the budget of this program. A job
        that is larger than the program may submit alone waits until its owner approves it. Follow
        it with status, then read logs and outputs. Try dry_run first for expensive jobs.
        """
        async with self._call():
            given: dict[str, object] = {
                "group": group or await self._only_group(),
                "devices": devices,
                "seconds": max(1, round(minutes * 60)),
                "command": command or [],
                "image": image,
                "workdir": workdir,
                "after": after or [],
                "labels": labels or {},
                "idempotency_key": key,
            }
            if model:
                given["model"] = model
            if notebook is not None:
                text = notebook if isinstance(notebook, str) else json.dumps(notebook)
                given["notebook"] = {"name": notebook_name, "content": text}
                given["parameters"] = parameters or {}
            body = JobIn.model_validate({name: value for name, value in given.items() if value})
            if dry_run:
                found = await self.client.dry_run(body)
                cost = found.model_dump(mode="json", exclude_none=True)
                return {"submitted": False, "cost": cost, "program": await self._program()}
            # Without a check before: it would refuse a repetition for the budget of the first.
            made = await self.client.submit(body)
            program = await self._program()
            cost = {"device_seconds": float(made.devices * made.seconds)}
            cost["needs_approval"] = _needs_approval(cost["device_seconds"], program)
            return {"submitted": True, "cost": cost, "job": _job(made), "program": program}

    async def status(
        self,
        job: Annotated[
            str,
            Field(
                max_length=64,
                pattern=r"^[A-Za-z0-9-]*$",
                description="Empty: the newest jobs of this program.",
            ),
        ] = "",
        wait_seconds: Annotated[
            float,
            Field(ge=0, le=LONGEST_WAIT, description="Wait at most this long for its end."),
        ] = 0,
    ) -> Answer:
        """Return the state of a job, why it waits, its progress, its end and what it has cost.

        Without a job, list the newest jobs. Call it again while `ended` is false.
        """
        async with self._call():
            if not job:
                page = await self.client.page(limit=_MOST_LISTED)
                more = f"Only the newest {_MOST_LISTED} are listed." if page.next else ""
                jobs = [_job(each) for each in page.requests]
                return {"jobs": jobs, "note": more, "program": await self._program()}
            until, pause = time.monotonic() + wait_seconds, _FIRST_PAUSE
            found = await self.client.request(job)
            while not found.ended and (left := until - time.monotonic()) > 0:
                await asyncio.sleep(min(pause, left))
                pause = min(2 * pause, _LONGEST_PAUSE)
                found = await self.client.request(job)
            return _job(found)

    async def logs(self, job: Job, offset: Offset = 0, limit: Limit = USUAL) -> Answer:
        """Return a part of the log of a job, from a byte offset on.

        Go on with `next_offset`; the log of a running job grows.
        """
        async with self._call():
            part = await self.client.log(job, offset)
            content = part.content[:limit]
            end = offset + len(content)
            more = len(part.content) > limit
            note = f"The log goes on: call logs with offset={end} for the rest." if more else ""
            text = content.decode("utf-8", "replace")
            return {"text": text, "next_offset": end, "more": more, "note": note}

    async def outputs(
        self,
        job: Job,
        file: Annotated[
            str, Field(max_length=4096, description="A name of the list; empty: list them.")
        ] = "",
        notebook: Annotated[bool, Field(description="Read the executed notebook.")] = False,
        offset: Offset = 0,
        limit: Limit = USUAL,
    ) -> Answer:
        """List the output files of a job, or read a part of one, or of its executed notebook.

        Text is returned as `text`, anything else as `base64`. Go on with `next_offset`.
        """
        async with self._call():
            if notebook:
                whole = (await self.client.output(job)).content
                return _part(whole[offset : offset + limit + 1], offset, limit, size=len(whole))
            if file:
                return _part(await self._read(job, file, offset, limit + 1), offset, limit)
            request = await self.client.request(job)
            found = await self.client.files(job)
            listed = [{"name": each.name, "bytes": each.size} for each in found.files]
            left = len(listed) - _MOST_FILES
            note = f"{left} more are not listed; read them by name." if left > 0 else ""
            return {
                "files": listed[:_MOST_FILES],
                "notebook": request.output,
                "left_out": found.left_out,
                "note": note,
            }

    async def quote(
        self, group: Group = "", devices: Devices = 0, minutes: Minutes = 60, model: Model = ""
    ) -> Answer:
        """Return what a job of this size would cost and when it would start; nothing is stored.

        Also what is left of the budget of this program, and the size above which its owner has to
        approve a job.
        """
        async with self._call():
            wanted = QuoteIn(
                kind="job",
                group=group,
                devices=devices,
                seconds=max(1, round(minutes * 60)),
                model=model or None,
            )
            quote = (await self.client.quotes([wanted]))[0]
            program = await self._program()
            cost = quote.device_seconds
            return {
                "quote": quote.model_dump(mode="json", exclude_none=True),
                "within_budget": quote.admitted and cost <= program["left"],
                "needs_approval": _needs_approval(cost, program),
                "program": program,
            }

    async def cancel(
        self,
        job: Job,
        reason: Annotated[str, Field(max_length=500, description="For the owner.")] = "",
    ) -> Answer:
        """Cancel a job of this program: a queued one ends at once, a running one is stopped."""
        async with self._call():
            return _job(await self.client.cancel(job, reason))

    async def pool(self) -> Answer:
        """Return the devices of the pool, how many are free, and the groups to submit to."""
        async with self._call():
            pool, groups = await self.client.pool(), await self.client.groups()
            left = len(pool.devices) - _MOST_DEVICES
            shown = {"id", "node", "model", "memory_bytes", "state", "draining", "quarantined"}
            return {
                "free": pool.free,
                "total": pool.total,
                "waiting": pool.waiting,
                "devices": [
                    each.model_dump(mode="json", include=shown)
                    for each in pool.devices[:_MOST_DEVICES]
                ],
                "note": f"{left} more devices are not listed." if left > 0 else "",
                "groups": [each.model_dump(mode="json", exclude={"teachers"}) for each in groups],
            }

    # -- helpers --------------------------------------------------------------------------

    @asynccontextmanager
    async def _call(self) -> AsyncIterator[None]:
        """Bound the calls in progress, and turn errors of Carrel into tool errors."""
        if self._running >= AT_ONCE:
            raise ToolError(
                f"{AT_ONCE} calls are in progress, and no more are accepted. Go on when one of "
                "them has ended, at the earliest in 1 s."
            )
        self._running += 1
        try:
            yield
        except TooManyCalls as error:
            raise ToolError(str(error)) from error
        except CarrelError as error:
            raise ToolError(sentence(error)) from error
        except ValidationError as error:
            raise ToolError(str(invalid_body(error, JobIn))) from error
        finally:
            self._running -= 1

    async def _program(self) -> Answer:
        shown = {"name", "device_seconds", "used", "reserved", "left", "approve_above"}
        found = await self.client.own_program()
        return found.model_dump(mode="json", include=shown | {"expires_at"})

    async def _only_group(self) -> str:
        names = [each.name for each in await self.client.groups()]
        if len(names) == 1:
            return names[0]
        raise ToolError(
            f"Name a group: {', '.join(names)}." if names else "The owner is in no group."
        )

    async def _read(self, job: str, file: str, offset: int, length: int) -> bytes:
        """Return a part of a file, without what follows it."""
        read, kept = 0, bytearray()
        async with aclosing(self.client.file(job, file)) as parts:
            async for part in parts:
                kept += part[max(0, offset - read) :][: length - len(kept)]
                read += len(part)
                if len(kept) >= length:
                    break
        return bytes(kept)


def sentence(error: CarrelError) -> str:
    """Return the text of an error for a program, which cannot sign in."""
    if isinstance(error, NotSignedIn):
        return f"{error.message} Its owner creates a new token with: carrel token create"
    return str(error)


def _needs_approval(device_seconds: float, program: Answer) -> bool:
    limit = program["approve_above"]
    return limit is not None and device_seconds > float(limit)


def _job(found: RequestOut) -> Answer:
    """Return what a program needs to know of a job."""
    answer: Answer = {
        "id": found.id,
        "state": found.state,
        "ended": found.ended,
        "group": found.group,
        "devices": found.devices,
        "seconds": found.seconds,
        "device_seconds": found.device_seconds,
        "submitted_at": found.submitted_at,
        "program": found.program,
        "what": found.notebook or _cut(" ".join(found.command)),
    }
    if found.wait is not None:
        answer["waits"] = found.wait.sentence
        answer["expected_at"] = found.wait.expected_at
    if found.progress is not None:
        answer["progress"] = found.progress.model_dump(mode="json", exclude_none=True)
    if found.cause is not None:
        cause = found.cause
        answer["cause"] = {
            "code": cause.code,
            "message": _cut(cause.message),
            "details": _cut(cause.details),
        }
    return answer


def _cut(text: str) -> str:
    if len(text) <= _LONGEST_TEXT:
        return text
    return f"{text[:_LONGEST_TEXT]} … ({len(text) - _LONGEST_TEXT} more characters; see logs)"


def _part(found: bytes, offset: int, limit: int, *, size: int | None = None) -> Answer:
    """Return a part of a file; ``found`` is one byte longer than the limit if more follows."""
    content, more = found[:limit], len(found) > limit
    end = offset + len(content)
    answer: Answer = {"offset": offset, "next_offset": end, "more": more}
    if size is not None:
        answer["bytes"] = size
    rest = f"This is a part: call outputs with offset={end} for the rest." if more else ""
    try:
        answer["text"] = _whole_characters(content, cut=more)
    except UnicodeDecodeError:
        answer["base64"] = base64.b64encode(content).decode()
    return answer | {"note": rest}


def _whole_characters(content: bytes, *, cut: bool) -> str:
    """Decode text whose last character may be cut. Raises UnicodeDecodeError for other bytes."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        if cut and error.start > len(content) - 4:
            return content[: error.start].decode() + "\ufffd"
        raise


def as_text(answer: Mapping[str, object]) -> str:
    """Return an answer as the JSON text of a resource."""
    return json.dumps(answer, indent=2)
