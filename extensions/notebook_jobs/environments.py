"""The environments of the stock form, asked of the service whenever it is opened."""

from __future__ import annotations

import logging

from jupyter_scheduler.environments import EnvironmentManager
from jupyter_scheduler.models import RuntimeEnvironment

from ...hub.client import AsyncClient
from ...hub.errors import CarrelError
from .choices import FILE_EXTENSIONS, OUTPUT_FORMATS, ComputeType, JobEnvironment
from .service import fetch_environments

_log = logging.getLogger(__name__)
_UNKNOWN = JobEnvironment(name="Carrel", group="", compute_types=(ComputeType(devices=0),))
"""Offered if there is no other: the stock form shows no error before a job is created."""


class PoolEnvironments(EnvironmentManager):  # type: ignore[misc]  # untyped base
    """Groups, images and numbers of devices that the owner of the session may use."""

    async def list_environments(self) -> list[RuntimeEnvironment]:
        try:
            async with AsyncClient.from_environment() as client:
                offered = await fetch_environments(client)
        except CarrelError as error:
            _log.warning("the environments of jobs are unknown: %s", error)
            offered = []
        return [_described(each) for each in offered or [_UNKNOWN]]

    def manage_environments_command(self) -> str:
        return ""

    def output_formats_mapping(self) -> dict[str, str]:
        return dict(OUTPUT_FORMATS)


def _described(environment: JobEnvironment) -> RuntimeEnvironment:
    names = [str(each) for each in environment.compute_types]
    return RuntimeEnvironment(
        name=environment.name,
        label=environment.name,  # the form shows the name and sends the label
        description=environment.description,
        file_extensions=list(FILE_EXTENSIONS),
        output_formats=list(OUTPUT_FORMATS),
        compute_types=names,
        default_compute_type=names[0],
        utc_only=False,
    )
