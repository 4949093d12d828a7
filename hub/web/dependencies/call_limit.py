"""Refuse calls of users who make more than their share, with 429 and ``Retry-After``.

Calls of JupyterHub, of running attempts and of monitoring are not limited, nor are static files and
health checks.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...config.base_url import SERVICE_PREFIX
from ...errors import TooManyCalls
from ...interfaces.clock import Instant, monotonic
from ..security.call_budgets import CallQueues, ProcessorShares, retry_after
from .context import web_of
from .errors import API_PREFIX, answer

_log = logging.getLogger(__name__)
_FREE = tuple(
    f"{prefix}{path}"
    for prefix, paths in (
        ("/", ("healthz", "readyz")),
        (SERVICE_PREFIX, ("healthz", "readyz", "static/")),
        (API_PREFIX, ("v1/health",)),
    )
    for path in paths
)
"""They cost next to nothing, and parts of Carrel ask for them without a sign-in."""
REFUSAL_SECONDS = 1.0
"""Mean duration of a refusal: clients that try again at once would keep the service busy."""
_LOG_SECONDS = 60.0
_MOST_LOGGED = 1000


class CallLimit:
    """Admit each call by the budget of its account, and charge what it has used."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._shares = ProcessorShares()
        self._queues = CallQueues()
        self._logged: dict[str, Instant] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(_FREE):
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        web = web_of(request)
        account = await web.caller_access.account(request, web.attempts)
        wait = 0.0 if account is None else web.call_budgets.admit(account)
        if account is not None and wait > 0:
            self._log_refusal(account)
            # Not all of them at once afterwards.
            await asyncio.sleep(REFUSAL_SECONDS * random.uniform(0.5, 1.5))  # noqa: S311  # no secret
            refused = await answer(request, too_many_calls(wait))
            await refused(scope, receive, send)
        elif account is None:
            await self._metered(_free, scope, receive, send)
        else:
            async with self._queues.turn(account) as end_turn:

                def settle(used: float) -> None:
                    end_turn()
                    web.call_budgets.charge(account, used)

                await self._metered(settle, scope, receive, send)

    async def _metered(
        self, settle: Callable[[float], None], scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Settle when the response begins: what follows are streams and downloads."""
        begun: float | None = self._shares.begin()

        def end() -> None:
            nonlocal begun
            if begun is not None:
                used, begun = self._shares.end(begun), None
                settle(used)

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                end()
            await send(message)

        try:
            await self._app(scope, receive, send_counted)
        finally:
            end()

    def _log_refusal(self, account: str) -> None:
        """Once a minute for each account: a flood must not fill the log."""
        now = monotonic()
        last = self._logged.get(account)
        if last is not None and now - last < _LOG_SECONDS:
            return
        if len(self._logged) >= _MOST_LOGGED:
            self._logged.clear()
        self._logged[account] = now
        _log.warning("Too many calls by %s: refused with 429", account)


def _free(used: float) -> None:
    """Settle the call of a part of Carrel: it costs nothing."""


def too_many_calls(wait: float) -> TooManyCalls:
    seconds = retry_after(wait)
    error = TooManyCalls(
        "You make more calls than one user or program may.",
        accepted=f"Wait {seconds} s and try again. Make fewer calls at a time, and follow an event "
        "stream instead of asking repeatedly.",
    )
    error.seconds = seconds
    return error
