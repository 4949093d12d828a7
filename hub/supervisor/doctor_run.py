"""The checks of ``carrel doctor`` in the background of the service, for administrators."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..errors import CarrelError
from ..interfaces.clock import Clock
from ..records.diagnostics import Finding, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """The findings of the newest run so far.

    Attributes:
        started_at: 0 before the first run.
        ended_at: 0 while it runs.
    """

    started_at: float = 0.0
    ended_at: float = 0.0
    findings: tuple[Finding, ...] = ()

    @property
    def running(self) -> bool:
        return bool(self.started_at) and not self.ended_at


@dataclass(slots=True, eq=False)
class DoctorRun:
    """Runs the checks in a thread, since some of them take seconds; one run at a time."""

    checks: Callable[[], Iterable[Finding]]
    clock: Clock
    _report: DoctorReport = field(default_factory=DoctorReport)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        """Start the checks unless they are running."""
        with self._lock:
            if self._report.running:
                return
            self._report = DoctorReport(started_at=self.clock())
        threading.Thread(target=self._run, name="doctor", daemon=True).start()

    def report(self) -> DoctorReport:
        with self._lock:
            return self._report

    def _run(self) -> None:
        found: list[Finding] = []
        started_at = self.report().started_at
        try:
            for each in self.checks():
                found.append(each)
                self._note(DoctorReport(started_at=started_at, findings=tuple(found)))
        except CarrelError as error:
            found.append(
                Finding(
                    subject="doctor",
                    verdict=Severity.UNKNOWN,
                    what=error.message,
                    mend=error.accepted,
                )
            )
        finally:
            ended_at = self.clock()
            self._note(
                DoctorReport(started_at=started_at, ended_at=ended_at, findings=tuple(found))
            )

    def _note(self, report: DoctorReport) -> None:
        with self._lock:
            self._report = report
