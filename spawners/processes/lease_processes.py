"""Find the processes of a lease, stop them, and confirm that none is left.

A lease owns the processes with its id in ``CARREL_LEASE``, the process of its handle, and all their
descendants. /proc shows the environment of the last exec: a descendant may have been started with a
cleaned environment. A process with a cleaned environment and a dead parent could be found only by a
cgroup, which this engine does not use.

The processes of a member of a gang, which has an id of its own, belong to its lease as well.

A lease id is unique in a state folder. A backup restored beside the original has the same ids:
callers that pass ``state`` see no process with another folder in ``CARREL_STATE``.

A zombie counts as dead: it holds no device. A process that cannot be read (of another system
account) belongs to a lease only as a descendant, because only our own account starts leases.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import psutil

from ...hub.records.gangs import split_member_id
from ...hub.records.leases import Handle

LEASE_VARIABLE: Final = "CARREL_LEASE"

_PROC = Path("/proc")
_PREFIX = f"{LEASE_VARIABLE}=".encode()
_STATE_PREFIX = b"CARREL_STATE="
_SAME_SECONDS = 1.5
"""Tolerance of creation times, which are derived from a boot time in whole seconds."""
_LADDER: Final = ((signal.SIGINT, 0.5), (signal.SIGTERM, 0.25), (signal.SIGKILL, 0.25))
"""The signals in order, with their fraction of the patience."""
_ROUND_SECONDS = 0.25
"""Interval at which SIGKILL is repeated for processes born meanwhile."""


def lease_of_environment(pid: int, *, state: Path | None = None) -> str | None:
    """Return the lease id in a process's environment; None without one.

    Also None for a process of another state folder.
    """
    environment = _environment(pid)
    if state is not None and _is_of_other_state(environment, state):
        return None
    for entry in environment:
        if entry.startswith(_PREFIX):
            return entry.removeprefix(_PREFIX).decode(errors="replace") or None
    return None


def _environment(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _is_of_other_state(environment: Iterable[bytes], state: Path) -> bool:
    """Whether the environment names another state folder; False if it names none."""
    entries = [entry for entry in environment if entry.startswith(_STATE_PREFIX)]
    return bool(entries) and entries[0] != _STATE_PREFIX + os.fsencode(state)


def lease_of(process: psutil.Process) -> str | None:
    """Return the lease of a process, from its own environment or that of an ancestor."""
    try:
        family = [process, *process.parents()]
    except psutil.Error:
        family = [process]
    return next((lease for p in family if (lease := lease_of_environment(p.pid))), None)


def alive(process: psutil.Process) -> bool:
    """Whether the process still runs: not ended, not a zombie, and its pid not reused."""
    try:
        if not process.is_running():
            return False
        return process.status() != psutil.STATUS_ZOMBIE or _has_threads(process.pid)
    except psutil.NoSuchProcess:
        return False


def _has_threads(pid: int) -> bool:
    """Whether a zombie, whose first thread has ended, still runs in other threads."""
    try:
        return len(os.listdir(_PROC / str(pid) / "task")) > 1
    except OSError:
        return False


def find(handle: Handle | None, *, state: Path | None = None) -> psutil.Process | None:
    """Return the live process of a handle; a recycled pid does not match."""
    if handle is None:
        return None
    try:
        process = psutil.Process(handle.pid)
        same = abs(process.create_time() - handle.started_at) < _SAME_SECONDS
    except psutil.NoSuchProcess:
        return None
    if not same or (state is not None and _is_of_other_state(_environment(handle.pid), state)):
        return None
    return process if alive(process) else None


def handle_of(process: psutil.Process) -> Handle:
    """Return the handle of a process.

    Raises:
        psutil.NoSuchProcess: the process has ended.
    """
    return Handle(pid=process.pid, started_at=process.create_time())


def oldest(processes: Iterable[psutil.Process]) -> Handle | None:
    """Return the handle of the live process that was started first."""
    handles = []
    for process in processes:
        try:
            handles.append(handle_of(process))
        except psutil.NoSuchProcess:
            continue
    return min(handles, key=lambda h: (h.started_at, h.pid), default=None)


def scan(
    leases: Mapping[str, Handle | None],
    known: Iterable[psutil.Process] = (),
    *,
    state: Path | None = None,
) -> dict[str, list[psutil.Process]]:
    """Return the live processes by lease, oldest first, in one pass over /proc.

    Args:
        known: processes that belong to the lease in any case; only with a single lease.
        state: find only processes of this state folder.

    Raises:
        OSError: /proc cannot be read.
    """
    pids = [int(name) for name in os.listdir(_PROC) if name.isdigit()]
    roots: dict[str, set[int]] = {lease: set() for lease in leases}
    children: dict[int, list[int]] = defaultdict(list)
    for pid in pids:
        parent = _parent(pid)
        if parent is None:
            continue
        children[parent].append(pid)
        lease = lease_of_environment(pid, state=state)
        for owner in () if lease is None else {lease, split_member_id(lease)[0]}:
            if owner in roots:
                roots[owner].add(pid)
    for lease, handle in leases.items():
        first = find(handle, state=state)
        roots[lease].update([first.pid] if first else ())
        roots[lease].update(p.pid for p in known if alive(p))
    return {lease: _living(_with_descendants(roots[lease], children)) for lease in leases}


def _parent(pid: int) -> int | None:
    try:
        status = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # The process name in parentheses may contain any characters, also parentheses.
    return int(status[status.rindex(b")") + 2 :].split()[1])


def _with_descendants(roots: Collection[int], children: Mapping[int, Sequence[int]]) -> set[int]:
    found: set[int] = set()
    queue = list(roots)
    while queue:
        pid = queue.pop()
        if pid not in found:
            found.add(pid)
            queue.extend(children.get(pid, ()))
    return found


def _living(pids: Iterable[int]) -> list[psutil.Process]:
    """Return the live processes, oldest first, without the calling process itself."""
    live: list[tuple[float, int, psutil.Process]] = []
    for pid in pids:
        if pid == os.getpid():
            continue
        try:
            process = psutil.Process(pid)
            created_at = process.create_time()
        except psutil.NoSuchProcess:
            continue
        if alive(process):
            live.append((created_at, pid, process))
    return [process for _, _, process in sorted(live, key=lambda item: item[:2])]


def wait_gone(processes: Iterable[psutil.Process], deadline: float) -> bool:
    """Wait until all have ended, or ``time.monotonic()`` reaches ``deadline``.

    Returns whether all have ended. Nothing is reaped: the exit status of a child stays with its
    parent.
    """
    return all(_wait_one(process, deadline) for process in processes)


def _wait_one(process: psutil.Process, deadline: float) -> bool:
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    except OSError:
        # Without pidfd (an old kernel, a sandbox): poll.
        while alive(process) and time.monotonic() < deadline:
            select.select([], [], [], 0.02)
        return not alive(process)
    try:
        if not alive(process):
            return True
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))
    finally:
        os.close(descriptor)


def stop_set(
    lease_id: str, handle: Handle | None, patience: float = 4.0, *, state: Path | None = None
) -> bool:
    """Send SIGINT, SIGTERM, SIGKILL to all processes of a lease, listed again for every step.

    Returns True as soon as no process of the lease is left, False if some are left after about
    ``patience`` seconds.

    Raises:
        OSError: /proc cannot be read.
    """
    leases = {lease_id: handle}
    members = scan(leases, state=state)[lease_id]
    ends = time.monotonic()
    for number, part in _LADDER:
        ends += patience * part
        signalled: set[psutil.Process] = set()
        while members and time.monotonic() < ends:
            # Once per process and step, so that a process can save its work; only SIGKILL repeats.
            targets = [p for p in members if number == signal.SIGKILL or p not in signalled]
            _send(targets, number)
            signalled.update(targets)
            wait_gone(members, min(ends, time.monotonic() + _ROUND_SECONDS))
            members = scan(leases, members, state=state)[lease_id]
        if not members:
            return True
    return False


def ask(
    lease: str, handle: Handle | None, number: signal.Signals, *, state: Path | None = None
) -> None:
    """Send a signal to the processes of a lease that handle it: it would kill the others.

    Raises:
        OSError: /proc cannot be listed.
    """
    found = scan({lease: handle}, state=state)[lease]
    _send((process for process in found if catches(process.pid, number)), number)


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process has its own handler for a signal."""
    try:
        # A process may choose any bytes as its name.
        lines = (_PROC / str(pid) / "status").read_text(errors="replace").split("\n")
    except OSError:
        return False
    caught = next((line.split()[1] for line in lines if line.startswith("SigCgt:")), "0")
    return bool(int(caught, 16) >> (number - 1) & 1)


def _send(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        try:
            process.send_signal(number)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            # It has ended, or belongs to another account: the next scan shows which.
            continue
