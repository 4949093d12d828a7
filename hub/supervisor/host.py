"""The choice of the engine, its network before the processes start, and its running leases."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from contextlib import suppress

from .. import plugins
from ..config import backend
from ..config.settings import LOCALHOST, EngineKind, Settings
from ..config.site import SiteFile
from ..config.state_folder import StateFolder
from ..errors import Conflict, InvalidInput, Unavailable
from .processes import leased

_BOOT_SECONDS = 120.0
"""How long to wait for an engine that starts together with the machine."""
RETRY_SECONDS = 1.0
"""Seconds between two checks whether a Docker engine answers yet."""


def chosen(state: StateFolder, stored: Settings, wanted: EngineKind | None) -> Settings:
    """Return the settings with the engine from the site file, the command line or the last start.

    Raises:
        InvalidInput: the command line contradicts the site file.
        Conflict: sessions or jobs run on the engine of the last start.
    """
    site = SiteFile.load(state)
    configured = site.engine
    if configured is not None and wanted not in (None, configured):
        raise InvalidInput(
            f"{state.site_file} sets engine = {configured.value!r}, the command line {wanted}.",
            accepted="Change the file, or omit --engine.",
        )
    engine = configured or wanted or stored.engine
    host = stored.docker_host
    if engine is EngineKind.DOCKER:
        host = site.docker.host or backend.docker_host_of_environment() or host
        host = host or backend.DEFAULT_DOCKER_HOST
    left = frozenset[str]()
    if engine is not stored.engine:
        left = running(state, stored)
    elif stored.docker_host and host != stored.docker_host:
        # An unavailable engine does not block the start: it may have only a new address.
        with suppress(Unavailable):
            left = running(state, stored)
    if left:
        where = stored.docker_host or stored.engine.value
        raise Conflict(
            f"{len(left)} sessions or jobs run on the engine {where!r}; Carrel would lose track "
            "of them.",
            accepted=f"Stop them first: carrel down --state {shlex.quote(str(state.root))}",
        )
    return stored.changed(engine=engine, docker_host=host)


def with_network(state: StateFolder, settings: Settings, say: Callable[[str], None]) -> Settings:
    """Prepare the engine's network; return the settings with the internal address.

    Raises:
        Unavailable: the engine does not respond. If it did at an earlier start, this waits for
            it, since the machine may have just booted.
    """
    host_setup = plugins.load_host_setup(state, settings)
    if host_setup is None:
        return settings.changed(internal_ip=LOCALHOST)
    deadline = time.monotonic() + (_BOOT_SECONDS if settings.docker_subnets else 0.0)
    waiting = False
    while True:
        try:
            found = host_setup.prepare(settings.docker_subnets)
        except Unavailable as error:
            if time.monotonic() >= deadline:
                raise
            if not waiting:
                say(f"{error} Waiting for it.")
            waiting = True
            time.sleep(RETRY_SECONDS)
        else:
            return settings.changed(internal_ip=found.internal_ip, docker_subnets=found.subnets)


def running(state: StateFolder, settings: Settings) -> frozenset[str]:
    """Return the leases that have running processes or containers.

    Raises:
        Unavailable: the engine does not respond.
    """
    found = {process.lease_id for process in leased(state.root)}
    host_setup = plugins.load_host_setup(state, settings)
    return frozenset(found if host_setup is None else found.union(host_setup.running()))
