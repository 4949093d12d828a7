"""Finds the engine of an installation by its entry point: the hub side imports none."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import cast

from ..courses.gradebook.writer import Book, BookSettings, OpenBook
from ..courses.sandbox.interface import CageEngine, CageSettings
from ..courses.sandbox.plugins import cage_engine
from .config.settings import Engine, Settings, StateFolder
from .config.site import LOCAL_NODE, SiteFile
from .errors import BackendFailed, InvalidInput
from .files.filenames import safe_name
from .files.home_folders import Homes
from .interfaces.backend import Backend, BackendSettings, DockerHost, DockerOptions
from .interfaces.host import Ground
from .records.requests import COURSES

DEFAULT_DOCKER_HOST = "unix:///var/run/docker.sock"


def backend(state: StateFolder, settings: Settings, simulated: int | None) -> Backend:
    """Raises BackendFailed where the engine is not installed."""
    factory = _load("carrel.backends", settings.engine)
    return cast(Backend, factory(backend_settings(state, settings, simulated)))


def ground(state: StateFolder, settings: Settings) -> Ground | None:
    """What is below the three processes; None for the local engine, which stands on nothing."""
    if settings.engine is Engine.LOCAL:
        return None
    factory = _load("carrel.grounds", settings.engine)
    return cast(Ground, factory(backend_settings(state, settings, settings.simulated_devices)))


def cages(
    state: StateFolder, settings: Settings, *, course: str, image: str, imports: tuple[str, ...]
) -> CageEngine:
    """Where submissions run: a ``MakeCages``."""
    found = backend_settings(state, settings, None)
    data = state.course_data(course)
    return cage_engine(
        settings.engine,
        CageSettings(
            data={f"{COURSES}/{safe_name(course)}": data} if data.is_dir() else {},
            installation=found.installation,
            docker=found.docker,
            image=image,
            imports=imports,
        ),
    )


def book(state: StateFolder, settings: Settings, *, course: str) -> Book:
    """The gradebook of a course, to be written. Raises CarrelError."""
    found = backend_settings(state, settings, None)
    opened = cast(OpenBook, _load("carrel.books", settings.engine))
    return opened(
        BookSettings(
            folder=state.course(course),
            course=course,
            installation=found.installation,
            docker=found.docker,
        )
    )


def backend_settings(
    state: StateFolder, settings: Settings, simulated: int | None
) -> BackendSettings:
    """Raises InvalidInput where the site's file is wrong."""
    docker = None
    if settings.engine is Engine.DOCKER:
        docker = docker_options(settings, SiteFile.load(state))
    return BackendSettings(
        state=state.root,
        service_url=settings.service_url,
        simulated_devices=simulated,
        installation=state.installation,
        docker=docker,
    )


def homes(state: StateFolder, settings: Settings) -> Homes:
    """Raises InvalidInput where the site's file is wrong."""
    found = backend_settings(state, settings, None).docker
    return Homes(
        root=state.homes,
        disks=state.disks,
        owner=None if found is None else found.owner,
        size=None if found is None else found.home_size,
    )


def docker_options(settings: Settings, site: SiteFile) -> DockerOptions:
    """Raises InvalidInput for what this account cannot do."""
    table = site.docker
    if table.home_size is not None and os.geteuid() != 0:
        raise InvalidInput(
            "Homes can have a size (home_size in carrel.toml) only where Carrel runs as root: "
            "nobody else may mount.",
            accepted="Run it as root, or take the key away.",
        )
    named = table.host or settings.docker_host or docker_host_of_environment()
    here = DockerHost(node=LOCAL_NODE, url=named or DEFAULT_DOCKER_HOST)
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
    return os.environ.get("DOCKER_HOST", "")


def _load(group: str, name: str) -> Callable[[BackendSettings], object]:
    for entry in entry_points(group=group, name=name):
        return cast(Callable[[BackendSettings], object], entry.load())
    raise BackendFailed(
        f"The engine {name!r} is not installed.",
        accepted="Install Carrel anew: its entry points lack.",
    )
