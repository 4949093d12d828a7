"""Choose ports for servers that begin to listen only seconds later.

The system would choose a port of its ephemeral range, which an outgoing connection may take before
the server listens. These ports are below that range.
"""

from __future__ import annotations

import secrets
import socket
from itertools import count

from ...hub.errors import Unavailable

LOCALHOST = "127.0.0.1"
_FROM, _TO = 29001, 32701
_counter = count(secrets.randbelow(_TO - _FROM))


def next_port() -> int:
    """Return a free port on localhost that this process has not used for a long time.

    Raises:
        Unavailable: all ports are in use.
    """
    for _ in range(_TO - _FROM):
        port = _FROM + next(_counter) % (_TO - _FROM)
        if _is_free(port):
            return port
    raise Unavailable(f"No port between {_FROM} and {_TO} is free for a session on this machine.")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOCALHOST, port))
        except OSError:
            return False
    return True
