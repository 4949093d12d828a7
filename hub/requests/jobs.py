"""Submit jobs, and submit a stored job again."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..admission import job_fields
from ..admission.gangs import gang_fields
from ..admission.quotes import Quotes
from ..admission.request_factory import AcceptedJob, RequestFactory
from ..errors import Forbidden, NotFound
from ..forecasts.advice import run_time_sentence, suggested_limit
from ..forecasts.costs import expected_cost
from ..forecasts.sweep_stages import critical_text
from ..groups.membership import Membership, viewer_of
from ..interfaces.files import Files
from ..programs.service import Programs
from ..records.identity import Identity
from ..records.requests import NewRequest, RequestRecord
from ..runtime.context import Context
from ..scheduling.model.snapshot import Kind, PriorityClass
from ..schemas import JobIn, NotebookIn, QuoteIn, RequestOut
from ..schemas.calendar import CostOut
from ..schemas.programs.bodies import DryRunOut, RunTimeOut
from ..secrets.vault import SecretVault
from ..usage.budgets import BudgetQueries
from . import outputs
from .access import RequestAccess
from .dependencies import DependencyCheck
from .job_results import unresolved, with_results
from .presenter import RequestPresenter
from .sweep_analysis.outline import SweepOutlines
from .sweeps import sweep_fields, together_text, with_sweep

_REPEATED = (PriorityClass.OPPORTUNISTIC,)
"""Priority classes that a repeated job keeps; urgency is not repeated."""

_OUTLINES = SweepOutlines()
"""One for all, which limits how many notebooks are analysed at a time."""


@dataclass(frozen=True, slots=True)
class JobService:
    """Submits jobs with their files."""

    context: Context
    outlines: SweepOutlines = _OUTLINES

    def submit(
        self,
        who: Identity,
        body: JobIn,
        *,
        resumes: str = "",
        from_cell: int = 0,
        rerun_of: str = "",
        accepted_changes: Sequence[str] = (),
    ) -> RequestOut:
        """Queue a notebook or a command; store nothing unless the whole submission is accepted.

        Args:
            resumes, from_cell, rerun_of, accepted_changes: see ``JobSpec``.

        Raises:
            Refused: the job is not admitted; the error says what would be.
        """
        c = self.context
        accepted, request = self._accepted(who, body)
        if resumes and request.job is not None:
            resumed = c.store.request(resumes).job
            known = [each for each in resumed.results if each.source] if resumed is not None else []
            results = (*known, *request.job.results)
            job = replace(request.job, resumes=resumes, from_cell=from_cell, results=results)
            request = replace(request, job=job)
        if rerun_of and request.job is not None:
            job = replace(request.job, rerun_of=rerun_of, accepted_changes=tuple(accepted_changes))
            request = replace(request, job=job)
        return self._queued(who, accepted, request)[0]

    def submit_once(self, who: Identity, body: JobIn) -> tuple[RequestOut, bool]:
        """Queue a job as ``submit``; return also whether this call has stored it.

        False: it is an earlier job with the same idempotency key.
        """
        return self._queued(who, *self._accepted(who, body))

    def _queued(
        self, who: Identity, accepted: AcceptedJob, request: NewRequest
    ) -> tuple[RequestOut, bool]:
        c = self.context
        request, charge = Programs(c).charged(who, request)
        stored = False
        try:
            if accepted.notebook is not None:
                c.files.put_input(request.id, accepted.notebook)
            if accepted.archive is not None:
                c.files.put_archive(request.id, accepted.archive)
            record = c.store.submit(request, c.clock(), charge=charge)
            # Another id means that the idempotency key belongs to an earlier job.
            stored = record.id == request.id
        finally:
            if not stored:
                c.files.discard(request.id)
        c.notifier.notify()
        return RequestPresenter.of(c).one(record, viewer_of(c.store, who)), stored

    def _with_secrets(self, request: NewRequest, body: JobIn) -> NewRequest:
        """Return the request with the complete form of its secrets, which must exist."""
        if request.job is None or not body.secrets:
            return request
        used = SecretVault(self.context).resolved(request.owner, request.group, body.secrets)
        return replace(request, job=replace(request.job, secrets=used))

    def dry_run(self, who: Identity, body: JobIn) -> DryRunOut:
        """Check a submission and return its cost and its expected wait; store nothing.

        Raises:
            Refused: the job is not admitted; the error says what would be.
        """
        _, request = self._accepted(who, body)
        programs = Programs(self.context)
        request, charge = programs.charged(who, request)
        standing = None if charge is None else programs.check(charge)
        wanted = QuoteIn(
            kind="job",
            group=request.group,
            devices=request.devices,
            model=request.model,
            seconds=request.seconds,
            preemptible=request.preemptible,
        )
        quote = Quotes(self.context).quotes(who, [wanted])[0]
        return DryRunOut(
            group=request.group,
            devices=request.devices,
            seconds=request.seconds,
            device_seconds=float(request.devices * request.seconds),
            sentence=quote.sentence,
            starts_now=quote.starts_now,
            expected_at=quote.expected_at,
            needs_approval=charge is not None and charge.needs_approval,
            device_seconds_left=standing,
            run_time=self._run_time(request),
            cost=self._cost(who, request),
            together=together_text(request),
        )

    def run_time(self, who: Identity, body: JobIn) -> RunTimeOut | None:
        """Return the predicted run time of a job; None as long as nothing is predicted.

        Raises:
            Refused: the job is not admitted.
        """
        return self._run_time(self._accepted(who, body)[1])

    def _cost(self, who: Identity, request: NewRequest) -> CostOut | None:
        c = self.context
        budgets = BudgetQueries(c.store, c.clock, Membership.of(c))
        return expected_cost(
            request.devices,
            request.seconds,
            c.run_times.forecast(request, c.clock()),
            budgets.budgets(who, request.group, groups_of=[request.group]),
        )

    def _run_time(self, request: NewRequest) -> RunTimeOut | None:
        c = self.context
        found = c.run_times.forecast(request, c.clock())
        if found is None:
            return None
        return RunTimeOut(
            seconds=found.seconds,
            low=found.low,
            high=found.high,
            basis=found.basis,
            runs=found.runs,
            suggested_seconds=suggested_limit(found),
            critical_path=critical_text(found.critical),
            sentence=run_time_sentence(found, request.seconds),
        )

    def _accepted(self, who: Identity, body: JobIn) -> tuple[AcceptedJob, NewRequest]:
        """Return the job with all that is checked before it is stored. Raises Refused."""
        c = self.context
        if who.program is not None and body.secrets:
            raise Forbidden(
                "A program may not use secrets of its owner.",
                accepted="Submit the job without secrets.",
            )
        accepted = RequestFactory.of(c).job(who, body)
        request = self._with_sweep(accepted, body)
        request = DependencyCheck(c.store).held(who, request, body.after)
        request = with_results(c, request, body.results)
        return accepted, self._with_secrets(request, body)

    def _with_sweep(self, accepted: AcceptedJob, body: JobIn) -> NewRequest:
        """Return the request with its sweep and what that is expected to take. Raises Refused."""
        request = with_sweep(accepted.request, body, accepted.notebook)
        if request.job is None or request.job.sweep is None:
            return request
        request = self.outlines.with_stages(request, accepted.notebook)
        found = self.context.run_times.forecast(request, self.context.clock())
        known = found is not None and found.basis is not None
        return replace(request, expected=found.seconds if known and found else request.expected)

    def same_job(self, who: Identity, request_id: str) -> JobIn:
        """Return the body that submits a stored job again. Raises NotFound."""
        record = RequestAccess(self.context.store).visible(who, request_id)
        return same_job(record, self.context.files, owner=who.name)


def same_job(record: RequestRecord, files: Files, *, owner: str) -> JobIn:
    """Return the submitted body without its idempotency key.

    Args:
        owner: of the new job. Another one than that of the stored job gets it without secrets:
            the same names may belong to secrets of their own.

    Raises:
        NotFound: the request is a session or a grading run, or its files were deleted.
    """
    job = record.job
    if job is None:
        raise NotFound(f"{record.id} is a session: start it from the desk.")
    if record.kind is Kind.GRADING:
        raise NotFound(f"{record.id} is a grading run: start it again from its course.")
    notebook, archive = None, ""
    if job.notebook_name:
        text = outputs.submitted(files, record).decode()
        notebook = NotebookIn(name=job.notebook_name, content=text)
    if job.archive:
        content = outputs.read_submitted(files.archive_path(record.id), record.id)
        archive = base64.b64encode(content).decode()
    return JobIn.model_validate(
        {
            **job_fields.body_fields(job),
            "results": unresolved(job),
            "secrets": list(job.secrets) if owner == record.owner else [],
            # An attempt takes the state that a session has saved.
            "continuation": job.continuation if record.lease is None else "",
            "group": record.group,
            "devices": record.devices,
            "model": record.model,
            "seconds": int(record.seconds),
            "notebook": notebook,
            "archive": archive,
            "priority": "normal" if record.priority not in _REPEATED else record.priority.value,
            "preemptible": record.preemptible,
            "image": record.image,
            "output": job.output_name if job.notebook_name else "",
            "labels": dict(record.labels),
            **(gang_fields(job.gang) if job.gang else {}),
            "sweep": sweep_fields(job.sweep) if job.sweep else None,
        }
    )
