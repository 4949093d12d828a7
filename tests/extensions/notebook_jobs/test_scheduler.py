"""The lists of Notebook Jobs: only the jobs of a page have their files looked for."""

from __future__ import annotations

import asyncio
import importlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from carrel.hub.schemas import PoolOut, RequestOut
from carrel.hub.schemas.images import ImagesOut
from carrel.hub.schemas.schedules import SCHEDULE_LABEL, ScheduledJobOut, ScheduleOut

from ... import notebook_jobs

SUCCEEDED, FAILED = "succeeded", "failed"


def job(number: int, state: str = SUCCEEDED, **labels: str) -> RequestOut:
    return RequestOut(
        id=f"j-{number}",
        kind="job",
        owner="ada",
        group="cs101",
        devices=0,
        seconds=3600,
        state=state,
        ended=True,
        submitted_at=float(number),
        notebook="train.ipynb",
        labels=labels,
    )


def schedule(number: int) -> ScheduleOut:
    return ScheduleOut.model_construct(
        id=f"c-{number}",
        cron="0 6 * * *",
        zone="UTC",
        state="active",
        what="train.ipynb",
        created_at=float(number),
        last_due=None,
    )


@dataclass
class FakeClient:
    """Answers with jobs and schedules; ``meeting`` is how many calls must wait for each other."""

    jobs: list[RequestOut] = field(default_factory=list)
    meeting: asyncio.Barrier | None = None

    async def requests(self, *, labels: dict[str, str] | None, **_: object) -> list[RequestOut]:
        wanted = (labels or {}).items()
        return [each for each in self.jobs if wanted <= each.labels.items()]

    async def request(self, request_id: str) -> RequestOut:
        (found,) = (each for each in self.jobs if each.id == request_id)
        return found

    async def groups(self) -> list[Any]:
        return []

    async def pool(self) -> PoolOut:
        return PoolOut.model_construct(devices=[])

    async def images(self) -> ImagesOut:
        return ImagesOut.model_construct(images=[])

    async def schedules(self) -> list[ScheduleOut]:
        return [schedule(number) for number in range(3)]

    async def scheduled_job(self, schedule_id: str) -> ScheduledJobOut:
        if self.meeting is not None:
            async with asyncio.timeout(60):
                await self.meeting.wait()
        return ScheduledJobOut.model_construct(
            notebook=f"{schedule_id}.ipynb",
            group="cs101",
            image="",
            devices=0,
            model=None,
            seconds=3600,
            parameters={},
            labels={},
            uploaded=False,
            memory_bytes=None,
            retries=None,
            priority="normal",
        )


@dataclass
class Bench:
    """A scheduler of the home ``root``, and the jobs whose files it looked for."""

    root: Path
    scheduler: Any
    models: Any
    client: FakeClient
    looked_for: list[str] = field(default_factory=list)

    def listed(self, **query: object) -> Any:
        return asyncio.run(self.scheduler.list_jobs(self.models.ListJobsQuery(**query)))


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    monkeypatch.syspath_prepend(notebook_jobs.packages())
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    module = importlib.import_module("carrel.extensions.notebook_jobs.scheduler")
    environments = importlib.import_module("carrel.extensions.notebook_jobs.environments")
    scheduler = module.ServiceScheduler(
        root_dir=str(tmp_path), environments_manager=environments.PoolEnvironments()
    )
    client = FakeClient()
    scheduler.client = client
    models = importlib.import_module("jupyter_scheduler.models")
    made = Bench(root=tmp_path, scheduler=scheduler, models=models, client=client)
    files = module.job_files

    def recorded(root: Path, folder: Path, *more: Any) -> Any:
        made.looked_for.append(folder.name)
        return files(root, folder, *more)

    monkeypatch.setattr(module, "job_files", recorded)
    return made


def test_only_the_jobs_of_the_page_have_their_files_looked_for(bench: Bench) -> None:
    bench.client.jobs = [job(number) for number in range(5)]
    first = bench.listed(max_items=2)
    assert [each.job_id for each in first.jobs] == ["j-4", "j-3"]
    assert (first.total_count, first.next_token) == (5, "2")
    assert bench.looked_for == ["train-j-4", "train-j-3"]
    last = bench.listed(max_items=2, next_token="4")
    assert [each.job_id for each in last.jobs] == ["j-0"]
    assert last.next_token is None
    assert bench.looked_for == ["train-j-4", "train-j-3", "train-j-0"]


def test_a_job_is_downloaded_when_all_its_outputs_are_in_the_home(bench: Bench) -> None:
    bench.client.jobs = [job(1), job(2)]
    newest, _ = bench.listed().jobs
    for name in bench.scheduler.get_job_filenames(newest).values():
        file = bench.root / "jobs" / "train-j-2" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert [each.downloaded for each in bench.listed().jobs] == [True, False]


def test_jobs_are_counted_without_their_files(bench: Bench) -> None:
    bench.client.jobs = [job(1), job(2, FAILED), job(3, FAILED)]
    bench.scheduler.removed.add(["j-3"])
    status = bench.models.Status
    for wanted, number in ((status.COMPLETED, 1), (status.FAILED, 1), (status.QUEUED, 0)):
        query = bench.models.CountJobsQuery(status=wanted)
        assert asyncio.run(bench.scheduler.count_jobs(query)) == number
    assert bench.looked_for == []


def test_the_jobs_of_one_schedule_are_listed(bench: Bench) -> None:
    bench.client.jobs = [job(1), job(2, **{SCHEDULE_LABEL: "c-1"})]
    found = bench.listed(job_definition_id="c-1")
    assert [(each.job_id, each.job_definition_id) for each in found.jobs] == [("j-2", "c-1")]
    assert bench.looked_for == ["train-j-2"]


def test_a_job_that_is_read_for_a_download_has_no_files_looked_for(bench: Bench) -> None:
    bench.client.jobs = [job(1)]
    read = bench.scheduler.get_job
    assert asyncio.run(read("j-1", False)).job_files == []
    assert bench.looked_for == []
    assert [each.file_format for each in asyncio.run(read("j-1")).job_files] == ["ipynb", "html"]


def test_the_jobs_of_all_schedules_are_read_at_once(bench: Bench) -> None:
    """One after the other, the first call would wait for the second one for ever."""

    async def listed() -> Any:
        bench.client.meeting = asyncio.Barrier(3)
        query = bench.models.ListJobDefinitionsQuery()
        return await bench.scheduler.list_job_definitions(query)

    found = asyncio.run(listed())
    names = {each.job_definition_id: each.input_filename for each in found.job_definitions}
    assert names == {f"c-{number}": f"c-{number}.ipynb" for number in range(3)}
