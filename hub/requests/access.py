"""Find a request for a caller: one that they may not see does not exist for them."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import Forbidden, NotFound
from ..groups.membership import viewer_of
from ..interfaces.store import Store
from ..records.identity import Identity
from ..records.requests import RequestRecord


@dataclass(frozen=True, slots=True)
class RequestAccess:
    """Checks who may see or change a request; None as the caller is the service itself."""

    store: Store

    def visible(self, who: Identity | None, request_id: str) -> RequestRecord:
        """Return the record.

        Raises:
            NotFound: there is none, or the caller may not see it. Both have the same answer,
                so that an id tells nothing.
        """
        record = self.store.request(request_id)
        if not viewer_of(self.store, who).may_see(record.owner, record.group):
            raise NotFound(f"There is no request {request_id}.")
        return record

    def owned(self, who: Identity, request_id: str) -> RequestRecord:
        """Return a record that only its owner may change.

        Raises:
            NotFound: as ``visible``.
            Forbidden: the caller is not the owner.
        """
        record = self.visible(who, request_id)
        if record.owner != who.name:
            raise Forbidden(
                f"{request_id} belongs to {record.owner}: only its owner can do this.",
                accepted="A request of your own.",
            )
        return record
