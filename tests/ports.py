"""Ports for the servers of tests, which may listen only seconds after their port was chosen.

They lie below those that Carrel chooses for its own parts, and below those from which systems
serve outgoing connections: neither can take one between its choice and its use.
"""

from __future__ import annotations

import secrets
from itertools import count

from carrel.hub.supervise.ports import LOCALHOST, is_free

_FROM, _TO = 10_000, 18_000
_turn = count(secrets.randbelow(_TO - _FROM))


def free_port() -> int:
    """One that this process has not given away for a long time."""
    for _ in range(_TO - _FROM):
        port = _FROM + next(_turn) % (_TO - _FROM)
        if is_free(LOCALHOST, port):
            return port
    raise AssertionError(f"no port between {_FROM} and {_TO} is free")
