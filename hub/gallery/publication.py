"""Make the jobs of a version from a job that ran, from its pipeline, or from a new notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from ...courses.model.interfaces import Blobs
from ..admission.notebook import check_notebook
from ..admission.request_factory import RequestFactory
from ..admission.script import as_notebook
from ..errors import Conflict, InvalidInput, NotFound, TooLarge
from ..messages.secrets import secrets_sentence
from ..records.dependencies import PIPELINE_NAME, Dependency
from ..records.identity import Identity
from ..records.requests import RequestRecord
from ..requests import outputs
from ..requests.access import RequestAccess
from ..requests.jobs import same_job
from ..requests.pipelines import PipelineQueries
from ..runtime.context import Context
from ..scheduling.model.states import TERMINAL, State
from ..schemas import JobIn
from .notebook_copy import check_output, source_only
from .published_job import PUBLISHED, PublishedJob, fields_of

MAX_JOBS_BYTES = 1 << 20
_LOG_BYTES = 1 << 20
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationSource:
    """What is published: the jobs, and the run that they come from.

    Attributes:
        group: of the run, or of the body of a job that never ran.
        request: the id of the run; empty without one.
        labels: of the run.
    """

    jobs: tuple[PublishedJob, ...]
    group: str
    request: str = ""
    succeeded: bool = False
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Publication:
    """Reads jobs and stores their contents in the blob store."""

    context: Context
    blobs: Blobs

    def of_request(
        self, who: Identity, request_id: str, *, pipeline: bool, with_outputs: bool
    ) -> PublicationSource:
        """Return a job of the caller, or all jobs of its pipeline.

        Raises:
            NotFound: the caller has no such job, or its files were deleted.
            Forbidden: it, or a job of its pipeline, belongs to another user.
            Conflict: it has outputs to publish, but has not ended.
        """
        first = RequestAccess(self.context.store).owned(who, request_id)
        records = self._pipeline(who, first) if pipeline else [first]
        places = {record.id: place for place, record in enumerate(records)}
        names = _names(records)
        jobs = [
            self._published(record, name, places, with_outputs)
            for record, name in zip(records, names, strict=True)
        ]
        return PublicationSource(
            jobs=tuple(jobs),
            group=first.group,
            request=first.id,
            succeeded=all(record.state is State.SUCCEEDED for record in records),
            labels=tuple(first.labels.items()),
        )

    def of_job(self, who: Identity, body: JobIn) -> PublicationSource:
        """Return a job that has not run, after the checks that its submission would make.

        Raises:
            Refused: it would not be admitted.
        """
        accepted = RequestFactory.of(self.context).job(who, body)
        fixed = body.model_copy(
            update={
                "image": accepted.request.image if not body.roles else "",
                "notebook": as_notebook(body.notebook) if body.notebook else None,
            }
        )
        name = fixed.notebook.name if fixed.notebook else "job"
        return PublicationSource(
            jobs=(self._copied(fixed, name[:_LONGEST_NAME], "your home"),),
            group=accepted.request.group,
        )

    def _pipeline(self, who: Identity, first: RequestRecord) -> list[RequestRecord]:
        found = PipelineQueries(self.context).of(who, first.id, with_end=False)
        if not found.jobs:
            raise InvalidInput(
                f"{first.id} is not part of a pipeline.",
                accepted="Publish it as a job.",
                field="pipeline",
            )
        if found.cut or any(link.kind == "resumes" for link in found.links):
            raise InvalidInput(
                "A pipeline with resumed jobs, or with more than 50 jobs, cannot be published.",
                accepted="Submit the pipeline again, and publish that run.",
                field="pipeline",
            )
        access = RequestAccess(self.context.store)
        return _in_order([access.owned(who, job.id) for job in found.jobs])

    def _published(
        self, record: RequestRecord, name: str, places: Mapping[str, int], with_outputs: bool
    ) -> PublishedJob:
        job = same_job(record, self.context.files, owner=record.owner)
        spec = record.job
        assert spec is not None
        # Values of other jobs, which the release has made parameters, are looked up again.
        given = {each.name for each in spec.results}
        job = job.model_copy(
            update={
                "parameters": {n: value for n, value in job.parameters.items() if n not in given}
            }
        )
        made = self._copied(job, name, f"the home of {record.owner}")
        waits = [Dependency.parse(each) for each in spec.after]
        inside = [each for each in waits if each.job in places]
        results = {
            each.name: str(replace(each.reference, job=str(places[each.reference.job])))
            for each in spec.results
            if each.reference.job in places
        }
        left_out = list(made.left_out)
        if len(inside) < len(waits) or len(results) < len(spec.results):
            left_out.append("It waited for other jobs, which are not part of this item.")
        update: dict[str, object] = {
            "after": [str(Dependency(str(places[each.job]), each.condition)) for each in inside],
            "results": results,
            "left_out": left_out,
        }
        if with_outputs:
            output, content = self._output(record)
            update |= {"output": output, "output_sha256": self.blobs.put(content)}
        return made.model_copy(update=update)

    def _output(self, record: RequestRecord) -> tuple[str, bytes]:
        if record.state not in TERMINAL:
            raise Conflict(
                f"{record.id} has not ended: its outputs are not complete.",
                accepted="Publish without outputs, or wait for its end.",
                field="outputs",
            )
        if record.job is not None and record.job.notebook_name:
            name, content = outputs.notebook(self.context.files, record)
            return name, check_output(name, content)
        epoch = record.lease.epoch if record.lease else 0
        if not epoch:
            raise NotFound(f"{record.id} has no log.")
        return "log.txt", self.context.files.log(record.id, epoch, limit=_LOG_BYTES)

    def _copied(self, job: JobIn, name: str, home: str) -> PublishedJob:
        """Return the published part of a job, after its notebook was stored."""
        values = job.model_dump(mode="json")
        fields = {field: values[field] for field in PUBLISHED}
        made = PublishedJob(name=name, fields=fields, left_out=list(_left_out(job, home)))
        if len(made.model_dump_json()) > MAX_JOBS_BYTES:
            raise TooLarge(
                "The command and the parameters of this job are too large to be published.",
                accepted=f"At most {MAX_JOBS_BYTES >> 20} MiB: put data into a file.",
                field="parameters",
            )
        if job.notebook is None:
            return made
        copy = source_only(job.notebook.name, job.notebook.content)
        checked = check_notebook(job.notebook.name, copy.decode())
        return made.model_copy(
            update={
                "notebook": job.notebook.name,
                "sha256": self.blobs.put(copy),
                "parameters": fields_of(checked.fields),
            }
        )


def _in_order(records: Sequence[RequestRecord]) -> list[RequestRecord]:
    """Return the jobs in their order, but each after those that it waits for.

    Jobs that were submitted at the same time can come in any order.
    """
    known = {record.id: record for record in records}
    placed = dict[str, RequestRecord]()

    def place(record: RequestRecord) -> None:
        if record.job is not None and record.id not in placed:
            names = [Dependency.parse(each).job for each in record.job.after]
            for name in (*names, *(each.reference.job for each in record.job.results)):
                if name in known:
                    place(known[name])
            placed[record.id] = record

    for record in records:
        place(record)
    return list(placed.values())


def _left_out(job: JobIn, home: str) -> Iterator[str]:
    """Say which files and secrets of a job are not copied."""
    if job.secrets:
        yield secrets_sentence(job.secrets, "It")
    if job.archive:
        yield "It ran in a folder of uploaded files, which are not copied."
    if job.workdir:
        yield f"It ran in the folder {job.workdir} of {home}, which is not copied."
    if job.continuation:
        yield "It went on from the variables of a session, which are not copied."


def _names(records: list[RequestRecord]) -> list[str]:
    """Return a name for each job, unique among them."""
    names: list[str] = []
    for record in records:
        assert record.job is not None
        wanted = record.labels.get(PIPELINE_NAME) or record.job.notebook_name
        wanted = (wanted or record.job.command[0])[:_LONGEST_NAME]
        name = next(
            each
            for number in count(1)
            if (each := wanted if number == 1 else f"{wanted} ({number})") not in names
        )
        names.append(name)
    return names
