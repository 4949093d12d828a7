"""The blocking client, for programs without an event loop; runs the coroutines of ``AsyncClient``.

A coroutine of ``AsyncClient`` suspends only in its transport, and ``ThreadTransport`` blocks
instead. One step therefore runs such a coroutine from start to end, with or without a running
event loop (the kernel of a notebook has one). Every call is written once for both clients.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from .async_client import AsyncClient
from .transport.credentials import current_credentials
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


def _blocking(
    call: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Client, P], T]:
    @wraps(call)
    def blocking(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return _run(call(self.calls, *args, **kwargs))

    return blocking


def _blocking_iterator(
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
        """Create a client; no connection is opened yet.

        Args:
            url: any address of the site.
            timeout: of a call, in seconds.
            sleep: pauses between retries.
            clock: a monotonic clock, for the limit of the retries.
        """
        self.site = SiteUrl.at(url)
        transport = ThreadTransport(self.site, token, timeout, sleep, clock)
        self.calls = AsyncClient(url, token, transport=transport)

    @classmethod
    def from_environment(cls, url: str | None = None) -> Self:
        """Return the client of the current user: see ``current_credentials``."""
        credentials = current_credentials(url)
        return cls(credentials.url, credentials.token)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    close = _blocking(AsyncClient.close)

    me = _blocking(AsyncClient.me)
    site_key = _blocking(AsyncClient.site_key)
    groups = _blocking(AsyncClient.groups)
    pool = _blocking(AsyncClient.pool)
    queue = _blocking(AsyncClient.queue)
    why = _blocking(AsyncClient.why)
    usage = _blocking(AsyncClient.usage)
    usage_proof = _blocking(AsyncClient.usage_proof)
    history = _blocking(AsyncClient.history)
    site_report = _blocking(AsyncClient.site_report)
    what_if = _blocking(AsyncClient.what_if)
    semester_plan = _blocking(AsyncClient.semester_plan)
    efficiency = _blocking(AsyncClient.efficiency)
    compile_cache = _blocking(AsyncClient.compile_cache)
    clear_compile_cache = _blocking(AsyncClient.clear_compile_cache)

    submit = _blocking(AsyncClient.submit)
    halt = _blocking(AsyncClient.halt)
    resume = _blocking(AsyncClient.resume)
    compare = _blocking(AsyncClient.compare)
    page = _blocking(AsyncClient.page)
    requests = _blocking(AsyncClient.requests)
    request = _blocking(AsyncClient.request)
    cancel = _blocking(AsyncClient.cancel)
    send = _blocking(AsyncClient.send)
    log = _blocking(AsyncClient.log)
    whole_log = _blocking_iterator(AsyncClient.whole_log)
    output = _blocking(AsyncClient.output)
    rerun = _blocking(AsyncClient.rerun)
    receipt = _blocking(AsyncClient.receipt)
    files = _blocking(AsyncClient.files)
    trials = _blocking(AsyncClient.trials)
    sharing = _blocking(AsyncClient.sharing)
    pipeline = _blocking(AsyncClient.pipeline)
    reports = _blocking(AsyncClient.reports)
    stop_trial = _blocking(AsyncClient.stop_trial)
    utilization = _blocking(AsyncClient.utilization)
    file = _blocking_iterator(AsyncClient.file)

    set_secret = _blocking(AsyncClient.set_secret)
    secrets = _blocking(AsyncClient.secrets)
    remove_secret = _blocking(AsyncClient.remove_secret)

    publish = _blocking(AsyncClient.publish)
    gallery = _blocking(AsyncClient.gallery)
    gallery_item = _blocking(AsyncClient.gallery_item)
    gallery_notebook = _blocking(AsyncClient.gallery_notebook)
    run_gallery_item = _blocking(AsyncClient.run_gallery_item)
    fork_gallery_item = _blocking(AsyncClient.fork_gallery_item)
    withdraw_gallery_item = _blocking(AsyncClient.withdraw_gallery_item)
    create_schedule = _blocking(AsyncClient.create_schedule)
    schedules = _blocking(AsyncClient.schedules)
    schedule = _blocking(AsyncClient.schedule)
    scheduled_job = _blocking(AsyncClient.scheduled_job)
    change_schedule = _blocking(AsyncClient.change_schedule)
    run_schedule = _blocking(AsyncClient.run_schedule)
    remove_schedule = _blocking(AsyncClient.remove_schedule)

    start_session = _blocking(AsyncClient.start_session)
    stop_session = _blocking(AsyncClient.stop_session)
    claim = _blocking(AsyncClient.claim)
    keep_place = _blocking(AsyncClient.keep_place)
    extend = _blocking(AsyncClient.extend)
    change = _blocking(AsyncClient.change)
    quotes = _blocking(AsyncClient.quotes)
    keep = _blocking(AsyncClient.keep)
    report_kernels = _blocking(AsyncClient.report_kernels)

    courses = _blocking(AsyncClient.courses)
    course = _blocking(AsyncClient.course)
    create_course = _blocking(AsyncClient.create_course)
    preview_course = _blocking(AsyncClient.preview_course)
    clone_course = _blocking(AsyncClient.clone_course)
    archive_course = _blocking(AsyncClient.archive_course)
    course_members = _blocking(AsyncClient.course_members)
    set_roster = _blocking(AsyncClient.set_roster)
    create_accounts = _blocking(AsyncClient.create_accounts)
    assignments = _blocking(AsyncClient.assignments)
    release = _blocking(AsyncClient.release)
    withdraw_assignment = _blocking(AsyncClient.withdraw_assignment)
    prefix = _blocking(AsyncClient.prefix)
    set_prefix = _blocking(AsyncClient.set_prefix)
    clear_prefix_cache = _blocking(AsyncClient.clear_prefix_cache)
    fetch_assignment = _blocking(AsyncClient.fetch_assignment)
    feedback = _blocking(AsyncClient.feedback)
    grant_extension = _blocking(AsyncClient.grant_extension)
    revoke_extensions = _blocking(AsyncClient.revoke_extensions)
    extensions = _blocking(AsyncClient.extensions)
    grade = _blocking(AsyncClient.grade)
    grades = _blocking(AsyncClient.grades)
    release_feedback = _blocking(AsyncClient.release_feedback)
    coursework_proof = _blocking(AsyncClient.coursework_proof)
    my_grade = _blocking(AsyncClient.my_grade)
    check = _blocking(AsyncClient.check)
    checks = _blocking(AsyncClient.checks)
    official_check = _blocking(AsyncClient.official_check)
    official_checks = _blocking(AsyncClient.official_checks)
    allow_official_checks = _blocking(AsyncClient.allow_official_checks)
    forbid_official_checks = _blocking(AsyncClient.forbid_official_checks)
    official_check_log = _blocking(AsyncClient.official_check_log)
    open_leaderboard = _blocking(AsyncClient.open_leaderboard)
    close_leaderboard = _blocking(AsyncClient.close_leaderboard)
    score_leaderboard_again = _blocking(AsyncClient.score_leaderboard_again)
    leaderboard = _blocking(AsyncClient.leaderboard)
    leaderboard_log = _blocking(AsyncClient.leaderboard_log)
    submit_weights = _blocking(AsyncClient.submit_weights)
    rehearse = _blocking(AsyncClient.rehearse)
    schedule_rehearsals = _blocking(AsyncClient.schedule_rehearsals)
    rehearsal_schedules = _blocking(AsyncClient.rehearsal_schedules)
    rehearsals = _blocking(AsyncClient.rehearsals)
    rehearsal = _blocking(AsyncClient.rehearsal)
    submit_assignment = _blocking(AsyncClient.submit_assignment)
    receipts = _blocking(AsyncClient.receipts)
    submission_files = _blocking(AsyncClient.submission_files)
    select_submission = _blocking(AsyncClient.select_submission)
    gradebook = _blocking(AsyncClient.gradebook)
    regrades = _blocking(AsyncClient.regrades)
    ask_for_regrade = _blocking(AsyncClient.ask_for_regrade)
    answer_regrade = _blocking(AsyncClient.answer_regrade)
    outages = _blocking(AsyncClient.outages)
    record_outage = _blocking(AsyncClient.record_outage)

    exchange_get = _blocking(AsyncClient.exchange_get)
    exchange_post = _blocking(AsyncClient.exchange_post)
    exchange_delete = _blocking(AsyncClient.exchange_delete)

    images = _blocking(AsyncClient.images)
    images_needed = _blocking(AsyncClient.images_needed)
    pin = _blocking(AsyncClient.pin)
    unpin = _blocking(AsyncClient.unpin)

    announcements = _blocking(AsyncClient.announcements)
    material = _blocking(AsyncClient.material)
    notifications = _blocking(AsyncClient.notifications)
    add_channel = _blocking(AsyncClient.add_channel)
    choose_events = _blocking(AsyncClient.choose_events)
    remove_channel = _blocking(AsyncClient.remove_channel)
    test_notifications = _blocking(AsyncClient.test_notifications)
    close_announcement = _blocking(AsyncClient.close_announcement)

    programs = _blocking(AsyncClient.programs)
    create_program = _blocking(AsyncClient.create_program)
    revoke_program = _blocking(AsyncClient.revoke_program)
    own_program = _blocking(AsyncClient.own_program)
    approvals = _blocking(AsyncClient.approvals)
    approve = _blocking(AsyncClient.approve)
    dry_run = _blocking(AsyncClient.dry_run)

    drain = _blocking(AsyncClient.drain)
    undrain = _blocking(AsyncClient.undrain)
    quarantine = _blocking(AsyncClient.quarantine)
    unquarantine = _blocking(AsyncClient.unquarantine)
    audit = _blocking(AsyncClient.audit)

    changes = _blocking_iterator(AsyncClient.changes)
    follow = _blocking_iterator(AsyncClient.follow)
    follow_log = _blocking_iterator(AsyncClient.follow_log)
