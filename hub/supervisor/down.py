"""``carrel down``: stops the control plane and all sessions and jobs of an installation."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from .. import plugins
from ..config.settings import Settings
from ..config.state_folder import StateFolder
from ..errors import BackendFailed, CarrelError, InvalidInput, NotFound, Unavailable
from ..interfaces.host import HostSetup
from ..interfaces.store import Store
from ..records.requests import Cause, CauseCode, RequestRecord
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import State
from ..store import open_store
from ..supervisor.stale import stop_stale
from ..transitions import lifecycle
from .lock import holder, locked
from .processes import ProcessId, leased, stop_all

# The supervisor needs up to 10 s to stop each of its three processes.
_SUPERVISOR_STEPS = ((signal.SIGTERM, 40.0), (signal.SIGKILL, 5.0))
_LEASE_STEPS = ((signal.SIGINT, 1.5), (signal.SIGTERM, 1.5), (signal.SIGKILL, 5.0))
_CAUSE = Cause(code=CauseCode.STOPPED, message="Carrel was shut down by an administrator.")


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
    store = _store(state, say)
    try:
        for lease_id in found:
            say(f"Stopping {_mark(store, lease_id)}.")
        left = stop_all(lambda: _processes(state), _LEASE_STEPS)
        if left:
            pids = ", ".join(str(process.pid) for process in left)
            raise BackendFailed(f"These processes do not end: {pids}.")
        if host_setup is not None and (containers := host_setup.stop(found)):
            raise BackendFailed(
                f"The containers of these leases do not end: {', '.join(containers)}."
            )
        _finish(store, found)
    finally:
        if store is not None:
            store.close()
    return True


def _processes(state: StateFolder) -> tuple[ProcessId, ...]:
    # Run from a terminal inside a session, this process is one of them, and has to finish.
    mine = os.getpid()
    return tuple(found.process for found in leased(state.root) if found.process.pid != mine)


def _lease_ids(state: StateFolder, host_setup: HostSetup | None) -> tuple[str, ...]:
    mine = os.getpid()
    found = {running.lease_id for running in leased(state.root) if running.process.pid != mine}
    return tuple(sorted(found if host_setup is None else found.union(host_setup.running())))


def _store(state: StateFolder, say: Callable[[str], None]) -> Store | None:
    """Open the store, if possible; without it the next start updates the requests."""
    if not state.database.exists():
        return None
    try:
        return open_store(state.database)
    except CarrelError as error:
        say(f"{error} The next `carrel up` will update the requests that have ended.")
        return None


def _mark(store: Store | None, lease_id: str) -> str:
    """Request the end of the lease's request with its cause; return its description."""
    request = _request(store, lease_id)
    if store is None or request is None:
        return f"the processes of lease {lease_id}"
    # If the store cannot be written, the next start updates the request.
    with suppress(Unavailable):
        store.apply(request.id, lifecycle.stop, State.CANCELLED, _CAUSE, now=time.time())
    what = "session" if request.kind is Kind.SESSION else str(request.kind)
    if request.server_name:
        what = f"{what} {request.server_name}"
    return f"{what} {request.id} of {request.owner}; its request ends"


def _request(store: Store | None, lease_id: str) -> RequestRecord | None:
    if store is None:
        return None
    try:
        request = store.request(store.lease(lease_id).request_id)
    except NotFound:
        # The store does not know the lease; its processes are stopped all the same.
        return None
    return request if request.lease is not None and request.lease.id == lease_id else None


def _finish(store: Store | None, lease_ids: Sequence[str]) -> None:
    """Free the devices and complete the ledger, after all processes have ended.

    If the store cannot be written, the next start does it.
    """
    if store is None:
        return
    now = time.time()
    for lease_id in lease_ids:
        if _request(store, lease_id) is None:
            continue
        with suppress(Unavailable):
            store.apply_to_lease(lease_id, lifecycle.finish, now=now, charge_until=now)
