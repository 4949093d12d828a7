"""Fakes of the services behind the web layer and of JupyterHub's sign-in, and an app with them."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO, cast

import httpx
from fastapi import FastAPI

from carrel.hub.config.base_url import SERVICE_PREFIX
from carrel.hub.config.settings import CLAIM_SECONDS, PREEMPTION_GRACE_SECONDS, Settings
from carrel.hub.errors import CarrelError, Forbidden, NotFound, NotSignedIn, Unavailable
from carrel.hub.groups.membership import GroupChoice
from carrel.hub.interfaces.files import Files, HomeUse
from carrel.hub.provenance.signature import SigningKey
from carrel.hub.records.events import ChangeDigest, Touched
from carrel.hub.records.identity import Identity
from carrel.hub.requests.comparison.service import RunComparisons
from carrel.hub.requests.pagination import RequestQuery
from carrel.hub.runtime.context import Context
from carrel.hub.runtime.notifier import ChangeNotifier
from carrel.hub.runtime.progress_cache import ProgressCache
from carrel.hub.runtime.spawner_listeners import SpawnerListeners
from carrel.hub.schemas import (
    BudgetOut,
    CauseOut,
    DeviceOut,
    EventIn,
    EventOut,
    EventsIn,
    FilesOut,
    JobIn,
    LeaseOut,
    LedgerOut,
    MeOut,
    OpenSessionIn,
    PipelineOut,
    PoolOut,
    ProgressOut,
    RequestOut,
    RequestsOut,
    SessionIn,
    StartedIn,
    StopIn,
    UsageOut,
    UsageReport,
    UtilizationSeriesOut,
    UtilizationsOut,
    WaitOut,
)
from carrel.hub.schemas.calendar import ReservationOut
from carrel.hub.schemas.explanation import WhyOut
from carrel.hub.schemas.images import ImagesOut
from carrel.hub.schemas.programs.bodies import RunTimeOut
from carrel.hub.schemas.sweeps import ReportsOut, TrialsOut
from carrel.hub.secrets.cipher import Cipher
from carrel.hub.usage.reports import UsageReports
from carrel.hub.web import TokenHolder, build_app
from carrel.hub.web.dependencies.context import WebContext
from carrel.hub.web.dependencies.group_choices import GroupChoiceCache
from carrel.hub.web.live.change_feed import ChangeFeed
from carrel.hub.web.live.dispatcher import ChangeDispatcher
from carrel.hub.web.security.access import SESSION_COOKIE, SESSION_PURPOSE
from carrel.hub.web.security.hub_oauth import ACCESS_SCOPE, READ_SCOPE, SUBMIT_SCOPE
from carrel.spawners.fake import FakeBackend

from ...stores import new_courses, new_store
from ..doubles import FakeHub

HUB_TOKEN = "hub-token-of-this-installation"
PREFIX = SERVICE_PREFIX
API = f"{SERVICE_PREFIX}api/v1"
NOW = time.time()

ADA = Identity(name="ada", groups=frozenset({"cs101"}))
BEN = Identity(name="ben", groups=frozenset({"cs101"}))
ROOT = Identity(name="root", admin=True)
ALL_SCOPES = frozenset({ACCESS_SCOPE, READ_SCOPE, SUBMIT_SCOPE})


class FakeSignIn:
    """A sign-in with given tokens; with ``away`` the hub does not answer."""

    def __init__(self) -> None:
        self.away = False
        self.people: dict[str, TokenHolder] = {
            "ada-oauth": TokenHolder(identity=ADA, scopes=frozenset({ACCESS_SCOPE})),
            "ben-oauth": TokenHolder(identity=BEN, scopes=frozenset({ACCESS_SCOPE})),
            "root-oauth": TokenHolder(identity=ROOT, scopes=frozenset({ACCESS_SCOPE})),
            "ada-all": TokenHolder(identity=ADA, scopes=ALL_SCOPES),
            "ada-reads": TokenHolder(identity=ADA, scopes=frozenset({ACCESS_SCOPE, READ_SCOPE})),
            "ada-submits": TokenHolder(
                identity=ADA, scopes=frozenset({ACCESS_SCOPE, SUBMIT_SCOPE})
            ),
            "ada-access": TokenHolder(identity=ADA, scopes=frozenset({ACCESS_SCOPE})),
            "ada-elsewhere": TokenHolder(
                identity=ADA, scopes=frozenset({READ_SCOPE, SUBMIT_SCOPE})
            ),
        }
        self.codes: list[tuple[str, str]] = []

    async def person(self, token: str, session_id: str = "") -> TokenHolder | None:
        if self.away:
            raise Unavailable("JupyterHub does not answer.", accepted="Try again.")
        return self.people.get(token)

    async def token_for_code(self, code: str, verifier: str) -> str:
        self.codes.append((code, verifier))
        if code != "good":
            raise NotSignedIn("JupyterHub did not confirm this sign-in.")
        return "ada-oauth"

    def authorize_url(self, state: str, verifier: str) -> str:
        return f"/hub/api/oauth2/authorize?state={state}"


class FakeService:
    """Replaces all services: stores requests, records calls, refuses with ``refusal``."""

    def __init__(self, notifier: ChangeNotifier) -> None:
        self.notifier = notifier
        self.store = new_store()
        self.clock = time.time
        self.found: dict[str, RequestOut] = {}
        self.happened: dict[str, list[EventOut]] = {}
        self.logs: dict[str, bytes] = {}
        self.outputs: dict[str, tuple[str, bytes]] = {}
        self.inputs: dict[str, bytes] = {}
        self.used: dict[str, list[UtilizationSeriesOut]] = {}
        self.reported: dict[str, ReportsOut] = {}
        self.sweeps: dict[str, TrialsOut] = {}
        self.pipelines: dict[str, PipelineOut] = {}
        self.devices: list[DeviceOut] = []
        self.put_out: dict[str, FilesOut] = {}
        self.written: dict[tuple[str, str], bytes] = {}
        self.submitted_jobs: dict[str, JobIn] = {}
        self.predicted: RunTimeOut | None = None
        self.reasons: dict[str, WhyOut] = {}
        self.wanted: list[RequestQuery] = []
        self.waiting = 0
        self.offered = [
            GroupChoice(name="cs101", max_devices=2, max_devices_per_user=1, max_seconds=14400)
        ]
        self.report = UsageReport(device_seconds=0.0, by_group=[], ledger=[])
        self.reserved: list[ReservationOut] = []
        self.homes: dict[str, HomeUse] = {}
        self.backend = FakeBackend()
        self.catalogue = ImagesOut(choice=False, images=[], pins=[])
        self.leases = {"attempt-token": "j-aaaaaaaa.1", "other-attempt": "j-bbbbbbbb.1"}
        self.ready_servers: set[tuple[str, str]] = set()
        self.teachers: dict[str, frozenset[str]] = {}
        self.refusal: CarrelError | None = None
        self.calls: list[tuple[object, ...]] = []
        self.attached: list[str] = []
        self.changed = threading.Condition()
        self.digest_reads = 0
        self._touched: list[Touched] = []

    # -- for tests ---

    def is_full(self) -> bool:
        return False

    def put(self, *requests: RequestOut) -> None:
        for request in requests:
            self.found[request.id] = request
            self._touch(request)
        self.notifier.notify()

    def happen(self, request_id: str, kind: str, data: Mapping[str, object]) -> None:
        number = sum(len(events) for events in self.happened.values()) + 1
        event = EventOut.model_validate(
            {
                "id": number,
                "request_id": request_id,
                "epoch": 1,
                "at": NOW,
                "kind": kind,
                "data": dict(data),
            }
        )
        self.happened.setdefault(request_id, []).append(event)
        self._touch(self.found.get(request_id) or job(id=request_id))
        self.notifier.notify()

    def _touch(self, request: RequestOut) -> None:
        touched = Touched(
            request_id=request.id,
            owner=request.owner,
            group=request.group,
            event_id=len(self._touched) + 1,
        )
        self._touched.append(touched)

    # -- for the web layer ---

    def now(self) -> float:
        return self.clock()

    def me(self, who: Identity) -> MeOut:
        teaches = sorted(self.teachers.get(who.name, frozenset()))
        return MeOut(name=who.name, admin=who.admin, groups=sorted(who.groups), teaches=teaches)

    def choices(self, who: Identity) -> list[GroupChoice]:
        return self.offered

    def names(self, who: Identity) -> set[str]:
        return {choice.name for choice in self.offered}

    def submit(self, who: Identity, body: JobIn) -> RequestOut:
        self._called("submit_job", who.name, body)
        name = body.notebook.name if body.notebook else ""
        made = job(owner=who.name, notebook=name, command=body.command, group=body.group)
        self.put(made)
        return made

    def start(self, who: Identity, server_name: str, options: SessionIn) -> RequestOut:
        self._called("start_session", who.name, server_name, options)
        made = session(owner=who.name, server_name=server_name, devices=options.devices)
        self.put(made)
        return made

    def stop(self, who: Identity, server_name: str) -> None:
        self._called("stop_session", who.name, server_name)

    def open(self, body: OpenSessionIn) -> RequestOut:
        self._called("open_session", body)
        return session(owner=body.owner, server_name=body.server_name)

    def request(self, who: Identity | None, request_id: str) -> RequestOut:
        found = self.found.get(request_id)
        if found is None or not self._sees(who, found):
            raise NotFound(f"There is no request {request_id}.")
        return found

    def why(self, who: Identity | None, request_id: str) -> WhyOut:
        found = self.request(who, request_id)
        return self.reasons.get(request_id) or WhyOut(request_id=found.id, sentences=["It runs."])

    def requests(
        self,
        who: Identity,
        *,
        kind: str | None,
        states: frozenset[str] | None,
        mine: bool,
        limit: int,
    ) -> list[RequestOut]:
        found = [
            request
            for request in self.found.values()
            if (request.owner == who.name if mine else self._sees(who, request))
            and kind in (None, request.kind)
            and (states is None or request.state in states)
        ]
        return sorted(found, key=lambda request: -request.submitted_at)[:limit]

    def find(self, who: Identity, wanted: RequestQuery) -> RequestsOut:
        self.wanted.append(wanted)
        if self.refusal is not None:
            raise self.refusal
        labels = dict(label.split("=", 1) for label in wanted.labels)
        found = [
            request
            for request in self.requests(
                who, kind=wanted.kind, states=wanted.states, mine=wanted.mine, limit=10**6
            )
            if labels.items() <= request.labels.items()
            and wanted.group in (None, request.group)
            and wanted.owner in (None, request.owner)
        ]
        after = next((n for n, r in enumerate(found, 1) if r.id == wanted.cursor), 0)
        page = found[after : after + wanted.limit]
        more = after + len(page) < len(found)
        return RequestsOut(requests=page, next=page[-1].id if more else "")

    def several(self, who: Identity, wanted: Sequence[RequestQuery]) -> list[RequestsOut]:
        lists = [
            self.requests(who, kind=w.kind, states=w.states, mine=w.mine, limit=w.limit)
            for w in wanted
        ]
        return [RequestsOut(requests=found) for found in lists]

    def home_use(self, owner: str) -> HomeUse | None:
        return self.homes.get(owner)

    def next_in_line(self, who: Identity) -> RequestOut | None:
        waiting = [r for r in self.found.values() if r.owner == who.name and r.wait is not None]
        return min(waiting, key=lambda r: r.wait.place if r.wait else 0, default=None)

    def files_of(self, who: Identity, request_id: str) -> FilesOut:
        self.request(who, request_id)
        return self.put_out.get(request_id, FilesOut(files=[]))

    def run_time(self, who: Identity, body: JobIn) -> RunTimeOut | None:
        return self.predicted

    def same_job(self, who: Identity, request_id: str) -> JobIn:
        found = self.request(who, request_id)
        if request_id in self.submitted_jobs:
            return self.submitted_jobs[request_id]
        return JobIn(group=found.group, command=found.command or ["true"])

    def open_file(self, who: Identity, request_id: str, name: str) -> BinaryIO:
        self.request(who, request_id)
        if (request_id, name) not in self.written:
            raise NotFound(f"{request_id} has no file {name}.")
        return BytesIO(self.written[request_id, name])

    def cancel(self, who: Identity, request_id: str, reason: str = "") -> RequestOut:
        self._called("cancel", who.name, request_id, *filter(None, [reason]))
        return self.request(who, request_id)

    def end(self, request_id: str, body: StopIn) -> RequestOut:
        self._called("end_session", request_id, body)
        return self.request(None, request_id)

    def events(
        self, who: Identity | None, request_id: str, after: int, *, limit: int = 100
    ) -> list[EventOut]:
        if request_id in self.found:
            self.request(who, request_id)
        return [e for e in self.happened.get(request_id, []) if e.id > after][:limit]

    def log(self, who: Identity, request_id: str, offset: int, *, member: int = 0) -> bytes:
        self.request(who, request_id)
        return self.logs.get(request_id, b"")[offset:]

    def output(self, who: Identity, request_id: str) -> tuple[str, bytes]:
        self.request(who, request_id)
        return self.outputs[request_id]

    def utilization(self, who: Identity, request_id: str) -> UtilizationsOut:
        self.request(who, request_id)
        return UtilizationsOut(attempts=self.used.get(request_id, []))

    def reports(
        self, who: Identity, request_id: str, trial: int = 0, *, points: int = 500
    ) -> ReportsOut:
        self.request(who, request_id)
        return self.reported.get(request_id, ReportsOut(reports=[]))

    def of(self, who: Identity, request_id: str, *, with_end: bool = True) -> PipelineOut:
        self.request(who, request_id)
        return self.pipelines.get(request_id, PipelineOut(jobs=[], links=[]))

    def trials(self, who: Identity, request_id: str) -> TrialsOut:
        self.request(who, request_id)
        return self.sweeps[request_id]

    def submitted(self, who: Identity, request_id: str) -> bytes:
        self.request(who, request_id)
        if request_id not in self.inputs:
            raise NotFound(f"The files of {request_id} were deleted.")
        return self.inputs[request_id]

    def pool(self, who: Identity | None, **_: object) -> PoolOut:
        return PoolOut(
            devices=self.devices,
            free=sum(device.state == "free" for device in self.devices),
            total=len(self.devices),
            out_of_service=sum(device.state in ("sick", "gone") for device in self.devices),
            waiting=self.waiting,
            simulated=any(device.simulated for device in self.devices),
            reservations=self.reserved,
        )

    def change_digest(self, after: int | None) -> ChangeDigest:
        self.digest_reads += 1
        return ChangeDigest(
            last=len(self._touched),
            touched=() if after is None else tuple(self._touched[after:]),
            suspect=frozenset(),
            devices=(),
            allocations=(),
            waiting=self.waiting,
            taught=self.teachers,
        )

    def content_hashes(self, request_ids: Collection[str]) -> Mapping[str, str]:
        found = (self.found[name] for name in request_ids if name in self.found)
        return {each.id: each.model_dump_json(exclude={"device_seconds"}) for each in found}

    def totals(self, who: Identity) -> UsageReport:
        return self.report

    def budgets(self, who: Identity, group: str = "", **_: object) -> list[BudgetOut]:
        return self.report.budgets

    def reservations(self, who: Identity, **_: object) -> list[ReservationOut]:
        return self.reserved

    def shown(self, who: Identity, groups: Collection[str]) -> ImagesOut:
        return self.catalogue

    def ledger(self, who: Identity, request_id: str) -> list[LedgerOut]:
        return [line for line in self.report.ledger if line.request_id == request_id]

    def followers(self, who: Identity, request_id: str) -> list[RequestOut]:
        return [
            each
            for each in self.found.values()
            if request_id in {after.partition(":")[0] for after in each.after}
        ]

    def launch(self, lease_id: str) -> RequestOut:
        self._called("launch", lease_id)
        return job()

    def started(self, lease_id: str, body: StartedIn) -> RequestOut:
        self._called("started", lease_id, body)
        return job()

    def add_events(self, lease_id: str, body: EventsIn) -> int:
        self._called("add_events", lease_id, [event.kind for event in body.events])
        return len(body.events)

    def lease_of_token(self, token: str) -> str:
        if token not in self.leases:
            raise Forbidden("This token belongs to no attempt.")
        return self.leases[token]

    def ready(self, owner: str, server_name: str) -> bool:
        return (owner, server_name) in self.ready_servers

    def attach(self, request_id: str) -> None:
        with self.changed:
            self.attached.append(request_id)
            self.changed.notify_all()

    def detach(self, request_id: str) -> None:
        with self.changed:
            self.attached.remove(request_id)
            self.changed.notify_all()

    def _sees(self, who: Identity | None, request: RequestOut) -> bool:
        if who is None or who.admin or request.owner == who.name:
            return True
        return request.group in self.teachers.get(who.name, frozenset())

    def _called(self, *call: object) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.calls.append(call)


def context_of(service: FakeService) -> Context:
    return Context(
        store=service.store,
        hub=FakeHub(),
        files=cast(Files, service),
        backend=service.backend,
        clock=service.now,
        progress=ProgressCache(service.store),
        claim_seconds=CLAIM_SECONDS,
        grace_seconds=PREEMPTION_GRACE_SECONDS,
        signing_key=SigningKey.generate(),
        cipher=Cipher(Path(tempfile.gettempdir()) / f"keys-{token_hex(8)}"),
        notifier=service.notifier,
        spawner_listeners=cast(SpawnerListeners, service),
    )


def with_fakes(web: WebContext, service: FakeService) -> WebContext:
    """Return the context with the fake in the place of all its services."""
    fake = cast(Any, service)
    reports = replace(web.usage, budgets=fake)
    feed = ChangeFeed(fake, fake, web.context.plan_cache, service.notifier)
    dispatcher = ChangeDispatcher(feed, web.streams)
    return replace(
        web,
        membership=fake,
        pool=fake,
        images=fake,
        requests=fake,
        comparisons=RunComparisons(fake),
        jobs=fake,
        explanations=fake,
        trials=fake,
        pipelines=fake,
        termination=fake,
        attempts=fake,
        sessions=fake,
        budgets=fake,
        usage=cast(UsageReports, FakeUsage(service, reports)),
        group_choices=GroupChoiceCache(fake, web.clock),
        change_dispatcher=dispatcher,
        event_streams=replace(web.event_streams, requests=fake, dispatcher=dispatcher),
    )


class Client:
    """Calls the application directly, one call after another."""

    def __init__(self, app: FastAPI, headers: Mapping[str, str]) -> None:
        self._app = app
        self.headers = dict(headers)

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        headers = self.headers | more.pop("headers", {})

        async def call() -> httpx.Response:
            transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://127.0.0.1:8000"
            ) as client:
                return await client.request(method, path, headers=headers, **more)

        return asyncio.run(call())

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.request("GET", path, **more)

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.request("POST", path, **more)

    def put(self, path: str, **more: Any) -> httpx.Response:
        return self.request("PUT", path, **more)

    def delete(self, path: str, **more: Any) -> httpx.Response:
        return self.request("DELETE", path, **more)


class FakeUsage:
    """Usage reports over the store of the service, with its totals."""

    def __init__(self, service: FakeService, reports: UsageReports) -> None:
        self._service = service
        self._reports = reports

    def totals(self, who: Identity) -> UsageReport:
        return self._service.totals(who)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reports, name)


class World:
    """An application with fakes, and clients for its kinds of callers."""

    def __init__(self, *, demo: bool = False, metrics_token: str = "") -> None:
        self.service = FakeService(ChangeNotifier())
        self.sign_in = FakeSignIn()
        self.settings = Settings(demo=demo)
        self.context = context_of(self.service)
        self.app: FastAPI = build_app(
            self.context,
            self.sign_in,
            self.settings,
            courses=new_courses(self.context),
            hub_token=HUB_TOKEN,
            crypt_key="signs",
            metrics_token=metrics_token,
        )
        self.app.state.web = with_fakes(self.web, self.service)

    @property
    def web(self) -> WebContext:
        return cast(WebContext, self.app.state.web)

    def client(self, **headers: str) -> Client:
        return Client(self.app, headers)

    def program(self, token: str) -> Client:
        return self.client(Authorization=f"token {token}")

    def cookie(self, who: str = "ada-oauth") -> str:
        return self.web.signer.wrap(SESSION_PURPOSE, who)

    def browser(self, who: str = "ada-oauth", **headers: str) -> Client:
        return self.client(Cookie=f"{SESSION_COOKIE}={self.cookie(who)}", **headers)

    def form_token(self, who: str = "ada-oauth") -> str:
        return self.web.caller_access.csrf.issue(self.cookie(who))

    def own_page(self, who: str = "ada-oauth") -> Client:
        """A browser on a page of Carrel, which sends the form token and the origin."""
        return self.browser(
            who, **{"X-Carrel-CSRF": self.form_token(who), "Sec-Fetch-Site": "same-origin"}
        )


def device(number: int = 0, **changes: object) -> DeviceOut:
    return DeviceOut.model_validate(
        {
            "id": f"SIM-{number}",
            "node": "local",
            "index": number,
            "model": "Simulated GPU",
            "memory_bytes": 16 * 2**30,
            "simulated": True,
            "state": "free",
        }
        | changes
    )


def session(**changes: object) -> RequestOut:
    return RequestOut.model_validate(
        {
            "id": "s-aaaaaaaa",
            "kind": "session",
            "owner": "ada",
            "group": "cs101",
            "devices": 1,
            "seconds": 3600,
            "state": "queued",
            "submitted_at": NOW - 60,
        }
        | changes
    )


def job(**changes: object) -> RequestOut:
    return RequestOut.model_validate(
        {
            "id": "j-aaaaaaaa",
            "kind": "job",
            "owner": "ada",
            "group": "cs101",
            "devices": 1,
            "seconds": 1800,
            "state": "queued",
            "submitted_at": NOW - 120,
            "notebook": "train.ipynb",
            "output": "train.ipynb",
        }
        | changes
    )


def waiting(place: int = 1, **changes: object) -> WaitOut:
    return WaitOut.model_validate(
        {
            "place": place,
            "ahead": place - 1,
            "reason": "no_free_device",
            "sentence": f"Queued at position {place}. All fitting devices are in use.",
            "why": "All fitting devices are in use.",
            "expected_at": NOW + 5400,
            "latest_at": NOW + 5400,
        }
        | changes
    )


def lease(*devices: DeviceOut, **changes: object) -> LeaseOut:
    return LeaseOut.model_validate(
        {
            "id": "s-aaaaaaaa.1",
            "epoch": 1,
            "state": "live",
            "devices": [found.model_dump() for found in devices],
            "granted_at": NOW - 30,
        }
        | changes
    )


def cause(code: str, message: str, details: str = "") -> CauseOut:
    return CauseOut(code=code, message=message, details=details)


def line(number: int, **changes: object) -> LedgerOut:
    return LedgerOut.model_validate(
        {
            "id": number,
            "lease_id": "j-aaaaaaaa.1",
            "request_id": "j-aaaaaaaa",
            "epoch": 1,
            "owner": "ada",
            "group": "cs101",
            "devices": 1,
            "starts_at": NOW - 600,
            "ends_at": NOW - 540,
            "device_seconds": 60.0,
        }
        | changes
    )


def full(world: World) -> None:
    """Return a desk with all kinds of content."""
    service = world.service
    mine = device(1, state="yours", request_id="s-bbbbbbbb")
    service.devices = [
        device(0, state="taken"),
        mine,
        device(2),
        device(3, simulated=False, id="GPU-3", model="NVIDIA H100 80GB", state="busy",
               why="A process that Carrel did not start works on it."),
        device(4, state="sick", why="It reports uncorrectable memory errors."),
        device(5, state="gone"),
    ]  # fmt: skip  # grouped by meaning
    service.waiting = 3
    service.put(
        session(
            id="s-bbbbbbbb",
            server_name="experiments",
            state="running",
            started_at=NOW - 1500,
            ends_by=NOW + 5100,
            seconds=6600,
            lease=lease(mine).model_dump(),
        ),
        session(wait=waiting(2).model_dump(), submitted_at=NOW - 300),
        session(
            id="s-cccccccc",
            server_name="old",
            state="failed",
            ended=True,
            ended_at=NOW - 4000,
            submitted_at=NOW - 9000,
            cause=cause("server_died", "The session's server died.", "Killed").model_dump(),
        ),
        job(wait=waiting(3).model_dump()),
        job(
            id="j-bbbbbbbb",
            notebook="sweep.ipynb",
            state="running",
            started_at=NOW - 200,
            submitted_at=NOW - 400,
            lease=lease(device(2, state="yours"), id="j-bbbbbbbb.1").model_dump(),
            progress=ProgressOut(cells=9, done=3, current=4).model_dump(),
            parameters={"lr": 0.05, "name": "a <b>"},
            ends_by=NOW + 1600,
            device_seconds=200.0,
        ),
        job(
            id="j-cccccccc",
            notebook="broken.ipynb",
            state="failed",
            ended=True,
            started_at=NOW - 900,
            ended_at=NOW - 800,
            submitted_at=NOW - 1000,
            lease=lease(device(2), id="j-cccccccc.1", state="released").model_dump(),
            cause=cause(
                "cell_error",
                "Error in cell 4: ZeroDivisionError: division by zero",
                "Traceback (most recent call last):\n  File …\nZeroDivisionError: division by zero",
            ).model_dump(),
            progress=ProgressOut(cells=9, done=3).model_dump(),
            device_seconds=100.0,
        ),
        job(
            id="j-dddddddd",
            notebook="digits.ipynb",
            state="succeeded",
            ended=True,
            started_at=NOW - 90000,
            ended_at=NOW - 86400,
            submitted_at=NOW - 90100,
            lease=lease(id="j-dddddddd.1", state="released").model_dump(),
            cause=cause("succeeded", "All 9 cells ran.").model_dump(),
        ),
        job(id="j-eeeeeeee", owner="ben", notebook="bens.ipynb", submitted_at=NOW - 50),
    )
    service.logs["j-bbbbbbbb"] = "epoch 1: loss 0.91\nepoch 2: loss 0.44 — ü\n".encode()
    service.report = UsageReport(
        device_seconds=12345.6,
        by_group=[UsageOut(owner="ada", group="cs101", charged=12000.0, open=345.6)],
        ledger=[line(1), line(2, lease_id="j-bbbbbbbb.1", request_id="j-bbbbbbbb")],
    )


def event_in(seq: int, kind: str = "log") -> dict[str, object]:
    return EventIn(seq=seq, at=NOW, kind=kind).model_dump()
