"""The client with which the grading worker gets its order and sends verdicts.

While the service does not answer (a restart, an update), it retries. When another attempt has
replaced this one, the worker ends.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import BaseModel

from ...hub.attempts.service_client import AttemptClient, Away, Fenced, Rejected
from ...hub.errors import BackendFailed, Conflict, Unavailable
from ...hub.schemas.grading import GradingOrderOut, KeptOut, VerdictIn

_TIMEOUT: Final = 30.0
_PATIENCE: Final = 1800.0


class GraderClient:
    """Calls the service with the token of the attempt in this folder, as a runner does."""

    def __init__(self, folder: Path) -> None:
        self._service = AttemptClient(folder, timeout=_TIMEOUT)

    def order(self) -> GradingOrderOut:
        """Get the order. Raises Conflict, BackendFailed, Unavailable."""
        return GradingOrderOut.model_validate_json(self._call("grading", None))

    def store_verdict(self, verdict: VerdictIn) -> bool:
        """Send a verdict; False where there was one already. Raises as ``order``."""
        return KeptOut.model_validate_json(self._call("verdicts", verdict)).kept

    def _call(self, what: str, body: BaseModel | None) -> bytes:
        sent = None if body is None else body.model_dump(mode="json")
        try:
            return self._service.call_until_answered(what, sent, seconds=_PATIENCE)
        except Away as error:
            raise Unavailable(f"The service does not answer: {error}.") from error
        except Fenced as error:
            raise Conflict(f"Another attempt has replaced this one: {error}") from error
        except Rejected as error:
            raise BackendFailed(
                f"The service refused a call of the grading worker: {error}"
            ) from error
