"""The page that submits a job: a notebook with its parameters, or a command."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.responses import RedirectResponse, Response

from ....client.probe_job import LABEL, probe_job
from ....config.base_url import SERVICE_PREFIX
from ....errors import CarrelError, NotFound
from ....files.home_notebooks import HomeFolder, HomeNotebooks
from ....messages.validation import invalid_body
from ....schemas import JobIn
from ....schemas.programs.bodies import RunTimeOut
from ....schemas.schedules import ScheduleIn
from ...dependencies.callers import Carrel
from ...dependencies.context import WebContext
from ...dependencies.redirects import SEE_OTHER
from ...dependencies.visitors import Guest, Upload, html
from ...forms.image_choice import image_choices
from ...forms.job import JobForm
from ...forms.job_source import (
    HOME,
    Sent,
    left_out,
    of_advice,
    of_gallery,
    of_job,
    of_session,
    with_notebook,
)
from ...forms.session import device_choices, offered_models
from ...security.access import Visitor
from .schedules import SCHEDULES

_FORM_HEADER = "X-Carrel-Form"
"""Header that tells the page to show the returned form in place of the submitted one."""
_SAME_CODE = frozenset({"own_parameters", "parameters", "own_program", "program"})
"""The bases of run times of jobs with the same code."""

router = APIRouter(include_in_schema=False)


@router.get("/submit")
def submit_page(
    *,
    web: Carrel,
    visitor: Guest,
    again: Annotated[str, Query(max_length=64)] = "",
    advice: Annotated[str, Query(max_length=64)] = "",
    session: Annotated[str, Query(max_length=64)] = "",
    gallery: Annotated[str, Query(max_length=64)] = "",
    version: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Response:
    """Show an empty form, or one of a job, of advice, of a session or of a published job."""
    form = JobForm()
    if again:
        form = of_job(web, visitor.identity, again)
    elif advice:
        form = of_advice(web, visitor.identity, advice)
    elif session:
        form = of_session(web.requests.request(visitor.identity, session))
    elif gallery:
        form = of_gallery(web, visitor.identity, gallery, version)
    run_time = _run_time(web, visitor, form)
    if advice and run_time is not None and run_time.basis not in _SAME_CODE:
        run_time = None  # The advice says more than other jobs do.
    return html(_page(web, visitor, form, "jobs/submit.html", run_time))


@router.get("/submit/home")
def home(
    web: Carrel, visitor: Guest, path: Annotated[str, Query(max_length=4096)] = ""
) -> Response:
    """Render one folder of the user's home, to select a notebook."""
    folder, error = HomeFolder(path="", folders=(), notebooks=()), None
    try:
        folder = HomeNotebooks(web.context.files).folder(visitor.identity.name, path)
    except CarrelError as refused:
        error = refused
    page = web.render("jobs/submit_home.html", folder=folder, error=error)
    # htmx shows successful responses only: the error replaces the list.
    return html(page)


@router.post("/submit/inspect")
async def inspect(web: Carrel, visitor: Guest, fields: Upload) -> Response:
    """Render the part of the form that depends on the selected notebook."""
    sent = await _chosen(fields)
    return await run_in_threadpool(_inspected, web, visitor, fields, sent)


@router.post("/submit")
async def submit(web: Carrel, visitor: Guest, request: Request, fields: Upload) -> Response:
    """Submit the job or its schedule and redirect to its page, or show the form with the error."""
    sent = await _chosen(fields)
    within_page = bool(request.headers.get("hx-request"))
    return await run_in_threadpool(_submitted, web, visitor, fields, sent, within_page)


async def _chosen(fields: FormData) -> Sent:
    found = fields.get("notebook")
    if isinstance(found, UploadFile) and found.filename:
        return found.filename, await found.read()
    return None


def _inspected(web: WebContext, visitor: Visitor, fields: FormData, sent: Sent) -> Response:
    pick = fields.get("pick")
    source = f"{HOME}{pick}" if isinstance(pick, str) and pick else ""
    # Values entered for another notebook do not apply.
    form = replace(JobForm.filled(fields), kind="notebook", source=source, parameters={})
    try:
        form = with_notebook(web, visitor.identity, form, sent)
    except CarrelError as error:
        form = form.refused(error, [])
    run_time = _run_time(web, visitor, form)
    return html(_page(web, visitor, form, "jobs/submit_notebook.html", run_time))


def _run_time(web: WebContext, visitor: Visitor, form: JobForm) -> RunTimeOut | None:
    """Return the predicted run time of what the form describes; None if that is no job yet."""
    if form.notebook is None:
        return None
    try:
        return web.jobs.run_time(visitor.identity, _job(form, web.clock()))
    except CarrelError:
        return None


def _submitted(
    web: WebContext, visitor: Visitor, fields: FormData, sent: Sent, within_page: bool
) -> Response:
    form = JobForm.filled(fields)
    try:
        form = with_notebook(web, visitor.identity, form, sent)
        if fields.get("advise"):
            target = _advise(web, visitor, form)
        else:
            target = _accept(web, visitor, form)
    except CarrelError as error:
        refused = form.refused(error, web.membership.choices(visitor.identity))
        template = "jobs/submit_form.html" if within_page else "jobs/submit.html"
        answer = html(_page(web, visitor, refused, template), error.http_status)
        answer.headers[_FORM_HEADER] = "refused"
        return answer
    if within_page:
        return Response(status_code=200, headers={"HX-Redirect": target})
    return RedirectResponse(target, SEE_OTHER)


def _accept(web: WebContext, visitor: Visitor, form: JobForm) -> str:
    """Submit the job, or store its schedule; return the page that shows it."""
    job = _job(form, web.clock())
    if not form.times.every:
        return f"{SERVICE_PREFIX}requests/{web.jobs.submit(visitor.identity, job).id}"
    body = ScheduleIn(
        cron=form.times.expression(),
        zone=form.zone or "UTC",
        job=job,
        idempotency_key=form.key,
    )
    web.schedules.create(visitor.identity, body)
    return SCHEDULES


def _advise(web: WebContext, visitor: Visitor, form: JobForm) -> str:
    """Submit a job that probes the notebook; return its page."""
    job = _job(form, web.clock())
    run_time = _run_time(web, visitor, form)
    known = None if run_time is None or run_time.basis is None else run_time.seconds
    probe = probe_job(
        job.model_copy(update={"idempotency_key": f"{form.key}-{LABEL}"}),
        run_seconds=known,
        deadline_seconds=max(0.0, job.deadline - web.clock()) if job.deadline else 0.0,
    )
    return f"{SERVICE_PREFIX}requests/{web.jobs.submit(visitor.identity, probe).id}"


def _job(form: JobForm, now: float) -> JobIn:
    try:
        return form.job(now)
    except ValidationError as error:
        raise invalid_body(error, JobIn) from None


def _left_out(web: WebContext, visitor: Visitor, form: JobForm) -> list[str]:
    try:
        return left_out(web, visitor.identity, form.source)
    except NotFound:
        return []  # the form says that its source is gone


def _page(
    web: WebContext,
    visitor: Visitor,
    form: JobForm,
    template: str,
    run_time: RunTimeOut | None = None,
) -> str:
    groups = web.group_choices.current(visitor.identity)
    pool = web.pool.pool(visitor.identity, groups_of=[group.name for group in groups])
    return web.render_for(
        visitor,
        template,
        form=form,
        left_out=_left_out(web, visitor, form),
        run_time=run_time,
        groups=groups,
        most_devices=device_choices(groups),
        models=offered_models(groups, pool.devices, form.model),
        images=image_choices(web, visitor.identity, [g.name for g in groups], form.image),
        keeps_inside=web.context.backend.keeps_inside,
        pool=pool,
    )
