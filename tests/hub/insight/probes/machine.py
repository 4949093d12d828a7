"""A machine on paper that answers a probe by formulas, with a limit of memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from carrel.hub.insight.probes.search import ProbePurpose, next_candidate
from carrel.hub.insight.probes.settings import ProbeMeasurement, ProbeSetting, ProbeSpace


@dataclass
class PaperMachine:
    """Measures settings by formulas.

    Attributes:
        rate: samples per second of a setting.
        memory: peak bytes of a setting.
        limit: bytes at which a process would be killed; a test fails if the search gets there.
    """

    rate: Callable[[ProbeSetting], float]
    memory: Callable[[ProbeSetting], float] = lambda _: 0.0
    limit: float = float("inf")
    spent: float = 0.0
    measured: list[ProbeMeasurement] = field(default_factory=list)

    def probe(self, space: ProbeSpace, seconds: float = 120.0) -> list[ProbeMeasurement]:
        """Measure what the search asks for until it has ended, or the time is over."""
        while True:
            candidate = next_candidate(space, self.measured, seconds - self.spent)
            if candidate is None:
                return self.measured
            used = self.memory(candidate.setting)
            assert used < self.limit, f"{candidate.setting} needs {used}, more than {self.limit}"
            rate = self.rate(candidate.setting)
            of_speed = candidate.purpose is ProbePurpose.SPEED
            taken = (4 if of_speed else 1) * (candidate.setting.batch or 1) / rate
            self.spent += taken
            self.measured.append(
                ProbeMeasurement(
                    setting=candidate.setting,
                    rate=rate if of_speed else 0.0,
                    memory_bytes=round(used),
                    seconds=taken,
                )
            )
