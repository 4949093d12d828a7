"""Hand the values of secrets to the process that a lease was granted for.

A job authenticates with the token of its attempt. A session has no such token: its spawner asks for
a ticket, with which the session fetches its values once. After that the ticket, which is part of
the environment of a container, is void.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

from ..errors import Forbidden, StaleEpoch
from ..records.requests import RequestRecord
from ..runtime.context import Context
from ..scheduling.model.states import State
from ..schemas.secrets.bodies import SecretTicketOut, SecretValuesOut
from .vault import SecretVault

_LIVE = frozenset({State.STARTING, State.RUNNING})


@dataclass(frozen=True, slots=True)
class SecretDelivery:
    """Delivers values to attempts."""

    context: Context

    def to_attempt(self, lease_id: str) -> SecretValuesOut:
        """Return the values for an attempt, whose token the caller has checked.

        Raises:
            StaleEpoch: the attempt has ended or is being stopped.
        """
        lease = self.context.store.lease(lease_id)
        request = self._live(lease_id)
        return SecretVault(self.context).values(request, lease.epoch)

    def ticket(self, lease_id: str) -> SecretTicketOut:
        """Return a new ticket for the session of a lease; an earlier one is void.

        Raises:
            StaleEpoch: the session has ended or is being stopped.
        """
        request = self._live(lease_id)
        if not self.context.store.session_secrets(request.id):
            return SecretTicketOut()
        token = secrets.token_urlsafe(32)
        self.context.store.put_secret_ticket(lease_id, _hash(token))
        return SecretTicketOut(ticket=token)

    def to_session(self, lease_id: str, ticket: str) -> SecretValuesOut:
        """Return the values for a session, once.

        Raises:
            Forbidden: the ticket was used before, or is that of another lease.
            StaleEpoch: the session has ended or is being stopped.
        """
        if self.context.store.take_secret_ticket(_hash(ticket)) != lease_id:
            raise Forbidden("This ticket was used before, or belongs to another session.")
        return self.to_attempt(lease_id)

    def _live(self, lease_id: str) -> RequestRecord:
        lease = self.context.store.lease(lease_id)
        request = self.context.store.request(lease.request_id)
        current = request.lease is not None and request.lease.id == lease_id
        if not current or request.state not in _LIVE:
            raise StaleEpoch(f"The attempt {lease_id} has ended or is being stopped.")
        return request


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
