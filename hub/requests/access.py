"""Authorize access to requests: a request that the caller may not see is reported as missing."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import Forbidden, NotFound
from ..groups.membership import viewer_of
from ..interfaces.store import Store
from ..records.identity import Identity
from ..records.requests import RequestRecord


@dataclass(frozen=True, slots=True)
class RequestAccess:
    """Checks whether a caller may see or change a request; None is the service itself."""

    store: Store

    def visible(self, who: Identity | None, request_id: str) -> RequestRecord:
        """Return the record.

        Raises:
            NotFound: there is no such request, or the caller may not see it. The answers are the
                same, so that ids reveal nothing.
        """
        record = self.store.request(request_id)
        if not viewer_of(self.store, who).may_see(record.owner, record.group, record.program):
            raise NotFound(f"There is no request {request_id}.")
        return record

    def changeable(self, who: Identity, request_id: str) -> RequestRecord:
        """Return the record if the caller may end it.

        Raises:
            NotFound: as for ``visible``.
            Forbidden: the caller is a program, and another one or the owner has submitted it.
        """
        record = self.visible(who, request_id)
        if who.program is not None and record.program != who.program.name:
            raise Forbidden(
                f"The program {who.program.name} may only read {request_id}.",
                accepted="Choose a job that this program has submitted.",
            )
        return record

    def owned(self, who: Identity, request_id: str) -> RequestRecord:
        """Return the record if the caller owns it.

        Raises:
            NotFound: as for ``visible``.
            Forbidden: the caller is not the owner.
        """
        record = self.visible(who, request_id)
        if record.owner != who.name:
            raise Forbidden(
                f"{request_id} belongs to {record.owner}: only its owner can do this.",
                accepted="Choose a request of your own.",
            )
        return record
