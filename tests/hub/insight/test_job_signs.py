"""Tests of the signs that something is wrong with a job."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carrel.hub.insight.job_signs.detection import job_signs
from carrel.hub.insight.job_signs.findings import JobHistory, MetricSeries
from carrel.hub.insight.job_signs.loss import is_loss
from carrel.hub.records.leases import SignKind
from carrel.hub.records.utilization import UtilizationPoint, UtilizationSeries

GIB = 1 << 30
HOUR = 3600.0
BUSY = UtilizationPoint(
    cores=0.5, memory_bytes=2 * GIB, device_percent=80, device_bytes=4 * GIB, readings=1
)


def history(
    at: Callable[[float], UtilizationPoint], *, age: float = HOUR, **known: object
) -> JobHistory:
    """Return a history with one reading every 15 seconds."""
    series, before = UtilizationSeries(), None
    for number in range(1, int(age / 15) + 1):
        series = series.extended(before, number * 15.0, at(number * 15.0))
        before = number * 15.0
    made = JobHistory(age=age, devices=1, seconds_left=8 * HOUR, use=series, last_output=age)
    return replace(made, **known)  # type: ignore[arg-type]  # fields of the history


def losses(*values: float, every: float = 30.0) -> dict[str, MetricSeries]:
    count = range(len(values))
    times = tuple(number * every for number in count)
    return {"loss": MetricSeries(steps=tuple(count), values=values, times=times)}


def kinds(found: JobHistory) -> list[SignKind]:
    return [sign.kind for sign in job_signs(found)]


def test_a_loss_that_stays_nan_is_a_sign_since_its_first_nan() -> None:
    found = job_signs(JobHistory(age=60, metrics=losses(1, math.nan, 0.9, *[math.nan] * 3)))

    assert [sign.kind for sign in found] == [SignKind.LOSS_NOT_FINITE]
    assert (found[0].since, found[0].figures) == (
        90.0,
        {"name": "loss", "value": "NaN", "step": 3},
    )


@pytest.mark.parametrize(
    ("name", "smaller_is_better"),
    [
        ("loss", True),
        ("train_loss", True),
        ("valLoss", True),
        ("eval/loss", True),
        ("perplexity", True),
        ("glossary", False),
        ("accuracy", False),
        ("lossless", False),
    ],
)
def test_a_loss_is_recognized_by_its_name(name: str, smaller_is_better: bool) -> None:
    assert is_loss(name) is smaller_is_better


def test_a_loss_that_falls_is_no_sign_and_one_that_stopped_to_fall_is() -> None:
    dice = random.Random(1)  # noqa: S311  # no secret
    falling = [math.exp(-at / 200) + dice.gauss(0, 0.02) for at in range(400)]
    stalled = [*falling[:150], *(falling[150] + dice.gauss(0, 0.02) for _ in range(250))]

    assert kinds(JobHistory(age=4 * HOUR, metrics=losses(*falling))) == []
    assert kinds(JobHistory(age=4 * HOUR, metrics=losses(*stalled))) == [SignKind.LOSS_STALLED]


def test_a_loss_that_ends_above_its_beginning_is_a_sign_at_its_turn() -> None:
    values = [1 - at / 200 for at in range(100)] + [0.5 + at / 20 for at in range(100)]

    (found,) = job_signs(JobHistory(age=2 * HOUR, metrics=losses(*values)))

    assert found.kind is SignKind.LOSS_RISING
    assert found.figures["step"] == pytest.approx(100, abs=10)


def test_the_largest_numbers_are_no_error() -> None:
    largest = [(-1) ** at * 1.7e308 for at in range(200)]
    rising = [1e307 * (1 + at / 20) for at in range(200)]

    for values in (largest, rising):
        assert kinds(JobHistory(age=4 * HOUR, metrics=losses(*values))) == []


def test_a_leak_says_when_the_limit_is_reached() -> None:
    def leaking(at: float) -> UtilizationPoint:
        return replace(BUSY, memory_bytes=int((2 + at / HOUR) * GIB))

    found = history(leaking, memory_limit=8 * GIB)
    (sign,) = job_signs(found)

    assert sign.kind is SignKind.MEMORY_GROWTH
    assert sign.figures["reached_in"] == pytest.approx(5 * HOUR, rel=0.05)
    assert sign.figures["bytes_per_hour"] == pytest.approx(GIB, rel=0.05)
    ends_before = replace(found, seconds_left=2 * HOUR)
    assert kinds(ends_before) == []


@pytest.mark.parametrize(
    "memory",
    [
        pytest.param(lambda at: 2 + 4 * (1 - math.exp(-at / 900)), id="a cache that fills"),
        pytest.param(lambda at: 2 + 2 * (at % 1200) / 1200, id="a saw tooth"),
        pytest.param(lambda at: 2 + 2 * min(1, at / 400), id="data loaded at the start"),
    ],
)
def test_memory_that_stops_growing_is_no_leak(memory: Callable[[float], float]) -> None:
    found = history(
        lambda at: replace(BUSY, memory_bytes=int(memory(at) * GIB)), memory_limit=8 * GIB
    )

    assert kinds(found) == []


def test_devices_that_were_used_once_and_then_idle_are_a_sign_although_their_mean_is_high() -> None:
    found = history(lambda at: replace(BUSY, device_percent=95 if at < 2400 else 0))
    (sign,) = job_signs(found)

    assert sign.kind is SignKind.DEVICES_IDLE
    assert sign.since == pytest.approx(2400, abs=30)
    assert (found.use.summary.mean_device_percent or 0) > 60


def test_devices_are_unused_only_after_the_time_to_prepare() -> None:
    def unused(_: float) -> UtilizationPoint:
        return replace(BUSY, device_percent=0, device_bytes=0)

    assert kinds(history(unused, age=800)) == []
    (sign,) = job_signs(history(unused, age=1000))
    assert (sign.kind, sign.since) == (SignKind.DEVICES_UNUSED, 0.0)


def test_a_starved_loader_keeps_a_core_busy_and_devices_idle() -> None:
    starved = history(lambda _: replace(BUSY, device_percent=15, cores=1.0))
    phases = history(lambda at: replace(BUSY, device_percent=90 if at % 600 < 150 else 0, cores=1))

    assert kinds(starved) == [SignKind.STARVED_LOADER]
    assert kinds(phases) == []


def test_constant_load_is_a_sign_only_without_output() -> None:
    silent = history(lambda _: replace(BUSY, device_percent=99), age=2 * HOUR, last_output=60.0)

    (sign,) = job_signs(silent)
    assert (sign.kind, sign.since) == (SignKind.CONSTANT_LOAD, 60.0)
    assert kinds(replace(silent, last_output=silent.age - 60)) == []
    assert kinds(replace(silent, last_output=None)) == []


def test_waiting_for_cores_is_told_from_waiting_for_itself_and_for_a_limit() -> None:
    waits = history(lambda _: replace(BUSY, cores=1.0, waiting=1.0), node_cores=8)
    itself = history(lambda _: replace(BUSY, cores=7.5, waiting=9.0), node_cores=8)
    limited = history(lambda _: replace(BUSY, cores=1.0, waiting=1.0, throttled=0.5))

    assert kinds(waits) == [SignKind.CPU_CONTENTION]
    assert kinds(itself) == []
    assert kinds(limited) == [SignKind.CPU_LIMITED]


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(JobHistory(age=0), id="nothing"),
        pytest.param(JobHistory(age=HOUR, devices=1), id="no readings"),
        pytest.param(history(lambda _: UtilizationPoint(readings=1)), id="nothing measured"),
        pytest.param(history(lambda _: BUSY, age=15), id="one reading"),
        pytest.param(
            replace(history(lambda _: replace(BUSY, device_percent=0)), age=10 * HOUR),
            id="a clock that went ahead",
        ),
        pytest.param(
            replace(history(lambda _: replace(BUSY, device_percent=0)), age=60),
            id="a clock that went back",
        ),
        pytest.param(JobHistory(age=60, metrics=losses(1.0)), id="one report"),
        pytest.param(
            JobHistory(age=HOUR, metrics={"score": losses(*[math.nan] * 9)["loss"]}),
            id="a score of NaN only",
        ),
    ],
)
def test_what_is_not_known_is_no_sign(found: JobHistory) -> None:
    assert kinds(found) == []


NUMBERS = st.one_of(st.none(), st.floats(0, 1e6), st.sampled_from([0.0, 100.0]))
POINTS = st.builds(
    UtilizationPoint,
    cores=NUMBERS,
    memory_bytes=st.one_of(st.none(), st.integers(0, 1 << 45)),
    device_percent=NUMBERS,
    device_bytes=st.one_of(st.none(), st.integers(0, 1 << 45)),
    readings=st.integers(0, 9),
    waiting=NUMBERS,
    throttled=NUMBERS,
)


@settings(max_examples=60, deadline=None)
@given(
    points=st.lists(POINTS, max_size=60),
    seconds=st.sampled_from([5.0, 60.0, 640.0]),
    age=st.floats(0, 1e6),
    values=st.lists(st.floats(), max_size=130),
)
def test_any_series_gets_findings_within_its_time(
    points: list[UtilizationPoint], seconds: float, age: float, values: list[float]
) -> None:
    use = UtilizationSeries(begins=0.0, seconds=seconds, points=tuple(points))
    found = JobHistory(age=age, devices=1, use=use, last_output=0.0, metrics=losses(*values))

    for sign in job_signs(found):
        assert sign.since >= 0
        assert all(value == value for value in sign.figures.values())  # noqa: PLR0124  # no NaN
