"""Run the process that analyses the notebook of a sweep."""

from __future__ import annotations

import json
import logging
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from ...errors import TooLarge
from ...records.requests import SweepStages
from ...runtime.limited_process import LimitedProcess, module_command
from ...schemas.sweeps import SharingOut

SECONDS: Final = 20.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SweepOutline:
    """The stages of a sweep, or why there are none.

    Attributes:
        reason: a clause; empty if there are stages.
    """

    stages: SweepStages | None
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        found = values["stages"]
        return cls(SweepStages.from_json(found) if found else None, values["reason"])


@dataclass(frozen=True, slots=True)
class AnalysingProcess(LimitedProcess):
    """Analyses by one process for each notebook."""

    command: tuple[str, ...] = module_command("requests.sweep_analysis.worker")
    seconds: float = SECONDS
    busy: str = "Other notebooks are being analysed."

    def sharing(self, name: str, notebook: str, space: Mapping[str, object]) -> SharingOut:
        """Return what trials share; blocks the calling thread.

        Raises:
            TooLarge: it takes too long or too much memory.
            Unavailable: too many notebooks are being analysed.
        """
        return SharingOut.model_validate_json(self._analyse("sharing", name, notebook, space))

    def outline(self, name: str, notebook: str, space: Mapping[str, object]) -> SweepOutline:
        """Return the stages of a sweep, as ``sweep_outline`` does.

        Raises:
            TooLarge, Unavailable: as for ``sharing``.
        """
        return SweepOutline.from_json(json.loads(self._analyse("outline", name, notebook, space)))

    def _analyse(self, what: str, name: str, notebook: str, space: Mapping[str, object]) -> bytes:
        given = {"what": what, "name": name, "notebook": notebook, "space": dict(space)}
        try:
            ended = self.run(json.dumps(given).encode())
        except subprocess.TimeoutExpired:
            raise _too_large() from None
        if ended.returncode:
            _log.warning("analysis failed: %s", ended.stderr[-2000:].decode(errors="replace"))
            raise _too_large()
        return ended.stdout


def _too_large() -> TooLarge:
    return TooLarge(
        "The notebook could not be analysed within the limits of the service.",
        accepted="Analyse it on your computer, with carrel sweep NOTEBOOK and --explain.",
    )
