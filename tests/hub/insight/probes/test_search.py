"""What the search of a probe measures and leaves out, always below the memory limit."""

from __future__ import annotations

import random

import pytest

from carrel.hub.insight.probes.memory_curve import MemoryCurve
from carrel.hub.insight.probes.search import (
    ProbePurpose,
    fastest,
    gains_too_much,
    next_candidate,
)
from carrel.hub.insight.probes.settings import ProbeMeasurement, ProbeSetting, ProbeSpace

from .machine import PaperMachine

MIB = 1 << 20


def small_network(setting: ProbeSetting) -> float:
    """The samples per second of a small network on two cores: most at 128."""
    batch, threads = setting.batch or 1, setting.threads or 1
    overhead, cache = 8.0, 1 + max(0.0, batch - 64) / 1400
    speed = 1.0 if threads == 1 else 1.7
    half = 1.3 if setting.precision == "bfloat16" else 1.0
    return 4200 * speed * half * batch / (batch + overhead) / cache


@pytest.mark.parametrize(
    ("rates", "units", "too_much"),
    [
        ((10, 20), (0, 0), False),
        ((10, 53), (0, 0), True),
        ((10, 11), (0.2, 0.01), True),
        ((10, 11), (0.2, 0.1), False),
        ((10, 0), (0.2, 0), False),
    ],
)
def test_a_batch_gains_at_most_as_much_as_it_is_larger(
    rates: tuple[float, float], units: tuple[float, float], too_much: bool
) -> None:
    smaller, larger = (
        ProbeMeasurement(setting=ProbeSetting(batch=batch), rate=rate, unit_seconds=unit)
        for batch, rate, unit in zip((32, 128), rates, units, strict=True)
    )
    assert gains_too_much(smaller, larger) is too_much


def test_the_present_setting_is_measured_first() -> None:
    start = ProbeSetting(batch=32, threads=2)
    found = next_candidate(ProbeSpace(start=start, threads=(2, 1)), [], 120)
    assert found is not None
    assert (found.setting, found.purpose) == (start, ProbePurpose.SPEED)


@pytest.mark.parametrize("present", [1, 8, 32, 512])
def test_the_fastest_setting_is_found_by_a_part_of_the_grid(present: int) -> None:
    space = ProbeSpace(
        start=ProbeSetting(batch=present, threads=1, precision="float32"),
        largest=4096,
        threads=(1, 2),
        precision=("float32", "bfloat16"),
    )
    machine = PaperMachine(small_network)
    best = fastest(machine.probe(space))
    assert best is not None
    assert best.setting == ProbeSetting(batch=128, threads=2, precision="bfloat16")
    assert len(machine.measured) <= space.combinations / 3


def test_a_step_without_a_batch_has_its_other_settings_measured() -> None:
    space = ProbeSpace(start=ProbeSetting(workers=0), workers=(0, 2, 4))
    machine = PaperMachine(lambda setting: 1.0 + (setting.workers or 0) % 4)
    best = fastest(machine.probe(space, seconds=1000))
    assert best is not None
    assert best.setting.workers == 2
    assert len(machine.measured) == 3


@pytest.mark.parametrize("seed", range(100))
def test_the_largest_batch_is_found_without_reaching_the_limit(seed: int) -> None:
    """Bases, slopes, curvature and noise at random: none of 100 probes runs out of memory."""
    rng = random.Random(seed)  # noqa: S311  # to be repeated
    base, slope = rng.uniform(50, 600) * MIB, 10 ** rng.uniform(3.5, 6.5)
    bend = rng.choice([0.0, 0.0, 10 ** rng.uniform(0, 2)])
    limit = base * rng.uniform(1.5, 6) + 64 * slope

    def memory(setting: ProbeSetting) -> float:
        batch = setting.batch or 0
        return base + slope * batch + bend * batch**2 + rng.uniform(0, 1 * MIB)

    space = ProbeSpace(start=ProbeSetting(batch=32), largest=1 << 24, memory_limit=round(limit))
    machine = PaperMachine(lambda _: 1e6, memory, limit)
    measured = machine.probe(space, seconds=1e6)
    curve = MemoryCurve.fit((m.setting.batch or 0, m.memory_bytes) for m in measured)
    assert curve is not None
    found = curve.largest(0.98 * limit)
    low, high = 1, 1 << 30
    while high - low > 1:
        middle = (low + high) // 2
        fits = base + slope * middle + bend * middle**2 <= limit
        low, high = (middle, high) if fits else (low, middle)
    assert 0.9 * low <= found <= low


def test_a_setting_that_failed_is_not_measured_again() -> None:
    start = ProbeSetting(batch=32, precision="float32")
    half = ProbeSetting(batch=32, precision="float16")
    space = ProbeSpace(start=start, smallest=32, largest=32, precision=("float32", "float16"))
    measured = [
        ProbeMeasurement(setting=start, rate=10, seconds=1),
        ProbeMeasurement(setting=half, problem="ValueError: float16 is not supported."),
    ]
    assert next_candidate(space, measured, 120) is None


def test_no_larger_batch_is_tried_than_one_that_ran_out_of_memory() -> None:
    def failed(batch: int) -> ProbeMeasurement:
        return ProbeMeasurement(
            setting=ProbeSetting(batch=batch), problem="MemoryError.", out_of_memory=True
        )

    space = ProbeSpace(start=ProbeSetting(batch=32), smallest=32)
    measured = [ProbeMeasurement(setting=ProbeSetting(batch=32), rate=10, seconds=1), failed(64)]
    assert next_candidate(space, measured, 1e6) is None


def test_the_search_ends_with_the_time() -> None:
    machine = PaperMachine(small_network)
    machine.probe(ProbeSpace(start=ProbeSetting(batch=1)), seconds=0.1)
    assert machine.spent <= 0.1
    assert 1 < len(machine.measured) < 8


def test_nothing_is_measured_after_a_present_setting_that_failed() -> None:
    measured = [ProbeMeasurement(setting=ProbeSetting(batch=32), problem="ValueError.")]
    assert next_candidate(ProbeSpace(start=ProbeSetting(batch=32)), measured, 120) is None
