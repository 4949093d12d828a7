"""Stop the sessions and jobs of an installation without its service, and end their requests."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from ..config.settings import Settings
from ..config.signing_key import site_signing_key
from ..config.state_folder import StateFolder
from ..errors import BackendFailed, CarrelError, NotFound, Unavailable
from ..interfaces.host import HostSetup
from ..interfaces.store import Store
from ..records.requests import Cause, CauseCode, RequestRecord
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import State
from ..store import SqlStore, open_store
from ..transitions import lifecycle
from ..transparency.background import LogPublisher
from ..transparency.log_store import SqlLogStore
from ..transparency.publication import PublicationPlace
from ..transparency.service import TransparencyLog
from .processes import ProcessId, leased, stop_all

_LEASE_STEPS = ((signal.SIGINT, 1.5), (signal.SIGTERM, 1.5), (signal.SIGKILL, 5.0))
_CAUSE = Cause(code=CauseCode.STOPPED, message="Carrel was shut down by an administrator.")


def stop_leases(
    state: StateFolder,
    host_setup: HostSetup | None,
    found: Sequence[str],
    say: Callable[[str], None],
) -> None:
    """Stop all work of these leases, and end their requests as cancelled.

    Raises:
        BackendFailed: a process or container could not be stopped.
        Unavailable: the engine does not respond.
    """
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
        _complete_log(state, store, say)
    finally:
        if store is not None:
            store.close()


def _processes(state: StateFolder) -> tuple[ProcessId, ...]:
    # Run from a terminal inside a session, this process is one of them, and has to finish.
    mine = os.getpid()
    return tuple(found.process for found in leased(state.root) if found.process.pid != mine)


def _store(state: StateFolder, say: Callable[[str], None]) -> SqlStore | None:
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


def _complete_log(state: StateFolder, store: SqlStore | None, say: Callable[[str], None]) -> None:
    """Enter the last ledger lines in the log that can be proved, and sign and publish its head.

    If that fails, the next start does it.
    """
    if store is None:
        return
    try:
        settings = Settings.load(state)
        proved = TransparencyLog(
            SqlLogStore(store.transactions),
            site_signing_key(state),
            settings.public_service_url,
            time.time,
        )
        place = PublicationPlace(file=settings.log_heads_file, command=settings.log_heads_command)
        LogPublisher(proved, place, settings.log_head_seconds).finish()
    except CarrelError as error:
        say(f"{error} The next `carrel up` will enter the last lines in the log.")
