"""The four ports of an installation: chosen once and kept; errors name the process on them."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ..config.settings import LOCALHOST, Settings
from ..errors import PortBusy
from .processes import command_of, pids

# Below the range of ephemeral ports, so that a port that was free at the first start is
# likely to be free at the next one.
_FROM, _TO = 18000, 29000
_LISTENING = "0A"
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalPort:
    """A port between the processes.

    Attributes:
        field: its name in Settings.
        patience: seconds to wait until it is free. Running sessions and jobs use the ports of
            JupyterHub and of the service, so these are kept as long as possible.
        reached: whether sessions and jobs use it, so that it is open on ``Settings.internal_ip``.
    """

    field: str
    title: str
    patience: float
    reached: bool = True


INTERNAL = (
    InternalPort(field="hub_port", title="JupyterHub", patience=10.0),
    InternalPort(field="service_port", title="the Carrel service", patience=10.0),
    InternalPort(field="proxy_api_port", title="the proxy's API", patience=1.0, reached=False),
)


def settle(settings: Settings, say: Callable[[str], None]) -> Settings:
    """Check the public port and choose the internal ones.

    Raises:
        PortBusy: the public port is taken.
    """
    if settings.port == 0:
        settings = settings.changed(port=free_port(taken=(), ip=settings.ip))
    elif not is_free(settings.ip, settings.port):
        raise busy(settings)
    for internal in INTERNAL:
        port = getattr(settings, internal.field)
        ip = settings.internal_ip if internal.reached else LOCALHOST
        if port and _comes_free(ip, port, internal.patience):
            continue
        taken = {settings.port, *(getattr(settings, other.field) for other in INTERNAL)}
        chosen = free_port(taken=taken, ip=ip)
        if port:
            say(
                f"Port {port} of {internal.title} is in use by {user_of(port)}; it is now "
                f"{chosen}. Running sessions and jobs know only the old one."
            )
        settings = settings.changed(**{internal.field: chosen})
    return settings


def busy(settings: Settings) -> PortBusy:
    return PortBusy(
        f"Port {settings.port} on {settings.ip} is taken by {user_of(settings.port)}.",
        accepted="Choose another one with --port, or 0 for any that is free.",
    )


def is_free(ip: str, port: int) -> bool:
    """Whether a server could listen on the port now (sockets in TIME_WAIT do not count)."""
    with socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ip, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def has_address(ip: str) -> bool:
    """Whether this host has the address; it may belong to a network that does not exist yet."""
    with socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET) as probe:
        try:
            probe.bind((ip, 0))
        except OSError:
            return False
    return True


def free_port(*, taken: Iterable[int], ip: str = LOCALHOST) -> int:
    known = set(taken)
    for _ in range(200):
        port = _FROM + secrets.randbelow(_TO - _FROM)
        if port not in known and is_free(ip, port):
            return port
    raise PortBusy(
        f"No free port was found between {_FROM} and {_TO}.",
        accepted="Stop some of the servers on this machine.",
    )


def user_of(port: int) -> str:
    """Describe the process that listens on a TCP port, as far as this account may see it."""
    inodes = {f"socket:[{inode}]" for inode in _listeners(port)}
    for pid in pids() if inodes else ():
        if inodes & _open_files(pid):
            return f"process {pid} ({command_of(pid)})"
    return "another program"


def _comes_free(ip: str, port: int, patience: float) -> bool:
    deadline = time.monotonic() + patience
    while not is_free(ip, port):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _listeners(port: int) -> set[str]:
    """Return the inodes of the sockets that listen on the port."""
    found = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            _, local, _, state, *rest = line.split()
            if state == _LISTENING and int(local.rpartition(":")[2], 16) == port:
                found.add(rest[5])
    return found


def _open_files(pid: int) -> set[str]:
    found = set()
    try:
        for entry in Path("/proc", str(pid), "fd").iterdir():
            found.add(str(entry.readlink()))
    except OSError:
        return found
    return found
