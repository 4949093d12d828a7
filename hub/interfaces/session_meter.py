"""The port to what a session measures of itself, on an engine that does not.

An engine on whose nodes the service cannot look (Slurm) names a meter in the environment of its
sessions (``VARIABLE``). The server of the session loads it by entry point (group
``carrel.session_meters``, ``factory()``) and reports what it says with its kernels.

In the environment of jobs with devices, such an engine names what measures these (``JOB_VARIABLE``,
group ``carrel.job_meters``): a function that their runner calls with the folder of the attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from ..scheduling.model.idleness import ActivityLevel

GROUP: Final = "carrel.session_meters"
VARIABLE: Final = "CARREL_SESSION_METER"
JOB_GROUP: Final = "carrel.job_meters"
JOB_VARIABLE: Final = "CARREL_JOB_METER"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUse:
    """What the processes of a session did.

    Attributes:
        cpu_seconds: of all of them but the server, from an arbitrary start; never falls.
        devices: of all its devices together.
    """

    cpu_seconds: float
    devices: ActivityLevel


class SessionMeter(Protocol):
    """Measures the session in whose server it runs."""

    def latest(self) -> SessionUse | None:
        """Return the newest measurement; None if there is no recent one. Never blocks."""
