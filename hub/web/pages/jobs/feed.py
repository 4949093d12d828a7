"""Feed of an open page of a request: changed parts, and one piece for every event.

* ``parts``: the parts of the page (state, facts, files) that have changed;
* one ``piece`` per stored event, with its id, as htmx out-of-band swaps;
* ``end`` after the terminal status.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from ....client.probe_job import probed_notebook
from ....errors import CarrelError
from ....files.log_viewers import viewers_of
from ....results.list_part import ListPart, ShownParts
from ....results.report_curves import report_curves
from ....results.trial_view import TrialsView, trials_view
from ....schemas import EventOut, FilesOut, RequestOut
from ....schemas.sweeps import ReportsOut
from ...dependencies.context import WebContext
from ...forms.probe_advice import found_advice
from ...html.notebook_cells import NotebookCells
from ...live.sse import ALIVE, message
from ...security.access import Visitor
from .pipeline_view import PipelineView, pipeline_view
from .timeline import (
    AttemptTimeline,
    CellTimeline,
    JobTimeline,
    cell_number,
    cut_sentence,
    fold,
    is_over,
)
from .utilization_plots import UtilizationView, utilization_view

_SESSION_PARTS = ("state", "utilization", "facts")
_PARTS = (
    *_SESSION_PARTS,
    "advice",
    "pipeline",
    "parameters",
    "members",
    "workers",
    "trials",
    "reports",
    "files",
    "receipt",
)
_log = logging.getLogger(__name__)


def files_of(web: WebContext, visitor: Visitor, request: RequestOut) -> FilesOut:
    """Return the files that the job has written to its output folder so far."""
    if request.kind == "session" or request.lease is None:
        return FilesOut(files=[])
    return web.requests.files_of(visitor.identity, request.id)


def followers_of(web: WebContext, visitor: Visitor, request: RequestOut) -> list[RequestOut]:
    """Return the queued jobs that wait for this one."""
    return web.requests.followers(visitor.identity, request.id) if request.kind == "job" else []


def pipeline_of(web: WebContext, visitor: Visitor, request: RequestOut) -> PipelineView | None:
    """Return the graph of the jobs before and after this one."""
    if request.kind != "job":
        return None
    return pipeline_view(web.pipelines.of(visitor.identity, request.id), request.id)


def sources_of(web: WebContext, visitor: Visitor, request: RequestOut) -> NotebookCells:
    """Return the sources of the cells of a notebook job."""
    if request.kind != "job" or not request.notebook:
        return NotebookCells()
    return web.notebook_cells.of(
        request.id, lambda: web.requests.submitted(visitor.identity, request.id)
    )


def utilization_of(web: WebContext, visitor: Visitor, request: RequestOut) -> UtilizationView:
    """Return what the request has used so far."""
    if request.lease is None or request.kind == "grading":
        return UtilizationView()
    found = web.requests.utilization(visitor.identity, request.id)
    return utilization_view(found.attempts, request.lease.devices)


def trials_of(
    web: WebContext, visitor: Visitor, request: RequestOut, part: int
) -> TrialsView | None:
    """Return a part of the trials of a sweep."""
    if request.sweep is None:
        return None
    return trials_view(web.trials.trials(visitor.identity, request.id), part)


def reports_of(web: WebContext, visitor: Visitor, request: RequestOut) -> ReportsOut:
    """Return what a job has reported; the values of a sweep are in its trials."""
    if request.kind != "job" or request.lease is None or request.sweep is not None:
        return ReportsOut(reports=[])
    return web.trials.reports(visitor.identity, request.id)


def page_values(
    web: WebContext, visitor: Visitor, request: RequestOut, csrf: str, shown: ShownParts
) -> dict[str, object]:
    """Return the variables of the parts of the page."""
    files = files_of(web, visitor, request)
    reported = reports_of(web, visitor, request)
    return {
        "request": request,
        "ledger": web.requests.ledger(visitor.identity, request.id),
        "files": files,
        "log_viewers": viewers_of(file.name for file in files.files),
        "files_part": ListPart.of(len(files.files), shown.files),
        "shown": shown,
        "followers": followers_of(web, visitor, request),
        "probed": probed_notebook(request.labels, request.notebook),
        "advice": found_advice(web, visitor.identity, request),
        "pipeline": pipeline_of(web, visitor, request),
        "utilization": utilization_of(web, visitor, request),
        "trials": trials_of(web, visitor, request, shown.trials),
        "reports": report_curves(reported),
        "compilations": reported.compilations,
        "compile_cache": reported.compile_cache,
        "who": visitor.identity,
        "csrf": csrf,
    }


@dataclass(slots=True, kw_only=True)
class JobFeed:
    """The state of one open page: the updates that were sent to it so far."""

    web: WebContext
    visitor: Visitor
    request_id: str
    after: int
    epoch: int
    parts: ShownParts = field(default_factory=ShownParts)
    _csrf: str = ""
    _shown: dict[str, str] = field(default_factory=dict)
    _signature: str = ""
    _cells: dict[tuple[int, int], CellTimeline] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # One token for the whole stream: a new one would change every part.
        self._csrf = self.web.caller_access.csrf.issue(self.visitor.session)

    def read(self, *, quiet: bool = False) -> tuple[bytes, bool]:
        """Return the updates, and whether the request has ended. Blocks.

        After a ``quiet`` period it also checks for files, which cause no event.
        """
        who, requests = self.visitor.identity, self.web.requests
        request = requests.request(who, self.request_id)
        sent = []
        while batch := requests.events(who, self.request_id, self.after):
            if request.kind != "session":  # its page has no cells and no files
                sources = sources_of(self.web, self.visitor, request)
                sent += [message("piece", self._piece(e, sources), event_id=e.id) for e in batch]
            self.after = batch[-1].id
        parts = self._parts(request, quiet or bool(sent))
        if parts:
            sent.append(message("parts", parts))
        if request.ended:
            sent.append(message("end"))
        return b"".join(sent), request.ended

    def _parts(self, request: RequestOut, render: bool) -> str:
        """Return the changed parts; ``render``: also compare them if the request is unchanged."""
        signature = request.model_dump_json(exclude={"device_seconds", "remaining"})
        if signature == self._signature and not render:
            return ""
        self._signature = signature
        values = page_values(self.web, self.visitor, request, self._csrf, self.parts)
        new = []
        for part in _SESSION_PARTS if request.kind == "session" else _PARTS:
            html = self.web.render(f"jobs/request_{part}.html", **values)
            if self._shown.get(part) != html:
                self._shown[part] = html
                new.append(f'<div id="request-{part}" hx-swap-oob="innerHTML">{html}</div>')
        return "".join(new)

    def _piece(self, event: EventOut, sources: NotebookCells) -> str:
        if event.epoch < 1:
            return ""
        new_attempt, self.epoch = event.epoch > self.epoch, max(self.epoch, event.epoch)
        number = cell_number(event)
        cell, output = None, None
        if number and event.kind.startswith("cell_"):
            key = (event.epoch, number)
            cell = self._cells.setdefault(key, CellTimeline(epoch=event.epoch, number=number))
            output = fold(cell, event)
        return self.web.render(
            "jobs/job_piece.html",
            request_id=self.request_id,
            event=event,
            attempt=AttemptTimeline(epoch=event.epoch) if new_attempt else None,
            cell=cell,
            output=output,
            sources=sources,
            cut=cut_sentence(event) if event.kind == "cut" else "",
            unfinished=self._unfinished(event) if is_over(event) else (),
        )

    def _unfinished(self, last: EventOut) -> list[CellTimeline]:
        """Return the cells that were unfinished at the end of an attempt.

        They include cells that began before this feed.
        """
        history, after = JobTimeline(), 0
        while batch := self.web.requests.events(self.visitor.identity, self.request_id, after):
            after = batch[-1].id
            for event in batch:
                if event.epoch == last.epoch and event.id <= last.id:
                    history.add(event)
        return history.attempts[last.epoch].stop()


async def job_feed(feed: JobFeed) -> AsyncGenerator[bytes, None]:
    """Follow the request until it has ended."""
    dispatcher, who = feed.web.change_dispatcher, feed.visitor.identity
    try:
        async with dispatcher.following_request(feed.request_id, who) as follower:
            async for changed in dispatcher.rounds(follower):
                news, ended = await run_in_threadpool(feed.read, quiet=not changed)
                if news or not changed:
                    yield news or ALIVE
                if ended:
                    return
    except CarrelError as error:
        # The page reloads and then gets the error as a response.
        _log.warning("The feed of %s ends early: %s", feed.request_id, error)
