"""Build the web application: one FastAPI app under the service's prefix."""

from __future__ import annotations

import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache, partial
from pathlib import Path

import uvicorn
from fastapi import APIRouter, FastAPI
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute

from ...courses.services import CourseServices
from ..accounts.store import Accounts
from ..administration.service import Administration
from ..admission.quotes import Quotes
from ..config.base_url import BASE_URL, SERVICE_PREFIX
from ..config.settings import LOCALHOST, Settings
from ..gallery.runs import GalleryRuns
from ..gallery.service import GalleryService
from ..groups.membership import Membership
from ..interfaces.backups import Backups
from ..interfaces.clock import Clock
from ..inventory.images import ImageCatalogue
from ..inventory.pool import PoolQueries
from ..messages import requests as request_messages
from ..messages import units
from ..messages import usage as usage_messages
from ..messages.help_pages import help_page
from ..notifications.service import NotificationService
from ..open_links.tickets import OpenLinks
from ..programs.service import Programs
from ..receipts.reruns import Reruns
from ..receipts.service import ReceiptService
from ..requests.amendments import Amendments, TimeExtensions
from ..requests.attempt_reports import AttemptReports
from ..requests.comparison.service import RunComparisons
from ..requests.explanation import WaitExplanations
from ..requests.jobs import JobService
from ..requests.pipelines import PipelineQueries
from ..requests.queries import RequestQueries
from ..requests.resumption import Resumption
from ..requests.sweeps import TrialService
from ..requests.termination import RequestTermination
from ..runtime.context import Context
from ..runtime.loop_metrics import LoopMetrics
from ..schemas.requests import EXTEND_SECONDS
from ..secrets.delivery import SecretDelivery
from ..secrets.vault import SecretVault
from ..sessions.activity import SessionActivity
from ..sessions.held import HeldSessions
from ..sessions.lifecycle import SessionLifecycle
from ..supervisor.doctor_run import DoctorRun
from ..transparency.service import TransparencyLog
from ..usage.budgets import BudgetQueries
from ..usage.reports import UsageReports
from ..usage.what_if.service import WhatIfReplays
from ..workflows.rehearsal_schedules import RehearsalSchedules
from ..workflows.schedules import ScheduleService
from ..workflows.semester_planner import SemesterPlanner
from .api import admin as admin_api
from .api import announcements as announcements_api
from .api import calendar as calendar_api
from .api import comparisons as comparisons_api
from .api import courses as courses_api
from .api import coursework as coursework_api
from .api import gallery as gallery_api
from .api import images as images_api
from .api import internal as internal_api
from .api import monitoring as monitoring_api
from .api import ngshare as ngshare_api
from .api import notifications as notifications_api
from .api import pool as pool_api
from .api import rehearsals as rehearsals_api
from .api import requests as requests_api
from .api import secrets as secrets_api
from .api import service as service_api
from .api import sessions as sessions_api
from .api import usage as usage_api
from .api import workflows as workflows_api
from .api.open_links import routes as open_links_api
from .api.programs import routes as programs_api
from .dependencies import errors, visitors
from .dependencies.bodies import BodyLimit
from .dependencies.call_limit import CallLimit
from .dependencies.context import WebContext
from .dependencies.group_choices import GroupChoiceCache
from .dependencies.head_requests import HeadRequests
from .forms import pickers
from .html import documentation, static_files
from .html.filters import drawn_once, filters
from .html.urls import password_link, person_url, server_url, wait_url
from .live.change_feed import ChangeFeed
from .live.dispatcher import ChangeDispatcher
from .live.event_streams import EventStreams
from .live.sse import Streams
from .monitoring.metrics import Metrics
from .monitoring.readiness import Check, Readiness, check_loop
from .monitoring.request_log import Tracing
from .openapi import description
from .pages import account as account_pages
from .pages import announcements as announcement_pages
from .pages import calendar as calendar_pages
from .pages import desk as desk_pages
from .pages import forecasts as forecast_pages
from .pages import login as login_pages
from .pages import notifications as notification_pages
from .pages import open_link as open_link_pages
from .pages import programs as program_pages
from .pages import secrets as secret_pages
from .pages import sessions as session_pages
from .pages import site_report as site_report_pages
from .pages import usage as usage_pages
from .pages import what_if as what_if_pages
from .pages.admin import admin as admin_pages
from .pages.admin import announcements as admin_announcement_pages
from .pages.admin import calendar as admin_calendar_pages
from .pages.admin import images as image_pages
from .pages.admin import people as people_pages
from .pages.admin import semester as admin_semester_pages
from .pages.admin import system as system_pages
from .pages.courses import assignment as assignment_pages
from .pages.courses import courses as course_pages
from .pages.courses import gradebook as gradebook_pages
from .pages.courses import grading as grading_pages
from .pages.courses import leaderboard as leaderboard_pages
from .pages.courses import manual_grading as manual_grading_pages
from .pages.courses import regrades as regrade_pages
from .pages.courses import rehearsal as rehearsal_pages
from .pages.courses import release as release_pages
from .pages.courses import student_work as student_work_pages
from .pages.courses import teacher as teacher_pages
from .pages.form_addresses import page_redirects
from .pages.jobs import comparison as comparison_pages
from .pages.jobs import detail as job_pages
from .pages.jobs import gallery as gallery_pages
from .pages.jobs import list as job_list_pages
from .pages.jobs import schedules as schedule_pages
from .pages.jobs import submit as submit_pages
from .pages.jobs import workers as worker_pages
from .security.access import CallerAccess
from .security.call_budgets import CallBudgets
from .security.csrf import Csrf
from .security.headers import SafeHeaders
from .security.hub_oauth import SignIn
from .security.signer import Signer

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]
_PAGES = (
    desk_pages.router,
    job_list_pages.router,
    schedule_pages.router,
    usage_pages.router,
    site_report_pages.router,
    what_if_pages.router,
    forecast_pages.router,
    session_pages.router,
    submit_pages.router,
    gallery_pages.router,
    job_pages.router,
    comparison_pages.router,
    worker_pages.router,
    admin_pages.router,
    people_pages.router,
    admin_semester_pages.router,
    system_pages.router,
    admin_announcement_pages.router,
    announcement_pages.router,
    account_pages.router,
    notification_pages.router,
    program_pages.router,
    open_link_pages.router,
    secret_pages.router,
    calendar_pages.router,
    admin_calendar_pages.router,
    image_pages.router,
    grading_pages.router,
    login_pages.router,
    assignment_pages.router,
    leaderboard_pages.router,
    course_pages.router,
    teacher_pages.router,
    release_pages.router,
    student_work_pages.router,
    manual_grading_pages.router,
    regrade_pages.router,
    gradebook_pages.router,
    rehearsal_pages.router,
)
_API = (
    service_api.router,
    pool_api.router,
    requests_api.router,
    comparisons_api.router,
    programs_api.router,
    workflows_api.router,
    secrets_api.router,
    usage_api.router,
    sessions_api.router,
    open_links_api.router,
    admin_api.router,
    announcements_api.router,
    notifications_api.router,
    calendar_api.router,
    images_api.router,
    gallery_api.router,
    courses_api.router,
    coursework_api.router,
    rehearsals_api.router,
    ngshare_api.router,
)
_TEMPLATES = Path(__file__).parent / "templates"
_KEPT_SECONDS = 30
_GRACE_SECONDS = 3


def build_app(
    context: Context,
    auth: SignIn,
    settings: Settings,
    *,
    courses: CourseServices,
    hub_token: str,
    crypt_key: str,
    metrics_token: str = "",
    clock: Clock = time.time,
    lifespan: Lifespan | None = None,
    accounts: Accounts | None = None,
    loop_metrics: LoopMetrics | None = None,
    checks: Mapping[str, Check] | None = None,
    doctor: DoctorRun | None = None,
    backups: Backups | None = None,
    log: TransparencyLog | None = None,
    notifications: NotificationService | None = None,
    open_links: OpenLinks | None = None,
) -> FastAPI:
    """Build the web application of the service.

    Args:
        auth: asks JupyterHub for the user of a token: ``HubSignIn.of(settings, service_token)``.
        hub_token: the service token of JupyterHub's spawners.
        crypt_key: signs cookies and form tokens; users stay signed in while it does not change.
        lifespan: runs as long as the application does (the scheduling loop); the notifier is bound
            to the event loop before it starts.
        accounts: Carrel's own accounts, for administrators to change.
        metrics_token: token that may read ``/metrics``, in addition to JupyterHub tokens.
        loop_metrics: liveness of the scheduling loop.
        checks: further checks of ``/readyz``.
        doctor: the checks of ``carrel doctor``, for administrators to run.
        backups: backups that administrators may start.
        log: the log that can be proved.
        notifications: channels of users, and test messages.
        open_links: rules and tickets of links that open material; by default links open nothing.
    """

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        context.notifier.bind()
        if lifespan is None:
            yield
        else:
            async with lifespan(app):
                yield

    app = FastAPI(
        title="Carrel",
        version="1",
        lifespan=life,
        openapi_url=f"{errors.API_PREFIX}v1/openapi.json",
        docs_url=None,  # the default page loads its scripts from another host
        redoc_url=None,
        redirect_slashes=False,
    )
    signer = Signer(crypt_key)
    streams = Streams(context.notifier)
    loop_metrics = loop_metrics or LoopMetrics()
    membership = Membership.of(context)
    budgets = BudgetQueries(context.store, context.clock, membership)
    requests = RequestQueries(context)
    gallery = GalleryService(context, courses.blobs)
    dispatcher = ChangeDispatcher(
        ChangeFeed(context.store, requests, context.plan_cache, context.notifier), streams
    )
    trials = TrialService(context)
    receipts = ReceiptService(context, trials, site=settings.url)
    app.state.web = WebContext(
        context=context,
        membership=membership,
        pool=PoolQueries.of(context),
        images=ImageCatalogue.of(context),
        requests=requests,
        comparisons=RunComparisons(requests, receipts),
        jobs=JobService(context),
        programs=Programs(context),
        resumption=Resumption(context),
        receipts=receipts,
        reruns=Reruns(context, receipts, courses=courses.folders.root),
        schedules=ScheduleService(context),
        rehearsal_schedules=RehearsalSchedules(context, courses.rehearsals),
        semester=SemesterPlanner(context, courses.class_list),
        secrets=SecretVault(context),
        secret_delivery=SecretDelivery(context),
        gallery=gallery,
        gallery_runs=GalleryRuns(gallery),
        explanations=WaitExplanations(context),
        trials=trials,
        pipelines=PipelineQueries(context),
        termination=RequestTermination(context),
        amendments=Amendments(context),
        time_extensions=TimeExtensions(context),
        attempts=AttemptReports(context),
        sessions=SessionLifecycle(context),
        held_sessions=HeldSessions(context),
        activity=SessionActivity(context, settings.idle_countdown_seconds),
        quotes=Quotes(context),
        budgets=budgets,
        usage=UsageReports(context.store, context.clock, budgets),
        what_if=WhatIfReplays(
            store=context.store, clock=context.clock, learned_order=context.learned_order
        ),
        administration=Administration(context, accounts),
        courses=courses,
        group_choices=GroupChoiceCache(membership, clock),
        metrics=Metrics(context, loop_metrics, streams, notifications, log),
        readiness=Readiness({"loop": partial(check_loop, loop_metrics), **(checks or {})}),
        caller_access=CallerAccess(
            auth,
            signer,
            Csrf(signer, settings.url),
            hub_token,
            context.store,
            context.clock,
            metrics_token,
        ),
        call_budgets=CallBudgets.of(settings),
        signer=signer,
        streams=streams,
        change_dispatcher=dispatcher,
        event_streams=EventStreams(
            requests=requests,
            dispatcher=dispatcher,
            listeners=context.spawner_listeners,
            notifier=context.notifier,
        ),
        doctor=doctor,
        backups=backups,
        log=log,
        notifications=notifications,
        open_links=open_links
        or OpenLinks(allowed=(), signer=signer, base=settings.public_service_url),
        settings=settings,
        templates=_templates(),
        clock=clock,
    )
    _route(app)
    errors.install(app)
    app.add_exception_handler(visitors.SignInRequired, visitors.on_sign_in_required)
    description.describe(app)
    app.add_middleware(BodyLimit)
    app.add_middleware(CallLimit)
    app.add_middleware(SafeHeaders)
    app.add_middleware(HeadRequests)
    app.add_middleware(Tracing)
    return app


def _route(app: FastAPI) -> None:
    # FastAPI prepares a route at its first call, which costs a second for all of them. They are the
    # same in every application of a process, and are prepared once.
    app.router.routes.extend(_routes())
    static_files.install(app)
    documentation.install(app)

    @app.get(SERVICE_PREFIX.rstrip("/"), include_in_schema=False)
    def without_slash() -> RedirectResponse:
        return RedirectResponse(SERVICE_PREFIX)


@cache
def _routes() -> list[BaseRoute]:
    router = APIRouter()
    api = f"{errors.API_PREFIX}v1"
    site = SERVICE_PREFIX.rstrip("/")
    # Routes are matched in order, which takes 2 µs for each: the few of runners and spawners, which
    # call most, then pages, because users wait for them.
    router.include_router(internal_api.router, prefix=api)
    for page in (page_redirects(_PAGES), *_PAGES):
        router.include_router(page, prefix=site)
    for part in _API:
        router.include_router(part, prefix=api)
    for prefix in (site, ""):
        router.include_router(monitoring_api.router, prefix=prefix)
    return router.routes


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,  # a page has dozens of templates, which would all be checked on disk
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters())
    environment.globals.update(
        prefix=SERVICE_PREFIX,
        extend_seconds=EXTEND_SECONDS,
        hub_prefix=f"{BASE_URL}hub/",
        help_page=help_page,
        messages=request_messages,
        units=units,
        usage_messages=usage_messages,
        password_link=password_link,
        person_url=person_url,
        pickers=pickers,
        wait_url=wait_url,
        server_url=server_url,
        drawn=drawn_once(environment),
    )
    return environment


class Server(uvicorn.Server):
    """uvicorn that ends open event streams at shutdown instead of waiting for them."""

    def __init__(self, config: uvicorn.Config, streams: Streams) -> None:
        super().__init__(config)
        self._streams = streams

    @classmethod
    def of(cls, app: FastAPI, *, port: int, host: str = LOCALHOST) -> Server:
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            access_log=False,
            server_header=False,
            # Trust the proxy on this machine, whose headers tell whether the connection is HTTPS.
            # Containers have other addresses.
            proxy_headers=True,
            forwarded_allow_ips=[LOCALHOST, host],
            # Longer than in the proxy, which then always closes idle connections first.
            timeout_keep_alive=_KEPT_SECONDS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            log_config=None,
        )
        web: WebContext = app.state.web
        return cls(config, web.streams)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._streams.close()
        await super().shutdown(sockets)
