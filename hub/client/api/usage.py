"""Calls for usage reports and the history of the pool."""

from __future__ import annotations

from ...proofs.document import ProofDocument
from ...schemas import UsageReport
from ...schemas.usage import HistoryOut
from ..transport.calls import Call
from ..transport.connection import Connection


class UsageCalls(Connection):
    """The part of ``AsyncClient`` for usage.

    Users see their own usage, teachers that of their groups, administrators all.
    """

    async def usage(
        self,
        *,
        group: str = "",
        since: float | None = None,
        until: float | None = None,
        by: str = "owner",
        mine: bool | None = None,
    ) -> UsageReport:
        """Return the device-seconds and the ledger entries of a period.

        Args:
            since: start of the period, in seconds since the epoch.
            until: end of the period, in seconds since the epoch.
            mine: only the caller's own usage; None: only if no group is given.
        """
        parameters = {
            "group": group,
            "since": "" if since is None else f"{since:.0f}",
            "until": "" if until is None else f"{until:.0f}",
            # Defaults are not sent, so that an older service understands the request.
            "by": "" if by == "owner" else by,
            "mine": "" if mine is None else str(mine).lower(),
        }
        query = {name: value for name, value in parameters.items() if value}
        return await self._read_call(Call(method="GET", path="usage", query=query), UsageReport)

    async def usage_proof(
        self, *, group: str = "", since: float | None = None, until: float | None = None
    ) -> ProofDocument:
        """Return the proof of the caller's own ledger entries in a period, as for ``usage``."""
        parameters = {
            "group": group,
            "since": "" if since is None else f"{since:.0f}",
            "until": "" if until is None else f"{until:.0f}",
        }
        query = {name: value for name, value in parameters.items() if value}
        call = Call(method="GET", path="usage/proof", query=query)
        return await self._read_call(call, ProofDocument)

    async def history(self, span: str, group: str = "") -> HistoryOut:
        """Return the utilization and wait times of a day, a week or a term."""
        query = {"span": span, "group": group}
        return await self._read_call(Call(method="GET", path="history", query=query), HistoryOut)
