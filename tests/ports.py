"""Ports for the servers of tests, which may listen only seconds after their port was chosen.

They lie below those that Carrel chooses for its own parts, and below those from which systems
serve outgoing connections: neither can take one between its choice and its use.
"""

from __future__ import annotations

import os
import secrets
from itertools import count

from carrel.hub.supervisor.tcp_ports import LOCALHOST, is_free

_WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_SIZE = 8_000 // _WORKERS
_FROM = 10_000 + _WORKER * _SIZE
"""Workers that run beside each other do not choose the same ones."""
_REFUSED_BY_BROWSERS = 10_080
_turn = count(secrets.randbelow(_SIZE))


def free_port() -> int:
    """Return a free port that this process has not returned for a long time."""
    for _ in range(_SIZE):
        port = _FROM + next(_turn) % _SIZE
        if port != _REFUSED_BY_BROWSERS and is_free(LOCALHOST, port):
            return port
    raise AssertionError(f"no port between {_FROM} and {_FROM + _SIZE} is free")
