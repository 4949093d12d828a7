"""Create the next requests of leaderboards in a thread of the service."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import Final

from .evaluation import WeightsEvaluation

EVERY_SECONDS: Final = 2.0
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class BackgroundEvaluation:
    """Runs until ``stopping`` is set; its thread ends with the process."""

    evaluation: WeightsEvaluation
    stopping: threading.Event

    def start(self) -> None:
        threading.Thread(target=self._run, name="leaderboards", daemon=True).start()

    def _run(self) -> None:
        while not self.stopping.wait(EVERY_SECONDS):
            try:
                self.evaluation.reconcile()
            except Exception:
                # A bug must not end the evaluations of all courses.
                log.exception("the leaderboards are tried again in %g s", EVERY_SECONDS)
