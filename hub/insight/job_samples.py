"""Runs of the same job on different numbers of devices, as samples of how it scales."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ..errors import InvalidInput
from ..messages.units import count
from ..schemas.pool import DeviceOut
from ..schemas.requests import RequestOut
from .past_runs import LONGEST
from .step_samples import StepSample
from .step_time_model import scales

SEARCHED_NAME = 100
"""How many characters of a notebook's name jobs are searched by."""


def comparable_jobs(job: RequestOut, known: Iterable[RequestOut]) -> list[RequestOut]:
    """Return the known jobs that did the work of this one, on devices of the same model.

    These run the same notebook or command with the same parameters. Notebooks are compared by name:
    of one that was changed meanwhile, the newer runs may differ.
    """
    return [each for each in known if _work(each) == _work(job) and model_of(each) == model_of(job)]


def _work(job: RequestOut) -> tuple[object, ...]:
    # One role is that of all members, and absent in a job of one member.
    roles = [role.name for role in job.roles] if len(job.roles) > 1 else []
    return job.kind, job.notebook, job.command, job.parameters, job.workdir, roles


def job_sample(job: RequestOut) -> StepSample | None:
    """Return the run of a job as one step; None for one that did not do all of its work at once.

    The workers are its devices, or its members if they have none.
    """
    lease = job.lease
    if lease is None or job.ended_at is None or job.state != "succeeded":
        return None
    seconds = job.ended_at - lease.granted_at
    if job.resumes or job.sweep is not None or not 0 < seconds <= LONGEST:
        return None
    workers = len(lease.devices) or len(lease.members) or 1
    nodes = {each.node for each in lease.devices} | {each.node for each in lease.members}
    return StepSample(
        workers=workers,
        nodes=min(workers, max(1, len(nodes - {""}))),
        seconds=seconds,
        batch=1 / workers,
        model=model_of(job),
    )


def job_samples(jobs: Sequence[RequestOut]) -> list[StepSample]:
    """Return the runs of these jobs that can be compared; see ``job_sample``.

    Raises:
        InvalidInput: they are not on several numbers of workers.
    """
    samples = [sample for each in jobs if (sample := job_sample(each)) is not None]
    if not scales(samples):
        raise InvalidInput(
            f"How the job scales is not known: {count(len(samples), 'run')} of it succeeded, "
            "on not more than one number of devices.",
            accepted="Runs of the same notebook or command with the same parameters, on at least "
            "two numbers of devices or members.",
        )
    return samples


def model_of(job: RequestOut) -> str:
    """Return the device models that a job ran on; empty if it has none or has not run."""
    devices = job.lease.devices if job.lease else ()
    return " and ".join(sorted({each.model for each in devices}))


def devices_per_node(devices: Iterable[DeviceOut], model: str) -> int | None:
    """Return the largest number of devices of a model on one node of the pool; None without any."""
    nodes = Counter(each.node for each in devices if each.model == model and each.state != "gone")
    return max(nodes.values(), default=None)


def worker_noun(jobs: Iterable[RequestOut]) -> str:
    """Return what the workers of these jobs are."""
    has_devices = any(job.lease and job.lease.devices for job in jobs)
    return "device" if has_devices else "member"
