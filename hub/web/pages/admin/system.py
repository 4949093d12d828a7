"""Pages about the site as a whole: health, the checks of ``carrel doctor``, and backups."""

from __future__ import annotations

from collections import Counter

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from ..... import __version__
from ....config.base_url import SERVICE_PREFIX
from ....errors import CarrelError, Conflict
from ....interfaces.backups import BackupProgress, Backups
from ....records.audit import AuditAction, ChangeFilter
from ....records.identity import require_admin
from ....supervisor.doctor_run import DoctorReport
from ...dependencies.callers import Carrel
from ...dependencies.context import WebContext
from ...dependencies.edit_versions import version_for
from ...dependencies.redirects import SEE_OTHER
from ...dependencies.visitors import Form, Guest, html
from ...security.access import Visitor

ADMIN = f"{SERVICE_PREFIX}admin"
_SHOWN = 10
_BY_COMMAND = "Run `carrel doctor` on the machine of the site."
_PARTS = {"loop": "Scheduling loop", "store": "Store", "hub": "JupyterHub"}
"""Names of the checks of readiness."""

router = APIRouter(include_in_schema=False, prefix="/admin")


# -- health -----------------------------------------------------------------------------------


@router.get("/health")
def health(web: Carrel, visitor: Guest) -> Response:
    """Show the frame of the page; what it shows may take seconds, and is fetched by it."""
    require_admin(visitor.identity)
    return html(web.render_for(visitor, "admin/health.html", version=version_for(web)))


@router.get("/health/live")
def health_live(web: Carrel, visitor: Guest) -> Response:
    require_admin(visitor.identity)
    ready = web.readiness.check()
    pool = web.pool.pool(visitor.identity)
    devices = Counter("taken" if each.state == "yours" else each.state for each in pool.devices)
    page = web.render(
        "admin/health_parts.html",
        ready=ready,
        parts=[(_PARTS.get(name, name), found) for name, found in ready.checks.items()],
        version_of_carrel=__version__,
        cycles=web.metrics.loop_metrics.cycles(),
        since_cycle=web.metrics.loop_metrics.since_cycle(),
        streams=web.streams.open,
        census=web.context.store.census(),
        devices=sorted(devices.items()),
        nodes=web.administration.nodes(visitor.identity),
        waiting=web.context.store.waiting_for_devices(),
        own_accounts=web.administration.own_accounts is not None,
    )
    return html(page)


# -- doctor -----------------------------------------------------------------------------------


@router.get("/doctor")
def doctor(web: Carrel, visitor: Guest) -> Response:
    require_admin(visitor.identity)
    page = web.render_for(
        visitor,
        "admin/doctor.html",
        can_run=web.doctor is not None,
        report=_report(web),
        version=version_for(web),
    )
    return html(page)


@router.get("/doctor/live")
def doctor_live(web: Carrel, visitor: Guest) -> Response:
    require_admin(visitor.identity)
    return html(web.render("admin/doctor_findings.html", report=_report(web)))


@router.post("/doctor")
def run_doctor(web: Carrel, visitor: Guest, _: Form) -> Response:
    """Start the checks in the background; the page follows them."""
    require_admin(visitor.identity)
    if web.doctor is None:
        raise Conflict("This service cannot check its machine.", accepted=_BY_COMMAND)
    web.doctor.start()
    return RedirectResponse(f"{ADMIN}/doctor", SEE_OTHER)


def _report(web: WebContext) -> DoctorReport:
    return DoctorReport() if web.doctor is None else web.doctor.report()


# -- backups ----------------------------------------------------------------------------------


@router.get("/backup")
def backup(web: Carrel, visitor: Guest) -> Response:
    require_admin(visitor.identity)
    return _backup(web, visitor)


@router.get("/backup/live")
def backup_live(web: Carrel, visitor: Guest) -> Response:
    require_admin(visitor.identity)
    return html(web.render("admin/backup_runs.html", **_runs(web)))


@router.post("/backup")
def start_backup(web: Carrel, visitor: Guest, fields: Form) -> Response:
    """Start a backup in the background; the page follows it."""
    require_admin(visitor.identity)
    try:
        homes, who = fields.get("homes") == "yes", visitor.identity.name
        if not _backups(web).start(homes=homes, who=who):
            raise Conflict("A backup is running.", accepted="Wait until it is complete.")
    except CarrelError as error:
        return _backup(web, visitor, error=error)
    return RedirectResponse(f"{ADMIN}/backup", SEE_OTHER)


def _backup(web: WebContext, visitor: Visitor, *, error: CarrelError | None = None) -> Response:
    page = web.render_for(
        visitor,
        "admin/backup.html",
        folder=web.backups.folder if web.backups is not None else "",
        error=error,
        **_runs(web),
        version=version_for(web),
    )
    return html(page, error.http_status if error else 200)


def _runs(web: WebContext) -> dict[str, object]:
    which = ChangeFilter(action=AuditAction.BACKUP, limit=_SHOWN)
    return {
        "progress": web.backups.progress() if web.backups is not None else BackupProgress(),
        "made": web.context.store.changes(which),
    }


def _backups(web: WebContext) -> Backups:
    if web.backups is None:
        raise Conflict(
            "This service cannot make backups.",
            accepted="Run `carrel backup DIR` on the machine of the site.",
        )
    return web.backups
