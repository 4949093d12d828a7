"""What can be asked of a site about the past, over the client of everybody."""

from __future__ import annotations

from ...schemas import UsageReport
from ...schemas.pool_history import HistoryOut
from ..sync_client import Client
from ..transport.calls import Call


class UsageCalls:
    """People see their own use, teachers their groups, administrators everything."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def usage(
        self,
        *,
        group: str = "",
        since: float | None = None,
        until: float | None = None,
        by: str = "owner",
        mine: bool | None = None,
    ) -> UsageReport:
        """Device-seconds with their ledger; ``mine`` None: unless a group is named."""
        asked = {
            "group": group,
            "since": "" if since is None else f"{since:.0f}",
            "until": "" if until is None else f"{until:.0f}",
            # What was left at its default is not sent, so that an older service understands it.
            "by": "" if by == "owner" else by,
            "mine": "" if mine is None else str(mine).lower(),
        }
        query = {name: value for name, value in asked.items() if value}
        answer = self._client.send(Call(method="GET", path="usage", query=query))
        return UsageReport.model_validate_json(answer.content)

    def history(self, span: str, group: str = "") -> HistoryOut:
        """How full the pool was and how long waits were, over a day, a week or a term."""
        query = {"span": span, "group": group}
        answer = self._client.send(Call(method="GET", path="history", query=query))
        return HistoryOut.model_validate_json(answer.content)
