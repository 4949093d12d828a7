"""What administrators ask of a site, over the client of everybody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import quote

from pydantic import BaseModel, JsonValue

from ...schemas.admin import ChangesOut, ConsequencesOut
from ..sync_client import Client
from ..transport.calls import Call, Query

M = TypeVar("M", bound=BaseModel)


class AdminCalls:
    """Every call raises Forbidden for those who are no administrators there."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def drain(
        self, target: str, *, why: str, until: float | None, dry_run: bool
    ) -> ConsequencesOut:
        """Let nothing new start on a device or a node; see ``DrainIn``."""
        query = {"dry_run": "true"} if dry_run else {}
        body = {"why": why, "until": until}
        return self._call("PUT", f"{_pool(target)}/drain", ConsequencesOut, body, query)

    def undrain(self, target: str) -> ConsequencesOut:
        return self._call("DELETE", f"{_pool(target)}/drain", ConsequencesOut)

    def quarantine(self, target: str, why: str) -> ConsequencesOut:
        return self._call("PUT", f"{_pool(target)}/quarantine", ConsequencesOut, {"why": why})

    def release(self, target: str) -> ConsequencesOut:
        return self._call("DELETE", f"{_pool(target)}/quarantine", ConsequencesOut)

    def audit(self, *, who: str, action: str, target: str, limit: int) -> ChangesOut:
        """Newest first."""
        query: Query = {"who": who, "action": action, "target": target, "limit": limit}
        return self._call("GET", "audit", ChangesOut, query=query)

    def _call(
        self,
        method: str,
        path: str,
        model: type[M],
        body: Mapping[str, JsonValue] | None = None,
        query: Query | None = None,
    ) -> M:
        call = Call(method=method, path=path, json=body, query=query or {})
        return model.model_validate_json(self._client.send(call).content)


def _pool(target: str) -> str:
    return f"pool/{quote(target, safe='')}"
