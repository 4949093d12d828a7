"""The source of a submitted notebook: an upload, the home, an earlier job, advice, the gallery."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace

from pydantic import JsonValue

from ...admission.parameters import FieldType
from ...errors import CarrelError, InvalidInput
from ...files.home_notebooks import HomeNotebooks
from ...gallery.published_job import GALLERY_LABEL
from ...messages.secrets import secrets_sentence
from ...records.identity import Identity
from ...schemas import JobIn, RequestOut
from ..dependencies.context import WebContext
from .job import ChosenNotebook, JobForm
from .pickers import shown_span
from .probe_advice import advice_notes, advised_job
from .sweep import sweep_texts

HOME = "home:"
AGAIN = "again:"
ADVICE = "advice:"
"""Before the id of a probe job: the source is the job that it was made from."""
GALLERY = "gallery:"
"""Before the id of an item, ``/`` and the number of a version."""
_NO_GROUP = "-"
_VERSION = re.compile(r"[0-9]{1,6}")
_SIZES = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))

Sent = tuple[str, bytes] | None
"""Name and content of the uploaded file."""


def with_notebook(web: WebContext, who: Identity, form: JobForm, sent: Sent) -> JobForm:
    """Return the form with its notebook, read again from its source.

    Raises:
        CarrelError: it does not exist or is not a notebook; with the field ``notebook``.
    """
    if form.source.startswith(AGAIN) and sent is None:
        return _again(web, who, form)
    if form.source.startswith(ADVICE) and sent is None:
        return _with_job(form, advised_job(web, who, form.source.removeprefix(ADVICE)))
    if form.source.startswith(GALLERY) and sent is None:
        return _of_source(web, who, form)
    if form.kind == "command":
        return form
    if form.source.startswith(HOME):
        return replace(form, notebook=from_home(web, who, form.source.removeprefix(HOME)))
    return replace(form, notebook=ChosenNotebook.read(*sent)) if sent else form


def from_home(web: WebContext, who: Identity, path: str) -> ChosenNotebook:
    """Read a notebook in the user's home. Raises CarrelError with the field ``notebook``."""
    try:
        return ChosenNotebook.read(*HomeNotebooks(web.context.files).notebook(who.name, path))
    except CarrelError as error:
        error.field = "notebook"
        raise


def of_job(web: WebContext, who: Identity, request_id: str) -> JobForm:
    """Return a form with the values of an earlier job.

    Raises:
        NotFound: the job does not exist, or its files are deleted.
        InvalidInput: the job has several roles, or a number of members that may vary.
    """
    return _form(web.jobs.same_job(who, request_id), request_id, f"{AGAIN}{request_id}")


def of_advice(web: WebContext, who: Identity, request_id: str) -> JobForm:
    """Return a form for the job that was probed, as the probe advises it.

    Raises:
        NotFound: the job does not exist, or its files are deleted.
        InvalidInput: it is no probe job, or was changed.
    """
    return _form(advised_job(web, who, request_id), request_id, f"{ADVICE}{request_id}")


def of_gallery(web: WebContext, who: Identity, item_id: str, version: int) -> JobForm:
    """Return a form with the values of a published job.

    Raises:
        NotFound: the user may not see the item, or it has no such version.
        InvalidInput: it has several jobs or members, which the form cannot show.
    """
    shown = web.gallery.one(who, item_id, version).shown
    source = f"{item_id}/{shown.version}"
    job = _published(web, who, source)
    form = _form(job, item_id, f"{GALLERY}{source}")
    if missing := shown.jobs[0].image_missing:
        return replace(form, problem=missing, accepted="Choose another image.", field="image")
    return form


def _form(job: JobIn, name: str, source: str) -> JobForm:
    equal = job.roles[0] if len(job.roles) == 1 and job.roles[0].count else None
    if job.roles and equal is None:
        raise InvalidInput(
            f"{name} has members that differ, which this form cannot show.",
            accepted="Run it again unchanged, or submit it with: carrel run --roles FILE.",
        )
    sweep = job.sweep
    parallel = sweep.parallel if sweep is not None else 1
    form = JobForm(
        kind="notebook" if job.notebook else "command",
        group=job.group,
        devices=str(equal.devices if equal else job.devices // parallel),
        model=job.model or "",
        time=shown_span(job.seconds),
        memory=_size(job.memory_bytes),
        retries="" if job.retries is None else str(job.retries),
        priority=job.priority,
        preemptible="yes" if job.preemptible else "no",
        after=" ".join(job.after),
        secrets=" ".join(job.secrets),
        results=shlex.join(f"{name}={value}" for name, value in job.results.items()),
        labels=shlex.join(f"{name}={value}" for name, value in job.labels.items()),
        kernel=job.kernel,
        output=job.output,
        command=shlex.join(equal.command if equal else job.command),
        workdir=job.workdir,
        nodes=str(equal.count) if equal else "",
        image=equal.image if equal else job.image,
        internet="yes" if job.internet else "no",
        source=source,
    )
    limit = shown_span(sweep.trial_seconds) if sweep is not None else ""
    form = replace(form, **sweep_texts(sweep, limit))  # type: ignore[arg-type]  # fields of text
    form = _with_job(form, job)
    return replace(form, parameters=_entries(form, job.parameters))


def left_out(web: WebContext, who: Identity, source: str) -> list[str]:
    """Say what a form with this source has, or has not, taken over from it, to be checked.

    Raises:
        NotFound: the source does not exist, or the user may not see it.
    """
    if source.startswith(AGAIN):
        request = web.requests.request(who, source.removeprefix(AGAIN))
        if request.secrets and request.owner != who.name:
            return [secrets_sentence(request.secrets, f"{request.id} of {request.owner}")]
    elif source.startswith(ADVICE):
        return list(advice_notes(web, who, source.removeprefix(ADVICE)))
    elif source.startswith(GALLERY):
        item_id, _, number = source.removeprefix(GALLERY).partition("/")
        wanted = int(number) if _VERSION.fullmatch(number) else 0
        return list(web.gallery.one(who, item_id, wanted).shown.jobs[0].left_out)
    return []


def of_session(session: RequestOut) -> JobForm:
    """Return a form for a job on the same kind of devices; its notebook is to be selected."""
    return JobForm(
        group=session.group,
        devices=str(session.devices),
        model=session.model or "",
        image=session.image,
        labels=f"continues={session.id}",
    )


def _again(web: WebContext, who: Identity, form: JobForm) -> JobForm:
    return _with_job(form, web.jobs.same_job(who, form.source.removeprefix(AGAIN)))


def _of_source(web: WebContext, who: Identity, form: JobForm) -> JobForm:
    return _with_job(form, _published(web, who, form.source.removeprefix(GALLERY)))


def _published(web: WebContext, who: Identity, source: str) -> JobIn:
    """Return the only job of ``ITEM/VERSION``, for the first group of the user."""
    item_id, _, number = source.partition("/")
    wanted = int(number) if _VERSION.fullmatch(number) else 0
    version, jobs = web.gallery.jobs(who, item_id, wanted)
    if len(jobs) > 1:
        raise InvalidInput(
            f"{item_id} is a pipeline of {len(jobs)} jobs, which this form cannot show.",
            accepted=f"Run all its jobs: carrel gallery run {item_id}",
        )
    notebook = web.gallery.content(jobs[0].sha256).decode() if jobs[0].notebook else ""
    # The user selects the group in the form; bodies have one.
    return jobs[0].job(_NO_GROUP, notebook, {GALLERY_LABEL: f"{item_id}/{version}"})


def _with_job(form: JobForm, job: JobIn) -> JobForm:
    """Add the parts of a job without form fields: the notebook, files, further parameters."""
    form = replace(form, archive=job.archive)
    if job.notebook is not None:
        found = ChosenNotebook.read(job.notebook.name, job.notebook.content.encode())
        form = replace(form, notebook=found)
    known = {field.name for field in form.fields or ()}
    carried = {name: value for name, value in job.parameters.items() if name not in known}
    return replace(form, carried=carried)


def _entries(form: JobForm, given: Mapping[str, JsonValue]) -> dict[str, str]:
    entries = {}
    for field in form.fields or ():
        if field.name in given:
            value = given[field.name]
            as_it_is = field.type is FieldType.TEXT and isinstance(value, str)
            entries[field.name] = str(value) if as_it_is else json.dumps(value, ensure_ascii=False)
    return entries


def _size(size_bytes: int) -> str:
    """Format a size: ``8GiB``; empty for no limit."""
    if not size_bytes:
        return ""
    unit, step = next((u for u in _SIZES if size_bytes % u[1] == 0), _SIZES[-1])
    return f"{size_bytes / step:g}{unit}" if size_bytes % step else f"{size_bytes // step}{unit}"
