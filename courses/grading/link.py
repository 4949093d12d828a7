"""The grader's side of the service: its orders, and the verdicts that it gives.

The service may be away for a while (a restart, an update): then the grader keeps trying. It may
also say that this attempt is no longer the one to grade: then the grader ends.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from ...hub.errors import BackendFailed, Conflict, Unavailable
from ...hub.wire.grading import GradingOrderOut, KeptOut, VerdictIn

_ORDER: Final = "order.json"
"""What the engine wrote into the attempt's folder for its runner."""
_TIMEOUT: Final = 30.0
_PATIENCE: Final = 1800.0
_FIRST_DELAY, _LAST_DELAY = 0.1, 2.0
_SERVER_ERROR: Final = 500
_LATER: Final = frozenset({408, 425, 429})


class Link:
    """Speaks as the attempt whose folder it is; the token is read anew for every call."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # A proxy that the environment names is for the outside world.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def order(self) -> GradingOrderOut:
        """Raises Conflict, BackendFailed, Unavailable."""
        return GradingOrderOut.model_validate_json(self._said("grading", None))

    def judge(self, verdict: VerdictIn) -> bool:
        """Whether it was kept: not where there was one. Raises as ``order`` does."""
        return KeptOut.model_validate_json(self._said("verdicts", verdict)).kept

    def _said(self, what: str, body: BaseModel | None) -> bytes:
        ends, delay = time.monotonic() + _PATIENCE, _FIRST_DELAY
        while True:
            try:
                return self._ask(what, body)
            except Unavailable:
                if time.monotonic() > ends:
                    raise
                time.sleep(delay)
                delay = min(_LAST_DELAY, 2 * delay)

    def _ask(self, what: str, body: BaseModel | None) -> bytes:
        order = json.loads((self._folder / _ORDER).read_text(encoding="utf-8"))
        request = urllib.request.Request(  # noqa: S310  # the address is the service's own
            f"{order['service_url']}/api/v1/leases/{order['lease_id']}/{what}",
            data=None if body is None else body.model_dump_json().encode(),
            headers={
                "Authorization": f"token {order['token']}",
                "Content-Type": "application/json",
            },
        )
        try:
            with self._opener.open(request, timeout=_TIMEOUT) as response:
                return bytes(response.read())
        except urllib.error.HTTPError as error:
            raise _meaning(error) from error
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"The service does not answer: {error}.") from error


def _meaning(error: urllib.error.HTTPError) -> Exception:
    with error:
        text = error.read(2000).decode(errors="replace")
    if error.code >= _SERVER_ERROR or error.code in _LATER:
        return Unavailable(f"The service cannot answer now ({error.code}).")
    if error.code in {401, 403, 404, 409, 410}:
        return Conflict(f"This attempt is not to grade any more ({error.code}): {text}")
    return BackendFailed(f"The service does not understand the grader ({error.code}): {text}")
