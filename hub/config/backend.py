"""Build the settings of a backend from those of the installation."""

from __future__ import annotations

import os
from datetime import UTC, datetime, time

from ..errors import InvalidInput
from ..files.home_folders import HomeFolders
from ..interfaces.backend_settings import (
    BackendSettings,
    DockerHost,
    DockerOptions,
    SlurmImage,
    SlurmOptions,
)
from .settings import EngineKind, Settings
from .site import LOCAL_NODE, SiteFile
from .state_folder import StateFolder

DEFAULT_DOCKER_HOST = "unix:///var/run/docker.sock"


def backend_settings(
    state: StateFolder, settings: Settings, simulated: int | None, *, site: SiteFile | None = None
) -> BackendSettings:
    """Return the settings for the backend of this installation.

    Args:
        simulated: the number of simulated devices; None for the devices of the driver.
        site: its contents instead of those of carrel.toml.

    Raises:
        InvalidInput: carrel.toml is not valid.
    """
    docker = slurm = None
    if settings.engine is EngineKind.SLURM:
        slurm = slurm_options(SiteFile.load(state) if site is None else site)
    if settings.engine is EngineKind.DOCKER:
        docker = docker_options(settings, SiteFile.load(state) if site is None else site)
    return BackendSettings(
        state=state.root,
        service_url=settings.service_url,
        simulated_devices=simulated,
        installation=state.installation,
        docker=docker,
        slurm=slurm,
    )


def homes(state: StateFolder, settings: Settings) -> HomeFolders:
    """Return the homes of this installation. Raises InvalidInput if carrel.toml is not valid."""
    found = backend_settings(state, settings, None).docker
    return HomeFolders(
        root=state.homes,
        disks=state.disks,
        owner=None if found is None else found.owner,
        size=None if found is None else found.home_size,
    )


def slurm_options(site: SiteFile) -> SlurmOptions:
    """Return the options of jobs on a Slurm cluster, from carrel.toml."""
    table = site.slurm
    return SlurmOptions(
        conf=table.conf,
        address=table.address,
        partition=table.partition,
        account=table.account,
        qos=table.qos,
        cpus=table.cpus,
        memory=0 if table.memory is None else int(table.memory),
        options=table.options,
        prologue=table.prologue,
        container=table.container,
        images=tuple(
            SlurmImage(
                name=image.name,
                source=image.source,
                digest=image.sha256,
                title=image.title,
                kernels=image.kernels,
                built_at=datetime.combine(image.built, time(12), tzinfo=UTC).timestamp(),
            )
            for image in table.images
        ),
        mirror=table.mirror,
        simulated=table.simulated,
        device_memory={name: int(size) for name, size in table.device_memory.items()},
    )


def docker_options(settings: Settings, site: SiteFile) -> DockerOptions:
    """Return the Docker options from the settings and carrel.toml.

    Raises:
        InvalidInput: homes have a size, but the service does not run as root.
    """
    table = site.docker
    if table.home_size is not None and os.geteuid() != 0:
        raise InvalidInput(
            "home_size in carrel.toml requires that Carrel runs as root: only root may mount the "
            "disk image of a home.",
            accepted="Run Carrel as root, or remove home_size.",
        )
    url = table.host or settings.docker_host or docker_host_of_environment()
    here = DockerHost(node=LOCAL_NODE, url=url or DEFAULT_DOCKER_HOST)
    others = (
        DockerHost(
            node=node.name,
            url=node.docker_host,
            address=node.address,
            tls_ca=node.tls_ca,
            tls_cert=node.tls_cert,
            tls_key=node.tls_key,
        )
        for node in site.nodes
    )
    return DockerOptions(
        hosts=(here, *others),
        subnets=settings.docker_subnets,
        internal_ip=settings.internal_ip,
        hub_port=settings.hub_port,
        service_port=settings.service_port,
        image=table.image,
        uid=table.uid if os.geteuid() == 0 else os.geteuid(),
        memory=int(table.memory),
        cpus=table.cpus,
        pids=table.pids,
        tmp=int(table.tmp),
        warm=table.warm,
        home_size=None if table.home_size is None else int(table.home_size),
        blocked=table.blocked,
        address=table.address,
    )


def docker_host_of_environment() -> str:
    """Return the variable DOCKER_HOST, empty if it is not set."""
    return os.environ.get("DOCKER_HOST", "")
