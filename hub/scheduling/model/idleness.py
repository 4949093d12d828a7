"""Idle detection: decide from samples when a session with devices is warned and stopped.

A sample has three signals, and activity in any of them counts as work: the cells that its kernels
run (cells without output too), the CPU time of its processes (terminals and background processes
too), and its devices. An open browser tab is not a signal. A signal that cannot be read counts as
work.

A time without samples proves nothing: after a gap (a machine that slept, a clock that jumped, a
service that was down) the watch restarts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

CPU_SHARE = 0.02
"""Share of one core, averaged between two samples, above which a session works. Idle kernels
together use a tenth of it; a loop that polls for a file stays below."""
MAX_SAMPLE_SECONDS = 30.0
MAX_REPORT_SECONDS = 15.0
_SAMPLES_PER_SPAN = 4
"""Samples in the shorter of idle time and countdown, at least."""
_SAME_SECONDS = 1.0
"""Tolerance for the age of a cell, which sessions report relative to the time of the message."""
_GAP_INTERVALS = 5
"""A sample that is this many intervals late leaves a gap."""


class ActivityLevel(StrEnum):
    """Activity of a device since the last sample."""

    WORKED = "worked"
    QUIET = "quiet"
    NOT_MEASURED = "not_measured"
    """A simulated device has no work of its own; the CPU shows what its session does."""
    UNKNOWN = "unknown"
    """The driver does not answer, or cannot tell for this device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceActivity:
    """Activity of one device: ``name`` for display, ``detail`` for more evidence (memory in
    use)."""

    name: str
    use: ActivityLevel
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelReport:
    """Report of a session about its kernels.

    Attributes:
        running: number of kernels that run a cell now.
        cell_at: when a cell was last seen to run; None for never.
        cpu_seconds: of its processes without the server, from an arbitrary start; None from a
            session that does not measure itself.
        devices: what its devices did, from a session that measures itself.
    """

    count: int
    running: int
    cell_at: float | None = None
    cpu_seconds: float | None = None
    devices: ActivityLevel | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleSample:
    """One observation of one session.

    Attributes:
        kernels: None where the session does not report them.
        cpu_seconds: CPU time of all its processes, from an arbitrary start; None if unknown.
    """

    at: float
    kernels: KernelReport | None
    cpu_seconds: float | None
    devices: tuple[DeviceActivity, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleWatch:
    """The state of idle detection for one session, accumulated from its samples.

    Attributes:
        began: time of the first sample.
        quiet_since: no work was seen after it.
        worked_at: when work was last seen; None for never.
        work: the last work that was seen, as a sentence.
        cpu_used: CPU seconds since ``quiet_since``.
    """

    began: float
    last: IdleSample
    quiet_since: float
    worked_at: float | None = None
    work: str = ""
    cpu_used: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleWarning:
    """The idle warning of a session.

    Attributes:
        idle_since: no work was seen after it.
        seen: the evidence, one sentence each.
    """

    warned_at: float
    stops_at: float
    idle_since: float
    seen: tuple[str, ...] = ()


class IdleDecision(StrEnum):
    """Action for a session and its idle warning."""

    LEAVE = "leave"
    WARN = "warn"
    WITHDRAW = "withdraw"
    STOP = "stop"


def sample_interval(idle_seconds: float, countdown: float) -> float:
    """Return the seconds between two samples, for this idle time and this countdown."""
    return min(MAX_SAMPLE_SECONDS, min(idle_seconds, countdown) / _SAMPLES_PER_SPAN)


def observed(before: IdleWatch | None, sample: IdleSample, *, every: float) -> IdleWatch:
    """Add a sample to a watch; ``every`` is the sampling interval in seconds."""
    if before is None or not 0 <= sample.at - before.last.at <= _GAP_INTERVALS * every:
        return IdleWatch(began=sample.at, last=sample, quiet_since=sample.at)
    work = _work(before.last, sample)
    if work:
        return IdleWatch(
            began=before.began, last=sample, quiet_since=sample.at, worked_at=sample.at, work=work
        )
    used = _cpu_between(before.last, sample) or 0.0
    return replace(before, last=sample, cpu_used=before.cpu_used + used)


def decision(
    watch: IdleWatch,
    warning: IdleWarning | None,
    *,
    kept_at: float | None,
    idle_seconds: float,
) -> IdleDecision:
    """Decide whether to warn or stop a session, or to withdraw its warning, after a new sample.

    1. A group without an idle rule: leave it, and withdraw a warning.
    2. Not warned: warn after ``idle_seconds`` without work; ``kept_at`` restarts the count.
    3. Warned: work withdraws the warning.
    4. A countdown that ended in a gap starts again.
    5. Stop when the countdown is over and two samples since agree.
    """
    now = watch.last.at
    if idle_seconds <= 0:
        return IdleDecision.LEAVE if warning is None else IdleDecision.WITHDRAW
    if warning is None:
        since = max(watch.quiet_since, kept_at or watch.quiet_since)
        return IdleDecision.WARN if now - since >= idle_seconds else IdleDecision.LEAVE
    if watch.worked_at is not None and watch.worked_at > warning.warned_at:
        return IdleDecision.WITHDRAW
    if now < warning.stops_at:
        return IdleDecision.LEAVE
    if watch.began > warning.stops_at:
        return IdleDecision.WARN
    return IdleDecision.STOP if now > watch.began else IdleDecision.LEAVE


def evidence(watch: IdleWatch) -> tuple[str, ...]:
    """Return the evidence behind a warning, one sentence each, without times of day."""
    kernels = watch.last.kernels
    sentences = []
    if kernels is not None:
        sentences.append(
            f"{_kernels(kernels.count)} ran no cell." if kernels.count else "It has no kernel."
        )
    sentences.append(f"Its processes used {watch.cpu_used:.1f} s of CPU.")
    for device in watch.last.devices:
        did = (
            "has no measured utilization"
            if device.use is ActivityLevel.NOT_MEASURED
            else "did no work"
        )
        sentences.append(f"{device.name} {did}{device.detail and f'; {device.detail}'}.")
    return tuple(sentences)


def _work(before: IdleSample, sample: IdleSample) -> str:
    """Return the work between two samples as a sentence; empty for none."""
    kernels = sample.kernels
    if kernels is None:
        return "Its kernels do not tell whether they run a cell, which counts as work."
    if kernels.running:
        return f"{_kernels(kernels.running)} run{'s' * (kernels.running == 1)} a cell."
    if _later(kernels, before.kernels):
        return "A cell ran."
    used = _cpu_between(before, sample)
    if used is None:
        return "The CPU time of its processes is not known, which counts as work."
    share = used / max(sample.at - before.at, 1e-3)
    if share >= CPU_SHARE:
        return f"Its processes used {share:.0%} of a CPU core."
    for device in sample.devices:
        if device.use is ActivityLevel.WORKED:
            return f"{device.name} worked."
        if device.use is ActivityLevel.UNKNOWN:
            return f"It is not known whether {device.name} worked, which counts as work."
    return ""


def _later(kernels: KernelReport, before: KernelReport | None) -> bool:
    """Return whether a cell ran since the sample before."""
    if kernels.cell_at is None:
        return False
    known = before.cell_at if before else None
    return known is None or kernels.cell_at > known + _SAME_SECONDS


def _cpu_between(before: IdleSample, sample: IdleSample) -> float | None:
    """Return the CPU seconds between two samples; None if unknown or the counter was reset."""
    if before.cpu_seconds is None or sample.cpu_seconds is None:
        return None
    used = sample.cpu_seconds - before.cpu_seconds
    return used if used >= 0 else None


def _kernels(count: int) -> str:
    return "Its kernel" if count == 1 else f"{count} kernels"
