"""The pipeline of a job: the jobs that it waits for and those that follow it, over all steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ..forecasts.pipeline_end import ExpectedEnds
from ..groups.membership import viewer_of
from ..interfaces.store import Store
from ..messages.requests import work_title
from ..records.dependencies import PIPELINE_NAME, Condition, Dependency
from ..records.identity import Identity, Viewer
from ..records.requests import RequestFilter, RequestRecord
from ..runtime.context import Context
from ..scheduling.model.snapshot import Kind
from ..schemas import PipelineJobOut, PipelineLinkOut, PipelineOut
from .access import RequestAccess

MOST_JOBS = 50
"""Jobs of a pipeline that are shown, the nearest ones."""
_LONGEST_NAME = 120
_NONE = PipelineOut(jobs=[], links=[])


@dataclass(frozen=True, slots=True)
class PipelineQueries:
    """Finds the jobs that are connected with a job by dependencies and resumptions."""

    context: Context
    _ends: ExpectedEnds = field(default_factory=ExpectedEnds)

    def of(self, who: Identity | None, request_id: str, *, with_end: bool = True) -> PipelineOut:
        """Return the pipeline of a job, as far as the caller may see it; without jobs if it is
        connected with none.

        Jobs of another owner that wait for one of these are found until they are released.

        Args:
            with_end: also tell when it is expected to have ended, which takes a while.

        Raises:
            NotFound: there is no such request, or the caller may not see it.
        """
        store = self.context.store
        with store.together():
            first = RequestAccess(store).visible(who, request_id)
            if first.kind is not Kind.JOB:
                return _NONE
            walk = _Walk(store, viewer_of(store, who))
            walk.visit(first)
        links = list(_links(walk.found))
        if all(link.kind == "resumes" for link in links):
            return _NONE
        jobs = sorted(walk.found.values(), key=lambda job: (job.submitted_at, job.id))
        untold = walk.cut or not with_end
        return PipelineOut(
            jobs=[_job_out(job) for job in jobs],
            links=links,
            cut=walk.cut,
            expected_end=None if untold else self._ends.of(self.context, walk.found, links),
        )


@dataclass(slots=True)
class _Walk:
    """A search in width, from one job on."""

    store: Store
    viewer: Viewer
    found: dict[str, RequestRecord] = field(default_factory=dict)
    cut: bool = False

    def visit(self, first: RequestRecord) -> None:
        self.found, edge = {first.id: first}, [first]
        while edge and not self.cut:
            near = {record.id: record for record in self._neighbours(edge)}
            new = [
                record
                for name, record in near.items()
                if name not in self.found
                and self.viewer.may_see(record.owner, record.group, record.program)
            ]
            room = MOST_JOBS - len(self.found)
            self.cut = len(new) > room
            edge = new[:room]
            self.found |= {record.id: record for record in edge}

    def _neighbours(self, edge: Iterable[RequestRecord]) -> Iterator[RequestRecord]:
        """Yield the jobs before these, by dependency or resumption, then those after them."""
        edge = list(edge)
        named = frozenset(name for job in edge for name in _named(job)) - self.found.keys()
        if named:
            yield from self._jobs(ids=named)
        ids = frozenset(job.id for job in edge)
        since = min(job.submitted_at for job in edge)
        for owner in sorted({job.owner for job in edge}):
            yield from self._jobs(owner=owner, after=ids, since=since)
            yield from self._jobs(owner=owner, resumes=ids, since=since)
        yield from self._jobs(held=True, after=ids)

    def _jobs(
        self,
        *,
        ids: frozenset[str] | None = None,
        owner: str | None = None,
        after: frozenset[str] | None = None,
        resumes: frozenset[str] | None = None,
        since: float | None = None,
        held: bool = False,
    ) -> Iterable[RequestRecord]:
        return self.store.requests(
            RequestFilter(
                kind=Kind.JOB,
                ids=ids,
                owner=owner,
                after=after,
                resumes=resumes,
                since=since,
                held=held,
                limit=MOST_JOBS + 1,
            )
        )


def _after(record: RequestRecord) -> Iterator[Dependency]:
    return map(Dependency.parse, record.job.after if record.job is not None else ())


def _resumed(record: RequestRecord) -> str:
    return "" if record.job is None else record.job.resumes


def _named(record: RequestRecord) -> Iterator[str]:
    yield from (each.job for each in _after(record))
    if _resumed(record):
        yield _resumed(record)


def _links(found: Mapping[str, RequestRecord]) -> Iterator[PipelineLinkOut]:
    """Yield the arrows between jobs; one for success starts at the newest resumption."""
    newest: dict[str, str] = {}
    for record in sorted(found.values(), key=lambda job: job.submitted_at):
        if _resumed(record) in found:
            newest[_resumed(record)] = record.id
    for record in found.values():
        resumed = _resumed(record)
        if resumed in found:
            yield PipelineLinkOut(first=resumed, then=record.id, kind="resumes")
        # A job that resumes another waits for the same ones.
        known = {each.job for each in _after(found[resumed])} if resumed in found else set()
        for each in _after(record):
            if each.job in known or each.job not in found:
                continue
            name = each.job
            while each.condition is Condition.OK and name in newest:
                name = newest[name]
            yield PipelineLinkOut(first=name, then=record.id, kind=each.condition.value)


def _job_out(record: RequestRecord) -> PipelineJobOut:
    assert record.job is not None
    job = record.job
    title = work_title(record.kind, job.notebook_name, job.command, record.labels)
    name = record.labels.get(PIPELINE_NAME) or title
    return PipelineJobOut(
        id=record.id, name=name[:_LONGEST_NAME], state=str(record.state), owner=record.owner
    )
