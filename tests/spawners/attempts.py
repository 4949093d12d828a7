"""Wait for the end of attempts of the local backend."""

from __future__ import annotations

import time

from carrel.hub.interfaces.backend import LaunchOrder, ProcessState
from carrel.hub.records.leases import Handle
from carrel.spawners.processes import lease_processes

from .conftest import Desk
from .fake_service import WAIT_SECONDS


def wait_for_end(desk: Desk, order: LaunchOrder, handle: Handle) -> int | None:
    """Wait until the first process has ended; return its exit status."""
    process = lease_processes.find(handle)
    if process is not None:
        assert lease_processes.wait_gone([process], deadline())
    status = desk.backend.status({order.lease_id: handle})[order.lease_id]
    assert status.life is ProcessState.DEAD
    return status.exit_status


def deadline() -> float:
    return time.monotonic() + WAIT_SECONDS
