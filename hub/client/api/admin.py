"""Calls for administrators: drain, quarantine and the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, JsonValue

from ...schemas.admin import ChangesOut, ConsequencesOut
from ..transport.calls import Call, Query
from ..transport.connection import Connection, segment

M = TypeVar("M", bound=BaseModel)


class AdminCalls(Connection):
    """The part of ``AsyncClient`` for administrators.

    Raises:
        Forbidden: the caller is not an administrator of the site.
    """

    async def drain(
        self, target: str, *, why: str, until: float | None, dry_run: bool
    ) -> ConsequencesOut:
        """Drain a device or a node: no new work starts on it; see ``DrainIn``."""
        query = {"dry_run": "true"} if dry_run else {}
        body = {"why": why, "until": until}
        return await self._change_pool("PUT", target, "drain", body, query)

    async def undrain(self, target: str) -> ConsequencesOut:
        return await self._change_pool("DELETE", target, "drain")

    async def quarantine(self, target: str, why: str) -> ConsequencesOut:
        return await self._change_pool("PUT", target, "quarantine", {"why": why})

    async def unquarantine(self, target: str) -> ConsequencesOut:
        return await self._change_pool("DELETE", target, "quarantine")

    async def audit(self, *, who: str, action: str, target: str, limit: int) -> ChangesOut:
        """Return the audit log, newest first."""
        query: Query = {"who": who, "action": action, "target": target, "limit": limit}
        return await self._read_call(Call(method="GET", path="audit", query=query), ChangesOut)

    async def _change_pool(
        self,
        method: str,
        target: str,
        mark: str,
        body: Mapping[str, JsonValue] | None = None,
        query: Query | None = None,
    ) -> ConsequencesOut:
        path = f"pool/{segment(target)}/{mark}"
        call = Call(method=method, path=path, json=body, query=query or {})
        return await self._read_call(call, ConsequencesOut)
