"""Run the comparing process with a time limit, a few at a time."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from dataclasses import dataclass, field
from threading import BoundedSemaphore
from typing import Final

from ...comparison.schemas import ComparisonOut
from ...errors import CarrelError, Conflict, InvalidInput, TooLarge, Unavailable
from .order import ComparisonInput
from .worker import REFUSED

AT_ONCE: Final = 2
"""Comparisons of all users."""
SECONDS: Final = 30.0
_WAIT_SECONDS: Final = 5.0
_WORKER: Final = (sys.executable, "-P", "-m", "carrel.hub.requests.comparison.worker")
_KEPT: Final = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV", "TMPDIR")
"""Variables that the process gets: no secret of the service."""
_ERRORS: Final = {error.code: error for error in (Conflict, InvalidInput, TooLarge)}
_LAST_LINE: Final = 500
"""Bytes at the end of the standard error in which Python names an error that ends it."""
_OTHERWISE: Final = "Download both runs and compare them with nbdime."
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ComparingProcess:
    """Compares by one process for each comparison, which is killed after ``seconds``."""

    seconds: float = SECONDS
    command: tuple[str, ...] = _WORKER
    _slots: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(AT_ONCE))

    def compare(self, given: ComparisonInput) -> ComparisonOut:
        """Compare two runs; blocks the calling thread.

        Raises:
            InvalidInput: one of them cannot be read.
            TooLarge: it takes too long or too much memory.
            Unavailable: too many comparisons are running.
            CarrelError: the process fails; its error is in the log of the service.
        """
        if not self._slots.acquire(timeout=_WAIT_SECONDS):
            raise Unavailable(
                f"{AT_ONCE} other comparisons are running.", accepted="Try again in a minute."
            )
        try:
            return self._run(given)
        finally:
            self._slots.release()

    def _run(self, given: ComparisonInput) -> ComparisonOut:
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        try:
            ended = subprocess.run(
                self.command,
                input=given.written(),
                capture_output=True,
                timeout=self.seconds,
                env=environment,
                check=False,
            )
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
