"""The context of all routes, found from the request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import ParamSpec, TypeVar

from jinja2 import Environment
from starlette.requests import Request

from ....courses.services import CourseServices
from ...administration.announcements import announcement_out
from ...administration.service import Administration
from ...admission.quotes import Quotes
from ...attempts.user_compile_caches import UserCompileCaches
from ...config.settings import Settings
from ...errors import NotFound, Unavailable
from ...gallery.runs import GalleryRuns
from ...gallery.service import GalleryService
from ...groups.membership import Membership
from ...interfaces.backups import Backups
from ...interfaces.clock import Clock
from ...inventory.images import ImageCatalogue
from ...inventory.pool import PoolQueries
from ...notifications.service import NotificationService
from ...open_links.tickets import OpenLinks
from ...programs.service import Programs
from ...receipts.reruns import Reruns
from ...receipts.service import ReceiptService
from ...records.audit import ChangeFilter
from ...records.identity import Identity
from ...requests.amendments import Amendments, TimeExtensions
from ...requests.attempt_reports import AttemptReports
from ...requests.comparison.service import RunComparisons
from ...requests.explanation import WaitExplanations
from ...requests.jobs import JobService
from ...requests.pipelines import PipelineQueries
from ...requests.queries import RequestQueries
from ...requests.resumption import Resumption
from ...requests.sweeps import TrialService
from ...requests.termination import RequestTermination
from ...runtime.context import Context
from ...schemas.announcements import AnnouncementOut
from ...secrets.delivery import SecretDelivery
from ...secrets.vault import SecretVault
from ...sessions.activity import SessionActivity
from ...sessions.held import HeldSessions
from ...sessions.lifecycle import SessionLifecycle
from ...supervisor.doctor_run import DoctorRun
from ...transparency.service import TransparencyLog
from ...usage.budgets import BudgetQueries
from ...usage.reports import UsageReports
from ...usage.site_report import SiteReports
from ...usage.what_if.service import WhatIfReplays
from ...workflows.rehearsal_schedules import RehearsalSchedules
from ...workflows.schedules import ScheduleService
from ...workflows.semester_planner import SemesterPlanner
from ..html.notebook_cells import NotebookCellCache
from ..html.output_cache import NotebookOutputCache
from ..live.dispatcher import ChangeDispatcher
from ..live.event_streams import EventStreams
from ..live.sse import Streams
from ..monitoring.metrics import Metrics
from ..monitoring.readiness import Readiness
from ..security.access import CallerAccess, Visitor
from ..security.call_budgets import CallBudgets
from ..security.signer import Signer
from .group_choices import GroupChoiceCache


@dataclass(frozen=True, slots=True, kw_only=True)
class WebContext:
    """The services behind the routes; created once by ``build_app``."""

    context: Context
    membership: Membership
    pool: PoolQueries
    images: ImageCatalogue
    requests: RequestQueries
    comparisons: RunComparisons
    jobs: JobService
    programs: Programs
    resumption: Resumption
    receipts: ReceiptService
    reruns: Reruns
    schedules: ScheduleService
    rehearsal_schedules: RehearsalSchedules
    semester: SemesterPlanner
    secrets: SecretVault
    secret_delivery: SecretDelivery
    gallery: GalleryService
    gallery_runs: GalleryRuns
    explanations: WaitExplanations
    trials: TrialService
    pipelines: PipelineQueries
    termination: RequestTermination
    amendments: Amendments
    time_extensions: TimeExtensions
    attempts: AttemptReports
    sessions: SessionLifecycle
    held_sessions: HeldSessions
    activity: SessionActivity
    quotes: Quotes
    budgets: BudgetQueries
    usage: UsageReports
    what_if: WhatIfReplays
    administration: Administration
    courses: CourseServices
    metrics: Metrics
    readiness: Readiness
    group_choices: GroupChoiceCache
    caller_access: CallerAccess
    call_budgets: CallBudgets
    signer: Signer
    streams: Streams
    change_dispatcher: ChangeDispatcher
    event_streams: EventStreams
    doctor: DoctorRun | None
    backups: Backups | None
    log: TransparencyLog | None
    notifications: NotificationService | None
    open_links: OpenLinks
    settings: Settings
    templates: Environment
    clock: Clock
    notebook_cells: NotebookCellCache = field(default_factory=NotebookCellCache)
    notebook_outputs: NotebookOutputCache = field(default_factory=NotebookOutputCache)

    @property
    def site_reports(self) -> SiteReports:
        """Return the reports for administrators, with the prices of the settings."""
        return SiteReports(
            store=self.context.store,
            clock=self.clock,
            costs=self.settings.device_models,
            currency=self.settings.currency,
        )

    @property
    def compile_caches(self) -> UserCompileCaches:
        return UserCompileCaches(self.context)

    @property
    def user_notifications(self) -> NotificationService:
        """Return the service of notifications. Raises NotFound where there is none."""
        if self.notifications is None:
            raise NotFound("This site has no notifications.")
        return self.notifications

    def proofs(self) -> TransparencyLog:
        """Return the log that can be proved. Raises Unavailable: this service has none."""
        if self.log is None:
            raise Unavailable("This service keeps no log.", accepted="Ask its administrator.")
        return self.log

    def render(self, template: str, **values: object) -> str:
        """Render a page or a part of one."""
        given = values.get("who")
        who = given if isinstance(given, Identity) else None
        teaches = self.usage.teaches(who) if who else []
        runs_courses = who and (who.admin or teaches or self.courses.access.grades_somewhere(who))
        return self.templates.get_template(template).render(
            settings=self.settings,
            now=self.clock(),
            teaches=teaches,
            runs_courses=runs_courses,
            hub_unreachable=self.context.hub.away,
            disk_full=self.context.files.is_full(),
            # Not read for a part of a page.
            announcements=lambda: self.announcements(who),
            **values,
        )

    def render_for(self, visitor: Visitor, template: str, **values: object) -> str:
        """Render a page for a visitor, with the token for its forms."""
        csrf = self.caller_access.csrf.issue(visitor.session)
        return self.render(template, who=visitor.identity, csrf=csrf, **values)

    def announcements(self, who: Identity | None) -> list[AnnouncementOut]:
        """Return the banners that a user, or a visitor who is not signed in, sees now."""
        now = self.clock()
        found = self.context.store.announcements_for(who.name if who else "", now)
        return [announcement_out(each, now) for each in found]

    def edit_version(self) -> int:
        """Return the version for the forms of a page. Read it before what they show."""
        newest = self.context.store.changes(ChangeFilter(limit=1))
        return newest[0].id if newest else 0


def web_of(request: Request) -> WebContext:
    web: WebContext = request.app.state.web
    return web


P = ParamSpec("P")
T = TypeVar("T")


def in_one_transaction(route: Callable[P, T]) -> Callable[P, T]:
    """Run the route of a read-only page in one transaction of the store.

    Not for pages that call JupyterHub: see ``Store.together``.
    """

    @wraps(route)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        web = kwargs["web"]
        assert isinstance(web, WebContext), "routes are called with keyword arguments"
        with web.context.store.together():
            return route(*args, **kwargs)

    return wrapper
