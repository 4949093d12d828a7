"""Learn the status of this session from the service, and publish changes.

The session reports its kernels and gets the notices for its user in return: every few seconds, and
at once when one of the requests changes that the service names in its answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

from ...hub.errors import CarrelError, Conflict, Forbidden, NotFound, NotSignedIn
from ...hub.interfaces.session_meter import SessionMeter
from ...hub.schemas import EventOut, HeldOut, KernelsIn, RequestOut, WarningOut, WatchOut
from .kernel_activity import KernelWatch

ALIVE_SECONDS = 15.0
"""Interval of repeats, so that proxies do not close the stream."""
REFRESH_SECONDS = 2.0
"""Interval between checks for new kernels."""
AFTER_AN_ERROR_SECONDS = 15.0
SAVE_SECONDS = 10.0
"""How long before the stop the documents are saved once more."""


class StatusService(Protocol):
    """The calls to the service (``hub.client.AsyncClient``)."""

    async def report_kernels(self, request_id: str, kernels: KernelsIn) -> WatchOut: ...

    async def keep(self, request_id: str) -> RequestOut: ...

    async def claim(self, request_id: str) -> RequestOut: ...

    async def request(self, request_id: str) -> RequestOut: ...

    async def cancel(self, request_id: str) -> RequestOut: ...

    def follow(self, request_id: str) -> AsyncGenerator[RequestOut | EventOut, None]: ...


@dataclass(slots=True)
class SessionStatus:
    """The status of one session; call ``run`` once, for as long as the server lives."""

    service: StatusService
    request_id: str
    kernels: KernelWatch
    log: logging.Logger
    clock: Callable[[], float] = time.time
    meter: SessionMeter | None = None
    """Of an engine that does not measure its sessions."""
    now: WatchOut | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a followed request has changed."""
    _following: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    async def run(self) -> None:
        """Report to the service again and again."""
        try:
            await self._report_repeatedly()
        finally:
            self._follow(())

    async def _report_repeatedly(self) -> None:
        elapsed, due = asyncio.get_running_loop().time, -inf
        while True:
            self.kernels.refresh()
            if elapsed() >= due or self._news.is_set():
                self._news.clear()
                try:
                    due = elapsed() + await self._report()
                except (Conflict, Forbidden, NotFound, NotSignedIn) as error:
                    # Also while the session is starting or stopping.
                    self.log.debug("Carrel does not accept reports: %s", error)
                    due = elapsed() + AFTER_AN_ERROR_SECONDS
                    self._publish(None)
                except CarrelError as error:
                    self.log.info("Carrel does not answer: %s", error)
                    due = elapsed() + AFTER_AN_ERROR_SECONDS
            # New kernels do not announce themselves, so check for them.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(REFRESH_SECONDS, max(0.1, due - elapsed()))):
                    await self._news.wait()

    async def keep(self) -> None:
        """Keep the session; raises what the service answers."""
        await self.service.keep(self.request_id)
        await self._refresh()

    async def claim(self, held: str) -> None:
        """Claim the held device of this request; raises what the service answers."""
        await self.service.claim(held)
        await self._refresh()

    async def give_up(self, held: str) -> None:
        """Release the held device of this request; raises what the service answers."""
        # A session that was claimed on the desk meanwhile must not be stopped.
        if (await self.service.request(held)).claim_by is None:
            raise Conflict("This device is no longer held for you.")
        await self.service.cancel(held)
        await self._refresh()

    async def changes(self) -> AsyncGenerator[WatchOut | None, None]:
        """Yield the status now and at every change, when it is time to save, and to keep alive."""
        while True:
            shown, changed = self.now, self._changed
            yield shown
            pause = ALIVE_SECONDS
            if shown is not None and shown.warning is not None:
                saving = shown.warning.stops_at - SAVE_SECONDS - self.clock()
                pause = min(pause, saving) if saving > 0 else pause
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await changed.wait()

    async def _refresh(self) -> None:
        # What was asked for is done, whether or not the service answers once more.
        with contextlib.suppress(CarrelError):
            await self._report()

    async def _report(self) -> float:
        report = self.kernels.report()
        use = self.meter.latest() if self.meter is not None else None
        if use is not None:
            measured = {"cpu_seconds": use.cpu_seconds, "devices": use.devices.value}
            report = report.model_copy(update=measured)
        answer = await self.service.report_kernels(self.request_id, report)
        self._publish(answer)
        self._follow(answer.follow)
        return answer.again_seconds

    def _follow(self, request_ids: Iterable[str]) -> None:
        """Follow these requests and no other."""
        wanted = set(request_ids)
        for request_id in self._following.keys() - wanted:
            self._following.pop(request_id).cancel()
        for request_id in wanted:
            task = self._following.get(request_id)
            if task is None or task.done():  # the service was away for too long
                self._following[request_id] = asyncio.create_task(self._wait_for_news(request_id))

    async def _wait_for_news(self, request_id: str) -> None:
        seen = None
        try:
            async with aclosing(self.service.follow(request_id)) as changes:
                async for now in changes:
                    if isinstance(now, EventOut):
                        continue
                    # Its place in the queue and its charge change all the time.
                    notice = now.state, now.claim, now.claim_by, now.warning
                    if notice != seen:
                        seen = notice
                        self._news.set()
        except CarrelError as error:
            self.log.debug("%s is not followed: %s", request_id, error)

    def _publish(self, now: WatchOut | None) -> None:
        before, self.now = _notices(self.now), now
        if _notices(now) != before:
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()


def _notices(now: WatchOut | None) -> tuple[WarningOut | None, HeldOut | None, str]:
    return (now.warning, now.held, now.shown) if now else (None, None, "")


def last_call(now: WatchOut | None, at: float) -> bool:
    """Whether the session is about to be stopped within seconds."""
    warning = now.warning if now else None
    return warning is not None and at >= warning.stops_at - SAVE_SECONDS
