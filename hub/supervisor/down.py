"""``carrel down``: stops the control plane and all sessions and jobs of an installation."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from .. import plugins
from ..config.settings import Settings
from ..config.state_folder import StateFolder
from ..errors import InvalidInput, Unavailable
from ..interfaces.host import HostSetup
from ..supervisor.stale import stop_stale
from .lock import holder, locked
from .processes import leased, stop_all

# The supervisor needs up to 10 s to stop each of its three processes.
_SUPERVISOR_STEPS = ((signal.SIGTERM, 40.0), (signal.SIGKILL, 5.0))


def down(state: StateFolder, say: Callable[[str], None]) -> None:
    """Stop the control plane and all leased processes, and report the result.

    Raises:
        BackendFailed: a process or container could not be stopped.
        Unavailable: the engine does not respond; its sessions and jobs keep running.
        InvalidInput: the folder has no installation.
    """
    if not state.settings.exists():
        raise InvalidInput(f"There is no Carrel installation in {state.root}: nothing was stopped.")
    running = _stop_supervisor(state, say)
    # With the lock held, no supervisor can start and adopt the processes that are being stopped.
    with locked(state):
        running = bool(stop_stale(state, say)) or running
        settings = Settings.load(state)
        try:
            running = _stop_all(state, settings, say) or running
        except Unavailable as error:
            raise _unfinished(settings, error) from error
    say("Everything is stopped." if running else f"Nothing of Carrel runs in {state.root}.")


def _stop_supervisor(state: StateFolder, say: Callable[[str], None]) -> bool:
    found = holder(state)
    if found is None:
        return False
    say(f"Stopping the control plane (process {found.pid}).")
    stop_all(lambda: (found,) if found.alive else (), _SUPERVISOR_STEPS)
    return True


def _stop_all(state: StateFolder, settings: Settings, say: Callable[[str], None]) -> bool:
    host_setup = plugins.load_host_setup(state, settings)
    running = _stop_leases(state, host_setup, say)
    if host_setup is not None:
        host_setup.clear()
    return running


def _unfinished(settings: Settings, error: Unavailable) -> Unavailable:
    where = f" (on this machine: {settings.docker_host})" if settings.docker_host else ""
    return Unavailable(
        f"{error} Carrel itself is stopped. Sessions and jobs in containers of its engine{where} "
        "keep running.",
        accepted="Start that engine, and run `carrel down` again.",
    )


def _stop_leases(
    state: StateFolder, host_setup: HostSetup | None, say: Callable[[str], None]
) -> bool:
    found = _lease_ids(state, host_setup)
    if not found:
        return False
    # It imports the store, which takes half of the time of a command that stops nothing.
    from .lease_shutdown import stop_leases  # noqa: PLC0415

    stop_leases(state, host_setup, found, say)
    return True


def _lease_ids(state: StateFolder, host_setup: HostSetup | None) -> tuple[str, ...]:
    mine = os.getpid()
    found = {running.lease_id for running in leased(state.root) if running.process.pid != mine}
    return tuple(sorted(found if host_setup is None else found.union(host_setup.running())))
