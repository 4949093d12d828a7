"""Fetch the secrets of a session before its first kernel starts.

The session's spawner has put a ticket into the environment, with which the values are fetched once.
Kernels and terminals inherit the environment of this server, as it is after that.
"""

from __future__ import annotations

import atexit
import os
import sys
import urllib.request
from contextlib import ExitStack
from typing import Final

from ..hub.attempts.secret_values import SecretMissing, SecretValues

TICKET: Final = "CARREL_SECRET_TICKET"
_TIMEOUT_SECONDS: Final = 20.0


def fetch() -> None:
    """Give this server the values of its secrets, if it uses any; end it if one is missing."""
    ticket = os.environ.pop(TICKET, "")
    if not ticket:
        return
    url = f"{os.environ['CARREL_URL']}/api/v1/leases/{os.environ['CARREL_LEASE']}/secrets/redeem"
    call = urllib.request.Request(  # noqa: S310  # the address is the service's, not a user's
        url, method="POST", headers={"Authorization": f"token {ticket}"}
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    until_exit = ExitStack()
    try:
        with opener.open(call, timeout=_TIMEOUT_SECONDS) as response:
            values = SecretValues.parse(response.read())
        until_exit.enter_context(values.in_environment())
    except (SecretMissing, OSError) as error:
        sys.exit(f"The secrets of this session cannot be used. {error}")
    atexit.register(until_exit.close)
