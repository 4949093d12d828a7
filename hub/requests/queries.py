"""Read requests, the queue and outputs, within what the caller may see."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

from ..groups.membership import viewer_of
from ..records.dependencies import Dependency
from ..records.identity import Identity, Viewer
from ..records.requests import RequestFilter, RequestRecord
from ..runtime.context import Context
from ..scheduling.model.states import State
from ..schemas import (
    EventOut,
    FilesOut,
    LedgerOut,
    QueueOut,
    RequestOut,
    RequestsOut,
    UtilizationsOut,
)
from ..usage.serializers import ledger_out
from . import outputs, pagination, serializers
from .access import RequestAccess
from .pagination import RequestQuery
from .presenter import RequestPresenter

_MOST_HELD = 1000
EVENTS_AT_ONCE = 100
"""Maximum number of events in one response; each of them may contain an image."""


@dataclass(frozen=True, slots=True)
class RequestQueries:
    """Queries on requests, the queue and outputs; None as the caller is the service."""

    context: Context

    # -- requests -------------------------------------------------------------------------

    def request(self, who: Identity | None, request_id: str) -> RequestOut:
        """Return one request. Raises NotFound."""
        return self._presenter.one(self._visible(who, request_id), self._viewer(who))

    def requests(
        self,
        who: Identity,
        *,
        kind: str | None = None,
        states: frozenset[str] | None = None,
        mine: bool = True,
        limit: int = 200,
    ) -> list[RequestOut]:
        """List the caller's requests, newest first; without ``mine``, all that they may see."""
        wanted = RequestQuery(kind=kind, states=states, mine=mine, limit=limit)
        return self.find(who, wanted).requests

    def find(self, who: Identity, wanted: RequestQuery) -> RequestsOut:
        """Return one page of the matching requests that the caller may see."""
        return self.several(who, [wanted])[0]

    def several(self, who: Identity, wanted: Sequence[RequestQuery]) -> list[RequestsOut]:
        """Return one page of each query, all read in one transaction."""
        store = self.context.store
        with store.together():
            viewer = self._viewer(who)
            now = self.context.clock()
            pages = [pagination.page(store, viewer, query, now) for query in wanted]
            pairs = list(zip(wanted, pages, strict=True))
            full = [record for query, page in pairs if not query.brief for record in page.records]
            shown = iter(self._presenter.all(full, viewer))
            return [
                RequestsOut(
                    requests=self._presenter.brief(page.records, viewer)
                    if query.brief
                    else list(islice(shown, len(page.records))),
                    next=page.next,
                )
                for query, page in pairs
            ]

    def followers(self, who: Identity, request_id: str) -> list[RequestOut]:
        """Return the queued jobs that wait for a job, as far as the caller may see them."""
        viewer = self._viewer(who)
        held = self.context.store.requests(RequestFilter(held=True, limit=_MOST_HELD))
        found = [
            record
            for record in held
            if record.job is not None
            and request_id in {Dependency.parse(each).job for each in record.job.after}
            and viewer.may_see(record.owner, record.group, record.program)
        ]
        return self._presenter.brief(found, viewer)

    def content_hashes(self, request_ids: Collection[str]) -> Mapping[str, str]:
        """Return a hash of the content of every request, the same for all readers.

        It leaves out the queue position, the growing charge, and what is used.
        """
        wanted = RequestFilter(ids=frozenset(request_ids), limit=len(request_ids))
        shown = self._presenter.all(self.context.store.requests(wanted), Viewer(identity=None))
        return {
            each.id: hashlib.sha256(
                each.model_dump_json(exclude={"wait", "device_seconds", "utilization"}).encode()
            ).hexdigest()
            for each in shown
        }

    # -- the queue ------------------------------------------------------------------------

    def queue(self, who: Identity | None, limit: int = 200) -> QueueOut:
        """Return the head of the queue as the last scheduling cycle left it."""
        plan, viewer = self.context.plan_cache, self._viewer(who)
        waits = plan.queue(limit)
        found = self.context.store.requests(
            RequestFilter(ids=frozenset(wait.request_id for wait in waits), limit=limit)
        )
        # Requests that were granted or cancelled since the last cycle are no longer queued.
        queued = {record.id: record for record in found if record.state is State.QUEUED}
        return QueueOut(
            queue=[
                serializers.queue_entry_out(wait, queued[wait.request_id], viewer)
                for wait in waits
                if wait.request_id in queued
            ],
            total=max(len(queued), plan.waiting),
        )

    def next_in_line(self, who: Identity) -> RequestOut | None:
        """Return the brief body of the caller's queued request with the best position."""
        store, waits = self.context.store, self.context.plan_cache.waits
        with store.together():
            mine = [waits[name] for name in store.queued(who.name) if name in waits]
            first = min(mine, key=lambda wait: wait.place, default=None)
            if first is None:
                return None
            record = store.request(first.request_id)
            return self._presenter.brief([record], self._viewer(who))[0]

    # -- ledger, events and outputs of one request ----------------------------------------

    def ledger(self, who: Identity, request_id: str) -> list[LedgerOut]:
        """List the ledger entries of the request."""
        self._visible(who, request_id)
        return [ledger_out(entry) for entry in self.context.store.ledger(request_id=request_id)]

    def utilization(self, who: Identity | None, request_id: str) -> UtilizationsOut:
        """Return what the attempts of the request have used over time."""
        self._visible(who, request_id)
        found = self.context.store.utilization(request_id)
        return UtilizationsOut(attempts=[serializers.utilization_out(each) for each in found])

    def events(
        self,
        who: Identity | None,
        request_id: str,
        after: int = 0,
        *,
        limit: int = EVENTS_AT_ONCE,
    ) -> list[EventOut]:
        """Return the events after an id, at most ``limit``: they contain the output of cells."""
        self._visible(who, request_id)
        found = self.context.store.events(request_id, after=after, limit=limit)
        return [serializers.event_out(event) for event in found]

    def log(
        self, who: Identity | None, request_id: str, offset: int = 0, *, member: int = 0
    ) -> bytes:
        """Return the log of the newest attempt, or of one of its members, from an offset on."""
        return outputs.log(self.context.files, self._visible(who, request_id), offset, member)

    def output(self, who: Identity, request_id: str) -> tuple[str, bytes]:
        """Return the name and the content of the output notebook."""
        return outputs.notebook(self.context.files, self._visible(who, request_id))

    def submitted(self, who: Identity, request_id: str) -> bytes:
        """Return the submitted notebook. Raises NotFound."""
        return outputs.submitted(self.context.files, self._visible(who, request_id))

    def files_of(self, who: Identity, request_id: str) -> FilesOut:
        """List the output files of the newest attempt that has any."""
        record = self._visible(who, request_id)
        return serializers.files_out(outputs.files(self.context.files, record)[1])

    def open_file(self, who: Identity, request_id: str, name: str) -> BinaryIO:
        """Open an output file for reading; the caller closes it."""
        return outputs.open_file(self.context.files, self._visible(who, request_id), name)

    # -- helpers --------------------------------------------------------------------------

    def _visible(self, who: Identity | None, request_id: str) -> RequestRecord:
        return RequestAccess(self.context.store).visible(who, request_id)

    def _viewer(self, who: Identity | None) -> Viewer:
        return viewer_of(self.context.store, who)

    @property
    def _presenter(self) -> RequestPresenter:
        return RequestPresenter.of(self.context)
