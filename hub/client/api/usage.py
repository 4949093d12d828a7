"""Calls for usage reports, the compile cache and the history of the pool."""

from __future__ import annotations

from collections.abc import Sequence

from ...proofs.document import ProofDocument
from ...schemas import UsageReport
from ...schemas.calendar import SemesterPlanOut
from ...schemas.usage import CompileCacheOut, EfficiencyOut, HistoryOut, SiteReportOut, WhatIfOut
from ..transport.calls import Call
from ..transport.connection import Connection, segment

_REPLAY_SECONDS = 180.0
"""Timeout of a what-if replay: the service limits it to two minutes."""


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

    async def site_report(
        self, *, since: float | None = None, until: float | None = None
    ) -> SiteReportOut:
        """Return usage and costs of the site, for administrators; by default of the last month."""
        parameters = {
            "since": "" if since is None else f"{since:.0f}",
            "until": "" if until is None else f"{until:.0f}",
        }
        query = {name: value for name, value in parameters.items() if value}
        return await self._read_call(Call(method="GET", path="report", query=query), SiteReportOut)

    async def what_if(
        self, *, devices: str = "", quota: Sequence[str] = (), days: int | None = None
    ) -> WhatIfOut:
        """Return waits on the site and on a changed site, for administrators.

        Args:
            devices: ``+4``, ``+2x4`` or ``6x8``.
            quota: the max quota of groups, ``cs101=8``.
            days: how far back requests were submitted; None: as the service decides.
        """
        query: dict[str, str | int | Sequence[str]] = {"devices": devices} if devices else {}
        if quota:
            query["quota"] = list(quota)
        if days is not None:
            query["days"] = days
        call = Call(method="GET", path="report/what-if", query=query, silence=_REPLAY_SECONDS)
        return await self._read_call(call, WhatIfOut)

    async def semester_plan(self, term: str = "") -> SemesterPlanOut:
        """Return the demand of the courses in a term, for administrators."""
        query = {"term": term} if term else {}
        call = Call(method="GET", path="plan/semester", query=query)
        return await self._read_call(call, SemesterPlanOut)

    async def efficiency(self, *, week: float | None = None, group: str = "") -> EfficiencyOut:
        """Return what your requests held and did not use in a week, or those of a group.

        Args:
            week: any moment of it; by default the running week, for a group the last one.
        """
        query = {"week": "" if week is None else f"{week:.0f}", "group": group}
        given = {name: value for name, value in query.items() if value}
        call = Call(method="GET", path="efficiency", query=given)
        return await self._read_call(call, EfficiencyOut)

    async def history(self, span: str, group: str = "") -> HistoryOut:
        """Return the utilization and wait times of a day, a week or a term."""
        query = {"span": span, "group": group}
        return await self._read_call(Call(method="GET", path="history", query=query), HistoryOut)

    async def compile_cache(self, *, owner: str = "") -> CompileCacheOut:
        """Return what is kept of what the caller's jobs have compiled.

        Args:
            owner: another user, for administrators.
        """
        query = {"owner": owner} if owner else {}
        call = Call(method="GET", path="compile-cache", query=query)
        return await self._read_call(call, CompileCacheOut)

    async def clear_compile_cache(self, job: str = "", *, owner: str = "") -> CompileCacheOut:
        """Delete what is kept, or only what one job has compiled; return what is left.

        Args:
            owner: another user, for administrators.
        """
        path = f"compile-cache/{segment(job)}" if job else "compile-cache"
        query = {"owner": owner} if owner else {}
        call = Call(method="DELETE", path=path, query=query)
        return await self._read_call(call, CompileCacheOut)
