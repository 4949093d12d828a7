"""Start granted sessions and end those that JupyterHub no longer runs."""

from __future__ import annotations

from dataclasses import dataclass

from ..records.leases import LeaseRecord
from ..records.requests import Cause, CauseCode, RequestFilter, RequestRecord
from ..runtime.context import Context
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import State
from ..sessions.server_start import start_server
from ..transitions import lifecycle
from .retries import give_back_or_fail

LAUNCH_GRACE = 90.0
"""Seconds that an attended session may take between ``starting`` and its first process."""
UNATTENDED_GRACE = 3.0
"""Seconds that a session may be without a spawner at the hub before the hub is asked for one."""
TELLING_GRACE = 3.0
"""Seconds after the last sign of life in which a spawner says why what it brings up died."""
SETTLED = 5.0
"""Seconds after which a running session must be known to the hub."""


@dataclass(frozen=True, slots=True)
class SessionController:
    """Sessions: the hub's spawners run them; the service watches and asks."""

    context: Context

    def not_started(self, lease: LeaseRecord, request: RequestRecord) -> bool:
        """``starting``, and no process. Returns whether anything was changed."""
        c = self.context
        since = c.clock() - (lease.launched_at or lease.granted_at)
        patience = LAUNCH_GRACE if c.spawner_listeners.attached(request.id) else UNATTENDED_GRACE
        if since < patience:
            return False
        give_back_or_fail(c, lease, request, "JupyterHub could not start the session's server.")
        return True

    def died(
        self,
        lease: LeaseRecord,
        request: RequestRecord,
        seen: float,
        known: Cause | None = None,
    ) -> bool:
        """``running``, and no process is left. ``known``: why, where the engine knows it.

        A spawner that is just bringing it up notices too, and says why it did not start, with
        the end of its log: it is given a moment. Returns whether anything was changed.
        """
        c = self.context
        now = c.clock()
        if (
            known is None
            and c.spawner_listeners.attached(request.id)
            and now - seen < TELLING_GRACE
        ):
            return False
        ended = Cause(code=CauseCode.SERVER_DIED, message="The session's server ended.")
        cause = known or ended
        c.store.apply(request.id, lifecycle.stop, State.FAILED, cause, now=now)
        c.store.apply_to_lease(lease.id, lifecycle.finish, now=now, charge_until=min(now, seen))
        return True

    def tell_hub(self, request: RequestRecord) -> None:
        """Let the hub know at once that a session ends; it would notice by itself later."""
        self.context.hub.stop_server(request.owner, request.server_name)

    def find_orphans(self) -> None:
        """Have the hub adopt running sessions that it does not know (it died while starting)."""
        c = self.context
        running = c.store.requests(
            RequestFilter(kind=Kind.SESSION, states=frozenset({State.RUNNING}), limit=100_000)
        )
        settled = [r for r in running if r.started_at and c.clock() - r.started_at > SETTLED]
        if not settled:
            return
        known = {
            (user.name, server.name) for user in c.hub.users() for server in user.servers.values()
        }
        for request in settled:
            if (request.owner, request.server_name) not in known:
                start_server(c, request)
