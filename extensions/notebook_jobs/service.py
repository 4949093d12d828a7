"""The calls to the service, with its errors in the classes that jupyter-scheduler shows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from jupyter_scheduler.exceptions import SchedulerError

from ...hub.client import AsyncClient
from ...hub.errors import CarrelError
from .choices import JobEnvironment, job_environments


@contextmanager
def shown_errors() -> Iterator[None]:
    """Raise an error of Carrel as a SchedulerError, whose text the stock forms show."""
    try:
        yield
    except CarrelError as error:
        raise SchedulerError(str(error)) from error


async def fetch_environments(client: AsyncClient) -> list[JobEnvironment]:
    """Return what the user may choose now. Raises CarrelError."""
    groups, pool, images = await asyncio.gather(client.groups(), client.pool(), client.images())
    return job_environments(groups, pool.devices, images)
