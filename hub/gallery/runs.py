"""Submit the jobs of an item: all of them, or none."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from ..admission.request_factory import RequestFactory, new_id
from ..errors import CarrelError, Conflict, InvalidInput
from ..groups.membership import Membership
from ..records.dependencies import Dependency, ResultReference
from ..records.identity import Identity
from ..requests.jobs import JobService
from ..requests.termination import RequestTermination
from ..scheduling.model.states import State
from ..schemas import JobIn, RequestOut
from ..schemas.gallery import GalleryRunIn
from .published_job import GALLERY_LABEL, PublishedJob
from .service import GalleryService


@dataclass(frozen=True, slots=True)
class GalleryRuns:
    """Submits published jobs for a caller, who may see the item."""

    gallery: GalleryService

    def run(self, who: Identity, item_id: str, body: GalleryRunIn) -> list[RequestOut]:
        """Submit the jobs of a version, in their order.

        Raises:
            NotFound: the caller may not see the item.
            InvalidInput: parameters are given for a pipeline, or one is unknown.
            Refused: a job is not admitted; then none that this call has stored stays queued.
            Conflict: an earlier run of the pipeline with this idempotency key was cancelled.
        """
        context = self.gallery.context
        version, published = self.gallery.jobs(who, item_id, body.version)
        if body.parameters and len(published) > 1:
            raise InvalidInput(
                "The jobs of a pipeline run with the published parameters.",
                accepted="Omit 'parameters', or fork the item.",
                field="parameters",
            )
        group = Membership.of(context).choose_group(who.name, body.group)
        labels = {GALLERY_LABEL: f"{item_id}/{version}"}
        key = f"{item_id}.{version}/{body.idempotency_key or new_id('r')}"
        jobs = [
            self._body(job, group, labels, f"{key}/{place}", body)
            for place, job in enumerate(published)
        ]
        for job in jobs:
            RequestFactory.of(context).job(who, job)
        done: list[RequestOut] = []
        stored: list[RequestOut] = []
        try:
            for job, each in zip(jobs, published, strict=True):
                request, is_new = JobService(context).submit_once(who, _linked(job, each, done))
                if is_new:
                    stored.append(request)
                elif len(jobs) > 1 and request.state == State.CANCELLED:
                    # Jobs that wait for its success would never start.
                    raise Conflict(
                        f"{request.id}, a job of the run with this idempotency key, was cancelled.",
                        accepted="Run the pipeline again with another idempotency key.",
                        field="idempotency_key",
                    )
                done.append(request)
        except CarrelError:
            for request in stored:
                with suppress(CarrelError):  # It has ended.
                    RequestTermination(context).cancel(who, request.id)
            raise
        return done

    def _body(
        self,
        job: PublishedJob,
        group: str,
        labels: dict[str, str],
        key: str,
        body: GalleryRunIn,
    ) -> JobIn:
        notebook = self.gallery.content(job.sha256).decode() if job.notebook else ""
        made = job.job(group, notebook, labels, key)
        return made.model_copy(update={"parameters": {**made.parameters, **body.parameters}})


def _linked(job: JobIn, published: PublishedJob, done: list[RequestOut]) -> JobIn:
    """Return the job with the ids of the submitted jobs that it waits for."""
    after = []
    for text in published.after:
        each = Dependency.parse(text)
        after.append(str(Dependency(done[int(each.job)].id, each.condition)))
    results = {}
    for name, text in published.results.items():
        reference = ResultReference.parse(text)
        results[name] = f"{done[int(reference.job)].id}.{reference.value}"
    return job.model_copy(update={"after": after, "results": results})
