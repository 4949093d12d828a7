"""Run the process that compares two runs."""

from __future__ import annotations

import json
import logging
import subprocess
from dataclasses import dataclass
from typing import Final

from ...comparison.schemas import ComparisonOut
from ...errors import CarrelError, Conflict, InvalidInput, TooLarge
from ...runtime.limited_process import LimitedProcess, module_command
from .order import ComparisonInput
from .worker import REFUSED

SECONDS: Final = 30.0
_ERRORS: Final = {error.code: error for error in (Conflict, InvalidInput, TooLarge)}
_LAST_LINE: Final = 500
"""Bytes at the end of the standard error in which Python names an error that ends it."""
_OTHERWISE: Final = "Download both runs and compare them with nbdime."
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ComparingProcess(LimitedProcess):
    """Compares by one process for each comparison."""

    command: tuple[str, ...] = module_command("requests.comparison.worker")
    seconds: float = SECONDS
    busy: str = "Other comparisons are running."

    def compare(self, given: ComparisonInput) -> ComparisonOut:
        """Compare two runs; blocks the calling thread.

        Raises:
            InvalidInput: one of them cannot be read.
            TooLarge: it takes too long or too much memory.
            Unavailable: too many comparisons are running.
            CarrelError: the process fails; its error is in the log of the service.
        """
        try:
            ended = self.run(given.written())
        except subprocess.TimeoutExpired:
            raise _too_large(f"The comparison took longer than {self.seconds:.0f} s.") from None
        if ended.returncode == 0:
            return ComparisonOut.model_validate_json(ended.stdout)
        if ended.returncode == REFUSED:
            raise _error(ended.stdout)
        _log.warning("comparison failed: %s", ended.stderr[-2000:].decode(errors="replace"))
        if ended.returncode < 0 or b"MemoryError" in ended.stderr[-_LAST_LINE:]:
            raise _too_large("The comparison ended early: the runs need too much time or memory.")
        raise CarrelError(
            "The comparison failed by an error in Carrel. The log of the service has the details.",
            accepted=_OTHERWISE,
        )


def _too_large(message: str) -> TooLarge:
    return TooLarge(message, accepted=_OTHERWISE)


def _error(body: bytes) -> CarrelError:
    found = json.loads(body)
    error = _ERRORS.get(found["code"], InvalidInput)
    return error(found["message"], accepted=found["accepted"])
