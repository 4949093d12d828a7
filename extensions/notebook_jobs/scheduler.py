"""The scheduler of jupyter-scheduler: jobs are requests, job definitions are schedules."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from jupyter_core.paths import jupyter_data_dir
from jupyter_scheduler.exceptions import InputUriError, SchedulerError
from jupyter_scheduler.models import (
    CountJobsQuery,
    CreateJob,
    CreateJobDefinition,
    CreateJobFromDefinition,
    DescribeJob,
    DescribeJobDefinition,
    ListJobDefinitionsQuery,
    ListJobDefinitionsResponse,
    ListJobsQuery,
    ListJobsResponse,
    Status,
    UpdateJob,
    UpdateJobDefinition,
)
from jupyter_scheduler.scheduler import BaseScheduler

from ...hub.client import AsyncClient, job_builder, session_home
from ...hub.errors import InvalidInput
from ...hub.schemas import JobIn, RequestOut, parsers
from ...hub.schemas.schedules import SCHEDULE_LABEL, ScheduledJobOut, ScheduleOut
from .choices import OUTPUT_FORMATS, JobEnvironment, named
from .descriptions import describe_definition, describe_job, environment_name, status
from .execution import ServiceExecutionManager
from .job_files import job_files, stage
from .job_labels import NotebookJobLabels
from .job_options import PREFIX, GivenParameters, as_typed
from .pagination import MOST_LISTED, matches, named_and_tagged, page_of
from .removed_jobs import RemovedJobs
from .service import fetch_environments, shown_errors

_MAKER: Final = "notebook-jobs"
_REMOVED: Final = Path("carrel", "removed-jobs.json")
"""Below the user's folder of Jupyter data."""


class ServiceScheduler(BaseScheduler):  # type: ignore[misc]  # untyped base
    """All notebook jobs and schedules of the owner of the session, however they were submitted."""

    task_runner = None
    """The service submits the jobs of schedules, also while the session is stopped."""

    def __init__(
        self,
        root_dir: str,
        environments_manager: object,
        db_url: str = "",
        config: object = None,
        backend_id: str = "",
        **more: Any,
    ) -> None:
        """Create a scheduler; ``backend_id`` comes from jupyter-scheduler 3.0."""
        super().__init__(
            root_dir=root_dir, environments_manager=environments_manager, config=config, **more
        )
        self.execution_manager_class = ServiceExecutionManager
        self.backend_id = backend_id
        self.removed = RemovedJobs(file=Path(jupyter_data_dir()) / _REMOVED)
        self._scheduled: dict[str, ScheduledJobOut] = {}

    @cached_property
    def client(self) -> AsyncClient:
        return AsyncClient.from_environment()

    # -- jobs -------------------------------------------------------------------------------

    async def create_job(self, model: CreateJob) -> str:
        with shown_errors():
            job = await self._job(model)
            if model.idempotency_token:
                key = f"{_MAKER}-{model.idempotency_token}"
                job = job.model_copy(update={"idempotency_key": key})
            made = await self.client.submit(job)
        return self._job_id(made)

    async def list_jobs(self, query: ListJobsQuery) -> ListJobsResponse:
        if query.max_items == 0:
            return ListJobsResponse()  # JupyterLab asks whether the extension is there
        with shown_errors():
            found, environments = await asyncio.gather(
                self._requests(query.job_definition_id), self._environments()
            )
        requests = {self._job_id(each): each for each in found}
        jobs = [self._described(each, environments) for each in found]
        jobs = [each for each in jobs if matches(each, query)]
        page, next_token = page_of(jobs, query.sort_by, query.max_items, query.next_token)
        # Thousands of files on a slow home take seconds: only those that are shown.
        await asyncio.to_thread(self._add_files, [(each, requests[each.job_id]) for each in page])
        return ListJobsResponse(jobs=page, total_count=len(jobs), next_token=next_token)

    async def count_jobs(self, query: CountJobsQuery) -> int:
        with shown_errors():
            found = await self._requests()
        return sum(query.status in {None, status(each)} for each in found)

    async def get_job(self, job_id: str, job_files: bool | None = True) -> DescribeJob:
        with shown_errors():
            request, environments = await asyncio.gather(
                self.client.request(self._request_id(job_id)), self._environments()
            )
        job = self._described(request, environments)
        if job_files:
            await asyncio.to_thread(self._add_files, [(job, request)])
        return job

    async def stop_job(self, job_id: str) -> None:
        with shown_errors():
            await self.client.cancel(self._request_id(job_id), "stopped in JupyterLab")

    async def delete_job(self, job_id: str) -> None:
        """Cancel a job that has not ended, and remove it from the list."""
        await self.stop_job(job_id)
        await asyncio.to_thread(self.removed.add, [self._request_id(job_id)])

    async def update_job(self, job_id: str, model: UpdateJob) -> None:
        if model.status is Status.STOPPED:
            await self.stop_job(job_id)
            return
        raise SchedulerError("A job cannot be changed after it was created, only stopped.")

    # -- job definitions --------------------------------------------------------------------

    async def create_job_definition(self, model: CreateJobDefinition) -> str:
        if not model.schedule:
            raise SchedulerError("A job definition needs the times of its jobs. Choose a schedule.")
        with shown_errors():
            job = await self._job(model)
            made = await self.client.create_schedule(
                job, cron=model.schedule, zone=model.timezone or "UTC"
            )
        return made.id

    async def list_job_definitions(
        self, query: ListJobDefinitionsQuery
    ) -> ListJobDefinitionsResponse:
        with shown_errors():
            schedules, environments = await asyncio.gather(
                self.client.schedules(), self._environments()
            )
            found = await asyncio.gather(
                *(self._definition(each, environments) for each in schedules)
            )
        matching = [
            each
            for each in found
            if named_and_tagged(each, query.name, query.tags)
            and each.create_time >= (query.create_time or 0)
        ]
        page, next_token = page_of(matching, query.sort_by, query.max_items, query.next_token)
        return ListJobDefinitionsResponse(
            job_definitions=page, total_count=len(matching), next_token=next_token
        )

    async def get_job_definition(self, job_definition_id: str) -> DescribeJobDefinition:
        with shown_errors():
            schedule, environments = await asyncio.gather(
                self.client.schedule(job_definition_id), self._environments()
            )
            return await self._definition(schedule, environments)

    async def update_job_definition(
        self, job_definition_id: str, model: UpdateJobDefinition
    ) -> None:
        """Change the times, pause or resume."""
        with shown_errors():
            if model.input_uri:
                job = await self._scheduled_job(job_definition_id)
                if model.input_uri != job.notebook:  # the form sends the name, or another path
                    raise InvalidInput(
                        "The notebook of a job definition cannot be replaced.",
                        accepted="Create a job definition for the other notebook.",
                    )
            state = None if model.active is None else "active" if model.active else "paused"
            await self.client.change_schedule(
                job_definition_id, cron=model.schedule, zone=model.timezone, state=state
            )

    async def delete_job_definition(self, job_definition_id: str) -> None:
        """Remove the schedule; its jobs stay."""
        with shown_errors():
            await self.client.remove_schedule(job_definition_id)

    async def create_job_from_definition(
        self, job_definition_id: str, model: CreateJobFromDefinition
    ) -> str:
        with shown_errors():
            given = GivenParameters.parse(model.parameters)
            stored = as_typed(await self._scheduled_job(job_definition_id))
            if model.parameters and given.fields != GivenParameters.parse(stored).fields:
                raise InvalidInput(
                    "A run of a job definition has the options of the definition.",
                    accepted=f"Change only parameters without {PREFIX!r}, or create a job.",
                )
            made = await self.client.run_schedule(job_definition_id, given.parameters)
        return self._job_id(made)

    # -- files ------------------------------------------------------------------------------

    async def stage(self, model: DescribeJob, folder: Path) -> dict[str, str]:
        """Fetch the outputs of a job into an empty folder, and return the path of each format."""
        request_id = self._request_id(model.job_id)
        with shown_errors():
            return await stage(self.client, request_id, self._output_names(model), folder)

    async def get_staging_paths(self, model: DescribeJob) -> dict[str, str]:
        """Fetch the outputs of a job, for the files manager of jupyter-scheduler itself."""
        folder = Path(self.staging_path) / self._request_id(model.job_id)
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return await self.stage(model, folder)

    def get_local_output_path(
        self, model: DescribeJob, root_dir_relative: bool | None = False
    ) -> str:
        """Return the folder in the home; a backend's prefix of the id is no part of it."""
        plain = model.copy(update={"job_id": self._request_id(model.job_id)})
        return str(super().get_local_output_path(plain, root_dir_relative))

    def _output_names(self, model: DescribeJob) -> dict[str, str]:
        names = self.get_job_filenames(model)
        return {each: names[each] for each in model.output_formats}

    # -- the service ------------------------------------------------------------------------

    async def _requests(self, schedule_id: str | None = None) -> list[RequestOut]:
        """Return the newest notebook jobs, of a schedule or of all, without the removed ones."""
        labels = {SCHEDULE_LABEL: schedule_id} if schedule_id else None
        found, removed = await asyncio.gather(
            self.client.requests(kind="job", labels=labels, limit=MOST_LISTED),
            asyncio.to_thread(self.removed.ids),
        )
        hidden = set(removed)
        return [each for each in found if each.notebook and each.id not in hidden]

    async def _environments(self) -> list[JobEnvironment]:
        return await fetch_environments(self.client)

    async def _job(self, model: CreateJob | CreateJobDefinition) -> JobIn:
        """Return the body of the job that a form describes.

        Raises:
            InputUriError: the notebook does not exist.
            CarrelError: a value is invalid.
        """
        if not self.file_exists(model.input_uri):
            raise InputUriError(model.input_uri)
        environment = named(await self._environments(), model.runtime_environment_name)
        compute = environment.compute_type(model.compute_type)
        given = GivenParameters.parse(model.parameters, model.runtime_environment_parameters)
        labels = NotebookJobLabels(
            name=model.name,
            formats=model.output_formats or (),
            tags=model.tags or (),
            with_folder=bool(model.package_input_folder),
        )
        fields: dict[str, object] = {
            "group": environment.group,
            "devices": compute.devices,
            "parameters": given.parameters,
            "labels": labels.as_labels(),
            **given.fields,
        }
        if environment.image:
            fields["image"] = environment.image
        if compute.model:
            fields["model"] = compute.model
        path = Path(self.root_dir, model.input_uri)
        fields |= await asyncio.to_thread(_files, path, upload=labels.with_folder)
        return job_builder.job(fields, maker=_MAKER)

    async def _definition(
        self, schedule: ScheduleOut, environments: Sequence[JobEnvironment]
    ) -> DescribeJobDefinition:
        job = await self._scheduled_job(schedule.id)
        return describe_definition(
            schedule, job, environment_name(environments, job.group, job.image)
        )

    async def _scheduled_job(self, schedule_id: str) -> ScheduledJobOut:
        """Return the job of a schedule, which never changes."""
        if schedule_id not in self._scheduled:
            self._scheduled[schedule_id] = await self.client.scheduled_job(schedule_id)
        return self._scheduled[schedule_id]

    def _described(
        self, request: RequestOut, environments: Sequence[JobEnvironment]
    ) -> DescribeJob:
        """Return a request as a job, without its files."""
        name = environment_name(environments, request.group, request.image)
        return describe_job(request, self._job_id(request), name)

    def _add_files(self, jobs: Iterable[tuple[DescribeJob, RequestOut]]) -> None:
        """Look for the files of jobs; this reads the disk."""
        home = session_home()
        for job, request in jobs:
            own = NotebookJobLabels.of(request.labels)
            by_reference = home is not None and own.name and not own.with_folder
            job.job_files = job_files(
                Path(self.root_dir),
                Path(self.get_local_output_path(job)),
                self._output_names(job),
                home / request.workdir / request.notebook if home and by_reference else None,
            )
            outputs = [each for each in job.job_files if each.file_format in OUTPUT_FORMATS]
            job.downloaded = all(each.file_path for each in outputs)

    def _job_id(self, request: RequestOut) -> str:
        """Return the id for jupyter-scheduler; in 3.0 it begins with the backend's."""
        return f"{self.backend_id}:{request.id}" if self.backend_id else request.id

    def _request_id(self, job_id: str) -> str:
        return job_id.removeprefix(f"{self.backend_id}:")


def _files(notebook: Path, *, upload: bool) -> Mapping[str, object]:
    """Return the notebook as it is saved now, and the folder in which the job works."""
    place = job_builder.working_folder(notebook.parent, home=session_home(), upload=upload)
    return {"notebook": parsers.notebook(notebook), **place.fields}
