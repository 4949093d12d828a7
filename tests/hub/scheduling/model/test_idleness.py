"""When a session with devices is idle."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.scheduling.model.idleness import (
    CPU_SHARE,
    ActivityLevel,
    DeviceActivity,
    IdleDecision,
    IdleSample,
    IdleWarning,
    IdleWatch,
    KernelReport,
    decision,
    evidence,
    observed,
    sample_interval,
)

EVERY = 30.0
QUIET = IdleSample(
    at=0.0,
    kernels=KernelReport(count=1, running=0, cell_at=-50.0),
    cpu_seconds=10.0,
    devices=(DeviceActivity(name="GPU #0", use=ActivityLevel.QUIET),),
)
WARNING = IdleWarning(warned_at=1000.0, stops_at=1600.0, idle_since=0.0, seen=("It slept.",))


def after(*looks: IdleSample) -> IdleWatch:
    watch: IdleWatch | None = None
    for number, look in enumerate(looks):
        watch = observed(watch, replace(look, at=number * EVERY), every=EVERY)
    assert watch is not None
    return watch


def test_an_idle_session_is_idle_since_its_first_sample() -> None:
    watch = after(*[QUIET] * 5)
    assert (watch.quiet_since, watch.worked_at, watch.last.at) == (0.0, None, 120.0)


@pytest.mark.parametrize(
    ("look", "work"),
    [
        (replace(QUIET, kernels=KernelReport(count=2, running=1)), "Its kernel runs a cell."),
        (replace(QUIET, kernels=KernelReport(count=1, running=0, cell_at=40.0)), "A cell ran."),
        (
            replace(QUIET, cpu_seconds=10.0 + EVERY / 2),
            "Its processes used 50% of a CPU core.",
        ),
        (
            replace(QUIET, devices=(DeviceActivity(name="GPU #0", use=ActivityLevel.WORKED),)),
            "GPU #0 worked.",
        ),
        (
            replace(QUIET, kernels=None),
            "Its kernels do not tell whether they run a cell, which counts as work.",
        ),
        (
            replace(QUIET, cpu_seconds=None),
            "The CPU time of its processes is not known, which counts as work.",
        ),
        (
            replace(QUIET, cpu_seconds=1.0),
            "The CPU time of its processes is not known, which counts as work.",
        ),
        (
            replace(QUIET, devices=(DeviceActivity(name="GPU #0", use=ActivityLevel.UNKNOWN),)),
            "It is not known whether GPU #0 worked, which counts as work.",
        ),
    ],
)
def test_activity_and_unknown_signals_restart_the_idle_time(look: IdleSample, work: str) -> None:
    watch = after(QUIET, QUIET, look)
    assert (watch.quiet_since, watch.worked_at, watch.work) == (60.0, 60.0, work)


def test_a_cell_reported_after_the_sample_it_ran_before_is_work() -> None:
    later = replace(QUIET, kernels=KernelReport(count=1, running=0, cell_at=25.0))
    assert after(QUIET, QUIET, later).work == "A cell ran."


def test_the_same_cell_reported_again_is_no_activity() -> None:
    again = replace(QUIET, kernels=KernelReport(count=1, running=0, cell_at=-49.4))
    assert after(QUIET, again, QUIET).worked_at is None


def test_a_little_cpu_time_is_no_activity_and_is_in_the_evidence() -> None:
    little = replace(QUIET, cpu_seconds=10.0 + 0.5 * CPU_SHARE * EVERY)
    watch = after(QUIET, little)
    assert watch.worked_at is None
    assert evidence(watch) == (
        "Its kernel ran no cell.",
        "Its processes used 0.3 s of CPU.",
        "GPU #0 did no work.",
    )


def test_the_evidence_has_devices_and_what_cannot_be_measured() -> None:
    look = replace(
        QUIET,
        kernels=KernelReport(count=0, running=0),
        devices=(
            DeviceActivity(name="GPU #0", use=ActivityLevel.QUIET, detail="1 process on it"),
            DeviceActivity(name="Simulated GPU 1 (simulated)", use=ActivityLevel.NOT_MEASURED),
        ),
    )
    assert evidence(after(look, look)) == (
        "It has no kernel.",
        "Its processes used 0.0 s of CPU.",
        "GPU #0 did no work; 1 process on it.",
        "Simulated GPU 1 (simulated) has no measured utilization.",
    )


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
def test_a_gap_or_a_clock_jump_restarts_the_idle_time(jump: float) -> None:
    watch = observed(after(QUIET, QUIET), replace(QUIET, at=EVERY + jump), every=EVERY)
    assert watch == IdleWatch(began=EVERY + jump, last=watch.last, quiet_since=EVERY + jump)


def quiet(since: float, now: float, *, worked_at: float | None = None) -> IdleWatch:
    return IdleWatch(
        began=since, last=replace(QUIET, at=now), quiet_since=since, worked_at=worked_at
    )


@pytest.mark.parametrize(
    ("watch", "warning", "kept_at", "idle_seconds", "expected"),
    [
        (quiet(0, 1799), None, None, 1800, IdleDecision.LEAVE),
        (quiet(0, 1800), None, None, 1800, IdleDecision.WARN),
        (quiet(0, 9999), None, None, 0, IdleDecision.LEAVE),
        (quiet(0, 3000), None, 1500.0, 1800, IdleDecision.LEAVE),
        (quiet(0, 3300), None, 1500.0, 1800, IdleDecision.WARN),
        (quiet(0, 1599), WARNING, None, 900, IdleDecision.LEAVE),
        (quiet(0, 1600), WARNING, None, 900, IdleDecision.STOP),
        (quiet(1200, 1230, worked_at=1200.0), WARNING, None, 900, IdleDecision.WITHDRAW),
        (quiet(500, 1100, worked_at=500.0), WARNING, None, 900, IdleDecision.LEAVE),
        (quiet(0, 1100), WARNING, None, 0, IdleDecision.WITHDRAW),
        # The service was restarted: the countdown continues.
        (quiet(1590, 1590), WARNING, None, 900, IdleDecision.LEAVE),
        (quiet(1590, 1620), WARNING, None, 900, IdleDecision.STOP),
        # There were no samples when the countdown ended.
        (quiet(2000, 2000), WARNING, None, 900, IdleDecision.WARN),
    ],
)
def test_verdicts(
    watch: IdleWatch,
    warning: IdleWarning | None,
    kept_at: float | None,
    idle_seconds: float,
    expected: IdleDecision,
) -> None:
    assert decision(watch, warning, kept_at=kept_at, idle_seconds=idle_seconds) is expected


KERNELS = st.one_of(
    st.none(),
    st.builds(
        KernelReport,
        count=st.integers(0, 3),
        running=st.integers(0, 2),
        cell_at=st.one_of(st.none(), st.floats(0, 5000)),
    ),
)
DEVICES = st.lists(
    st.builds(DeviceActivity, name=st.just("GPU"), use=st.sampled_from(ActivityLevel)), max_size=2
).map(tuple)
STEPS = st.lists(
    st.tuples(st.floats(1, 200), KERNELS, st.one_of(st.none(), st.floats(0, 3)), DEVICES),
    min_size=1,
    max_size=30,
)


@given(steps=STEPS, idle_seconds=st.floats(1, 2000))
def test_no_warning_after_recent_work_or_an_unknown_signal(
    steps: list[tuple[float, KernelReport | None, float | None, tuple[DeviceActivity, ...]]],
    idle_seconds: float,
) -> None:
    watch: IdleWatch | None = None
    now, cpu, worked = 0.0, 0.0, 0.0
    for pause, kernels, used, devices in steps:
        now += pause
        cpu += used or 0.0
        look = IdleSample(
            at=now, kernels=kernels, cpu_seconds=None if used is None else cpu, devices=devices
        )
        watch = observed(watch, look, every=EVERY)
        if (
            kernels is None
            or kernels.running
            or used is None
            or used >= CPU_SHARE * pause
            or any(
                device.use in (ActivityLevel.WORKED, ActivityLevel.UNKNOWN) for device in devices
            )
        ):
            worked = now
        result = decision(watch, None, kept_at=None, idle_seconds=idle_seconds)
        if result is IdleDecision.WARN:
            assert now - worked >= idle_seconds
        assert result in (IdleDecision.WARN, IdleDecision.LEAVE)
        assert watch.began <= watch.quiet_since <= now


@given(idle=st.floats(1, 86400), countdown=st.floats(1, 3600))
def test_there_are_several_samples_in_every_idle_time(idle: float, countdown: float) -> None:
    assert 4 * sample_interval(idle, countdown) <= min(idle, countdown) + 1e-9
