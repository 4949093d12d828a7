"""The engine below the three processes: its network before they start, and what runs on it."""

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
"""How long an engine that was there before may take to come up with the machine."""
RETRY_SECONDS = 1.0
"""Seconds between two checks whether a Docker engine answers yet."""


def chosen(state: StateFolder, stored: Settings, wanted: EngineKind | None) -> Settings:
    """The site's file has the last word, then the command line, then the last start.

    Raises:
        InvalidInput: the command line says otherwise than the file.
        Conflict: something runs on the engine that is to be left.
    """
    site = SiteFile.load(state)
    said = site.engine
    if said is not None and wanted not in (None, said):
        raise InvalidInput(
            f"{state.site_file} says engine = {said.value!r}, and the command line {wanted}.",
            accepted="Change the file, or leave --engine out.",
        )
    engine = said or wanted or stored.engine
    host = stored.docker_host
    if engine is EngineKind.DOCKER:
        host = site.docker.host or backend.docker_host_of_environment() or host
        host = host or backend.DEFAULT_DOCKER_HOST
    left = frozenset[str]()
    if engine is not stored.engine:
        left = running(state, stored)
    elif stored.docker_host and host != stored.docker_host:
        # A missing one blocks nothing; it may be the same engine at another address.
        with suppress(Unavailable):
            left = running(state, stored)
    if left:
        where = stored.docker_host or stored.engine.value
        raise Conflict(
            f"{len(left)} sessions or jobs run on the engine {where!r}, and would "
            "be forgotten there.",
            accepted=f"Stop them first: carrel down --state {shlex.quote(str(state.root))}",
        )
    return stored.changed(engine=engine, docker_host=host)


def grounded(state: StateFolder, settings: Settings, say: Callable[[str], None]) -> Settings:
    """The settings with the address on which hub and service listen.

    Raises:
        Unavailable: the engine does not answer. One that did at an earlier start is waited for,
            since the whole machine may have just been switched on.
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
                say(f"{error} Carrel waits for it.")
            waiting = True
            time.sleep(RETRY_SECONDS)
        else:
            return settings.changed(internal_ip=found.internal_ip, docker_subnets=found.subnets)


def running(state: StateFolder, settings: Settings) -> frozenset[str]:
    """The leases on which something runs.

    Raises:
        Unavailable: the engine does not answer.
    """
    found = {one.lease_id for one in leased(state.root)}
    host_setup = plugins.load_host_setup(state, settings)
    return frozenset(found if host_setup is None else found.union(host_setup.running()))
