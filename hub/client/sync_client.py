"""The client for programs without an event loop, which runs the coroutines of ``AsyncClient``.

A coroutine suspends only in its transport, and ``ThreadTransport`` never does: it blocks. One step
therefore runs such a coroutine from start to end, without a loop, and also inside one (in the
kernel of a notebook). So each call is written once, and both clients always agree.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from .async_client import AsyncClient
from .transport.credentials import credentials_here
from .transport.site_url import SiteUrl
from .transport.transports import ThreadTransport

P = ParamSpec("P")
T = TypeVar("T")


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of the coroutine after a single step."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("A call of the blocking client suspended, as if in an event loop.")


def _at_once(
    call: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Client, P], T]:
    @wraps(call)
    def blocking(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return _run(call(self.calls, *args, **kwargs))

    return blocking


def _one_by_one(
    call: Callable[Concatenate[AsyncClient, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[Client, P], Generator[T, None, None]]:
    @wraps(call)
    def blocking(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> Generator[T, None, None]:
        items = call(self.calls, *args, **kwargs)
        try:
            while True:
                try:
                    item = _run(_next(items))
                except StopAsyncIteration:
                    return
                yield item
        finally:
            _run(items.aclose())

    return blocking


async def _next(items: AsyncGenerator[T, None]) -> T:
    return await items.__anext__()


class Client:
    """A client of one site for one user. Every call raises the classes of ``hub.errors``.

    Several threads may share one.

    >>> with Client.from_environment() as carrel:
    ...     job = carrel.submit(JobIn(group="cs101", notebook=…))
    ...     for change in carrel.follow(job.id):
    ...         print(change)
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = 30.0,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``url``: any address of the site. ``sleep`` and ``clock`` time the retries."""
        self.site = SiteUrl.at(url)
        transport = ThreadTransport(self.site, token, timeout, sleep, clock)
        self.calls = AsyncClient(url, token, transport=transport)

    @classmethod
    def from_environment(cls, url: str | None = None) -> Self:
        """Return the client of the current user: see ``credentials_here``."""
        found = credentials_here(url)
        return cls(found.url, found.token)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    close = _at_once(AsyncClient.close)

    me = _at_once(AsyncClient.me)
    groups = _at_once(AsyncClient.groups)
    pool = _at_once(AsyncClient.pool)
    queue = _at_once(AsyncClient.queue)
    why = _at_once(AsyncClient.why)
    usage = _at_once(AsyncClient.usage)
    history = _at_once(AsyncClient.history)

    submit = _at_once(AsyncClient.submit)
    page = _at_once(AsyncClient.page)
    requests = _at_once(AsyncClient.requests)
    request = _at_once(AsyncClient.request)
    cancel = _at_once(AsyncClient.cancel)
    send = _at_once(AsyncClient.send)
    log = _at_once(AsyncClient.log)
    whole_log = _one_by_one(AsyncClient.whole_log)
    output = _at_once(AsyncClient.output)
    files = _at_once(AsyncClient.files)
    file = _one_by_one(AsyncClient.file)

    start_session = _at_once(AsyncClient.start_session)
    stop_session = _at_once(AsyncClient.stop_session)
    claim = _at_once(AsyncClient.claim)
    keep_place = _at_once(AsyncClient.keep_place)
    extend = _at_once(AsyncClient.extend)
    change = _at_once(AsyncClient.change)
    quotes = _at_once(AsyncClient.quotes)
    keep = _at_once(AsyncClient.keep)
    tell_kernels = _at_once(AsyncClient.tell_kernels)

    courses = _at_once(AsyncClient.courses)
    course = _at_once(AsyncClient.course)
    create_course = _at_once(AsyncClient.create_course)
    preview_course = _at_once(AsyncClient.preview_course)
    clone_course = _at_once(AsyncClient.clone_course)
    archive_course = _at_once(AsyncClient.archive_course)
    course_members = _at_once(AsyncClient.course_members)
    set_roster = _at_once(AsyncClient.set_roster)
    assignments = _at_once(AsyncClient.assignments)
    release = _at_once(AsyncClient.release)
    hand_out = _at_once(AsyncClient.hand_out)
    feedback = _at_once(AsyncClient.feedback)
    give_time = _at_once(AsyncClient.give_time)
    take_time_back = _at_once(AsyncClient.take_time_back)
    extensions = _at_once(AsyncClient.extensions)
    grade = _at_once(AsyncClient.grade)
    grades = _at_once(AsyncClient.grades)
    release_feedback = _at_once(AsyncClient.release_feedback)
    my_grade = _at_once(AsyncClient.my_grade)
    check = _at_once(AsyncClient.check)
    checks = _at_once(AsyncClient.checks)
    hand_in = _at_once(AsyncClient.hand_in)
    receipts = _at_once(AsyncClient.receipts)
    handed_in = _at_once(AsyncClient.handed_in)
    let_count = _at_once(AsyncClient.let_count)
    outages = _at_once(AsyncClient.outages)
    record_outage = _at_once(AsyncClient.record_outage)

    from_exchange = _at_once(AsyncClient.from_exchange)
    to_exchange = _at_once(AsyncClient.to_exchange)
    out_of_exchange = _at_once(AsyncClient.out_of_exchange)

    images = _at_once(AsyncClient.images)
    images_needed = _at_once(AsyncClient.images_needed)
    pin = _at_once(AsyncClient.pin)
    unpin = _at_once(AsyncClient.unpin)

    drain = _at_once(AsyncClient.drain)
    undrain = _at_once(AsyncClient.undrain)
    quarantine = _at_once(AsyncClient.quarantine)
    unquarantine = _at_once(AsyncClient.unquarantine)
    audit = _at_once(AsyncClient.audit)

    changes = _one_by_one(AsyncClient.changes)
    follow = _one_by_one(AsyncClient.follow)
    follow_log = _one_by_one(AsyncClient.follow_log)
