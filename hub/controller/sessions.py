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
from .retries import requeue_or_fail

LAUNCH_GRACE = 90.0
"""Seconds that an attended session may take between ``starting`` and its first process."""
UNATTENDED_GRACE = 3.0
"""Seconds that a session may be without a spawner at the hub before the hub is asked for one."""
SPAWNER_REPORT_GRACE = 3.0
"""Seconds after the last sign of life in which a spawner reports why the server did not start."""
SETTLED = 5.0
"""Seconds after which a running session must be known to the hub."""


@dataclass(frozen=True, slots=True)
class SessionController:
    """Reconciles sessions, which the spawners of JupyterHub run."""

    context: Context

    def not_started(self, lease: LeaseRecord, request: RequestRecord, until: float) -> bool:
        """Requeue or fail a ``starting`` session without a process, after a grace period.

        Args:
            until: the end of its charge.

        Returns:
            whether anything changed.
        """
        c = self.context
        since = c.clock() - (lease.launched_at or lease.granted_at)
        patience = LAUNCH_GRACE if c.spawner_listeners.attached(request.id) else UNATTENDED_GRACE
        if since < patience:
            return False
        why = "JupyterHub could not start the session's server."
        requeue_or_fail(c, lease, request, why, until=until)
        return True

    def died(
        self,
        lease: LeaseRecord,
        request: RequestRecord,
        seen: float,
        known: Cause | None = None,
    ) -> bool:
        """Store the end of a ``running`` session that has no process left.

        While a spawner starts the server, it reports why the server ended, with the end of its
        log: the service waits ``SPAWNER_REPORT_GRACE`` for that report.

        Args:
            seen: the last sign of life that the service saw.
            known: the cause, if the engine knows it.

        Returns:
            whether anything changed.
        """
        c = self.context
        now = c.clock()
        if (
            known is None
            and c.spawner_listeners.attached(request.id)
            and now - seen < SPAWNER_REPORT_GRACE
        ):
            return False
        ended = Cause(code=CauseCode.SERVER_DIED, message="The session's server ended.")
        cause = known or ended
        c.store.apply(request.id, lifecycle.stop, State.FAILED, cause, now=now)
        c.store.apply_to_lease(lease.id, lifecycle.finish, now=now, charge_until=min(now, seen))
        return True

    def stop_server(self, request: RequestRecord) -> None:
        """Stop the server at JupyterHub, which would notice the end of the session only later."""
        self.context.hub.stop_server(request.owner, request.server_name)

    def adopt_orphans(self) -> None:
        """Make JupyterHub adopt running sessions that it does not have.

        JupyterHub loses a server when it dies while the server starts.
        """
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
