"""The grader's side of the service: its orders, and the verdicts that it gives.

The service may be away for a while (a restart, an update): then the grader keeps trying. It may
also say that this attempt is no longer the one to grade: then the grader ends.
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
    """Speaks as the attempt whose folder it is, as a runner does."""

    def __init__(self, folder: Path) -> None:
        self._service = AttemptClient(folder, timeout=_TIMEOUT)

    def order(self) -> GradingOrderOut:
        """Raises Conflict, BackendFailed, Unavailable."""
        return GradingOrderOut.model_validate_json(self._said("grading", None))

    def judge(self, verdict: VerdictIn) -> bool:
        """Whether it was kept: not where there was one. Raises as ``order`` does."""
        return KeptOut.model_validate_json(self._said("verdicts", verdict)).kept

    def _said(self, what: str, body: BaseModel | None) -> bytes:
        sent = None if body is None else body.model_dump(mode="json")
        try:
            return self._service.patiently(what, sent, seconds=_PATIENCE)
        except Away as error:
            raise Unavailable(f"The service does not answer: {error}.") from error
        except Fenced as error:
            raise Conflict(f"This attempt is not to grade any more: {error}") from error
        except Rejected as error:
            raise BackendFailed(f"The service does not understand the grader: {error}") from error
