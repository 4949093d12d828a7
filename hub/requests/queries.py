"""What people and programs can see of Carrel: each of these reads, and changes nothing.

Everything is shown as the one who asks may see it; what they may not see is not found.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import BinaryIO

from ..admission.policy import Admission
from ..config.settings import CLAIM_SECONDS, PREEMPTION_GRACE_SECONDS
from ..errors import Forbidden, NotFound, Unavailable
from ..groups.calendar import GroupCalendar
from ..groups.membership import GroupChoice, choices
from ..interfaces.clock import Clock
from ..interfaces.files import Files, HomeUse
from ..interfaces.jupyterhub import JupyterHub
from ..interfaces.store import Store
from ..inventory.pool import RESERVED_SHOWN, pool_of
from ..records.events import ChangeDigest
from ..records.identity import Identity, Viewer
from ..records.requests import RequestRecord
from ..runtime.plan_cache import PlanCache
from ..runtime.progress_cache import ProgressCache
from ..scheduling.model.plan import Wait
from ..scheduling.model.snapshot import Group
from ..schemas import (
    BudgetOut,
    EventOut,
    FilesOut,
    GroupOut,
    GroupsOut,
    JobIn,
    LedgerOut,
    MeOut,
    PoolOut,
    QueueOut,
    RequestOut,
    RequestsOut,
    UsageReport,
)
from ..schemas.calendar import ReservationOut
from ..usage import serializers as serializers_module
from ..usage.budgets import budgets_out
from . import outputs, pagination, serializers
from .jobs import same_job
from .pagination import RequestQuery
from .presenter import RequestPresenter

EVENTS_AT_ONCE = 100
"""How many events one look at a history reads; each may hold a picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestQueries:
    """The reading half of ``Commands``; everything it needs is passed in."""

    store: Store
    hub: JupyterHub
    files: Files
    plan_cache: PlanCache
    clock: Clock
    progress: ProgressCache
    claim_seconds: float = CLAIM_SECONDS
    grace_seconds: float = PREEMPTION_GRACE_SECONDS

    # -- people and pool ------------------------------------------------------------------

    def me(self, who: Identity) -> MeOut:
        return MeOut(
            name=who.name,
            admin=who.admin,
            groups=[group.name for group in self._groups_now(who)],
            teaches=sorted(self.store.taught_by(who.name)),
        )

    def groups_for(self, who: Identity) -> list[GroupChoice]:
        """Groups that the person may use now; the last known ones while the hub is away."""
        return choices(self._groups_now(who), self.store.groups())

    def groups(self, who: Identity) -> GroupsOut:
        return GroupsOut(
            groups=[
                GroupOut(**asdict(choice), teachers=list(self.store.teachers(choice.name)))
                for choice in self.groups_for(who)
            ]
        )

    def pool(self, who: Identity | None, *, groups_of: Collection[str] | None = None) -> PoolOut:
        """The devices, and what is reserved next; ``groups_of`` as in ``budgets``."""
        reserved = self.reservations(who, groups_of=groups_of)[:RESERVED_SHOWN]
        devices = self._showing.pool(self._viewer(who))
        return devices.model_copy(update={"reservations": reserved})

    def home_use(self, who: Identity) -> HomeUse | None:
        """How full one's home is; None where homes have no limit."""
        return self.files.home_use(who.name)

    def glance(self, after: int | None) -> ChangeDigest:
        """What those who follow the store look at together, before any of them reads."""
        return self.store.glance(after)

    def pool_at(self, glance: ChangeDigest, viewer: Viewer) -> PoolOut:
        """The devices as in ``pool``, of that moment."""
        return pool_of(glance.devices, glance.holdings, glance.waiting, viewer)

    def usage(self, who: Identity) -> UsageReport:
        """One's own sums; ``figures`` has what they are made of."""
        by_group = self.store.usage(now=self.clock(), owner=who.name)
        return UsageReport(
            device_seconds=sum(usage.total for usage in by_group),
            by_group=[serializers_module.usage_out(usage) for usage in by_group],
            ledger=[],
            ledger_complete=False,
        )

    def budgets(
        self, who: Identity, group: str = "", *, groups_of: Collection[str] | None = None
    ) -> list[BudgetOut]:
        """Those that bind in the groups of somebody, or in one of these that is named.

        ``groups_of``: their groups, where they are known already; else the hub is asked.
        """
        groups = self.store.groups()
        if all(each.budget is None for each in groups):
            return []
        # Before the transaction: nothing waits for the hub within one.
        names = {each.name for each in groups} if who.admin else self._names(who, groups_of)
        with self.store.together():
            names |= self.store.taught_by(who.name)
            if group:
                names &= {group}
            now = self.clock()
            lefts, terms = self.store.budgets(now), self.store.terms()
            return budgets_out(lefts, self.store.groups(), terms, names, now)

    def reservations(
        self, who: Identity | None, *, groups_of: Collection[str] | None = None
    ) -> list[ReservationOut]:
        """Those that are not over, the next one first; what they are for is their group's."""
        found = GroupCalendar(self.store, self.clock).reservations()
        if not found or (who is not None and who.admin):
            return found
        mine = self._names(who, groups_of) | self.store.taught_by(who.name) if who else set()
        return [
            each if each.group in mine else each.model_copy(update={"why": ""}) for each in found
        ]

    def _names(self, who: Identity, known: Collection[str] | None) -> set[str]:
        return {each.name for each in self._groups_now(who)} if known is None else set(known)

    # -- requests -------------------------------------------------------------------------

    def request(self, who: Identity | None, request_id: str) -> RequestOut:
        return self._shown(self.visible(who, request_id), self._viewer(who))

    def requests(
        self,
        who: Identity,
        *,
        kind: str | None = None,
        states: frozenset[str] | None = None,
        mine: bool = True,
        limit: int = 200,
    ) -> list[RequestOut]:
        """One's own, newest first; without ``mine`` also what one is entitled to see."""
        wanted = RequestQuery(kind=kind, states=states, mine=mine, limit=limit)
        return self.find_requests(who, wanted).requests

    def find_requests(self, who: Identity, wanted: RequestQuery) -> RequestsOut:
        """A page of what was asked for and may be seen."""
        return self.several(who, [wanted])[0]

    def several(self, who: Identity, wanted: Sequence[RequestQuery]) -> list[RequestsOut]:
        """A page of each, in one go."""
        with self.store.together():
            viewer = self._viewer(who)
            pages = [pagination.page(self.store, viewer, each) for each in wanted]
            both = list(zip(wanted, pages, strict=True))
            whole = [record for each, page in both if not each.brief for record in page.records]
            shown = iter(self._showing.all(whole, viewer))
            return [
                RequestsOut(
                    requests=self._showing.brief(page.records, viewer)
                    if each.brief
                    else list(islice(shown, len(page.records))),
                    next=page.next,
                )
                for each, page in both
            ]

    def next_in_line(self, who: Identity) -> RequestOut | None:
        """Of what they wait for, what comes next: its name and its wait."""
        waits = self.plan_cache.waits
        with self.store.together():
            mine = [waits[name] for name in self.store.queued(who.name) if name in waits]
            first = min(mine, key=lambda wait: wait.place, default=None)
            if first is None:
                return None
            record = self.store.request(first.request_id)
            return self._showing.brief([record], self._viewer(who))[0]

    def queue(self, who: Identity | None, limit: int = 200) -> QueueOut:
        return self._showing.queue(self._viewer(who), limit)

    def waits(self) -> Mapping[str, Wait]:
        """Everybody's place as the last plan left it, by request; never changed in place."""
        return self.plan_cache.waits

    def ledger(self, who: Identity, request_id: str) -> list[LedgerOut]:
        self.visible(who, request_id)
        return [serializers_module.ledger_out(e) for e in self.store.ledger(request_id=request_id)]

    def same_job(self, who: Identity, request_id: str) -> JobIn:
        """What was submitted as this job, ready to be submitted again."""
        return same_job(self.visible(who, request_id), self.files)

    def events(
        self,
        who: Identity | None,
        request_id: str,
        after: int = 0,
        *,
        limit: int = EVENTS_AT_ONCE,
    ) -> list[EventOut]:
        """The next ones, not all at once: they hold what cells printed."""
        self.visible(who, request_id)
        found = self.store.events(request_id, after=after, limit=limit)
        return [serializers.event_out(event) for event in found]

    def log(self, who: Identity | None, request_id: str, offset: int = 0) -> bytes:
        return outputs.log(self.files, self.visible(who, request_id), offset)

    def output(self, who: Identity, request_id: str) -> tuple[str, bytes]:
        return outputs.notebook(self.files, self.visible(who, request_id))

    def files_of(self, who: Identity, request_id: str) -> FilesOut:
        """What the newest attempt that left any files put into its output folder."""
        record = self.visible(who, request_id)
        return serializers.files_out(outputs.files(self.files, record)[1])

    def open_file(self, who: Identity, request_id: str, name: str) -> BinaryIO:
        """One of these, to be read and closed by the caller."""
        return outputs.open_file(self.files, self.visible(who, request_id), name)

    def server_ready(self, owner: str, server_name: str) -> bool:
        """Whether the hub routes to this server."""
        try:
            server = self.hub.user(owner).servers.get(server_name)
        except (Unavailable, NotFound):
            return False
        return server is not None and server.ready

    # -- for those that act on what is seen --------------------------------------------------

    @property
    def admission(self) -> Admission:
        """The rules by which a request is let in."""
        return Admission(self.store, self.hub)

    def visible(self, who: Identity | None, request_id: str) -> RequestRecord:
        """The record itself. Raises NotFound also for what they may not see."""
        record = self.store.request(request_id)
        if not self._viewer(who).may_see(record.owner, record.group):
            # The same answer as for one that does not exist: ids tell nothing.
            raise NotFound(f"There is no request {request_id}.")
        return record

    def own(self, who: Identity, request_id: str) -> RequestRecord:
        """The same of what only its owner may change. Raises Forbidden."""
        record = self.visible(who, request_id)
        if record.owner != who.name:
            raise Forbidden(
                f"{request_id} belongs to {record.owner}: only its owner can do this.",
                accepted="A request of your own.",
            )
        return record

    # -- within ---------------------------------------------------------------------------

    @property
    def _showing(self) -> RequestPresenter:
        return RequestPresenter(
            store=self.store,
            plan_cache=self.plan_cache,
            progress=self.progress,
            clock=self.clock,
            claim_seconds=self.claim_seconds,
        )

    def _groups_now(self, who: Identity) -> tuple[Group, ...]:
        """As the hub has them, or as they were at sign-in while it is away."""
        try:
            return self.admission.groups_of(who.name)
        except (Unavailable, NotFound):
            entitled = who.groups | self.store.taught_by(who.name)
            return tuple(group for group in self.store.groups() if group.name in entitled)

    def _viewer(self, who: Identity | None) -> Viewer:
        teaches = self.store.taught_by(who.name) if who else frozenset()
        return Viewer(identity=who, teaches=teaches)

    def _shown(self, record: RequestRecord, viewer: Viewer) -> RequestOut:
        return self._showing.one(record, viewer)
