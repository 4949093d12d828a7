"""``carrel.advise``: steps that work, fail, never end, write files, or have no such argument."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import carrel
from carrel.extensions.advice.memory_meter import MemoryMeter, process_limit
from carrel.hub.errors import InvalidInput


def batch(size: int) -> bytes:
    return bytes(size)


def quick(data: bytes, **_: object) -> None:
    """Take one millisecond for each 1,000 samples, and a tenth of one for a step."""
    end = time.perf_counter() + 1e-4 + len(data) * 1e-6
    while time.perf_counter() < end:
        pass


def overhead(data: bytes) -> None:
    """Take 10 milliseconds for a step, whatever its batch: a busy machine hides no such ratio."""
    time.sleep(0.01)


def test_a_larger_batch_is_found_faster() -> None:
    found = carrel.advise(overhead, batch, batch=8, largest=256, budget=30)
    fastest = found.found.fastest.setting.batch
    assert fastest is not None
    assert fastest > 8
    assert found.found.start.setting.batch == 8
    assert "changes what is learned" in str(found)
    assert "create it again before you train" in str(found)
    assert "<td" in found._repr_html_()


def test_a_setting_that_is_clearly_slower_takes_few_steps() -> None:
    calls: dict[str, int] = {}

    def step(data: bytes, precision: str) -> None:
        calls[precision] = calls.get(precision, 0) + 1
        time.sleep(0.005 if precision == "float32" else 0.02)

    found = carrel.advise(
        step, batch, batch=4, largest=4, threads=[1], budget=20, precision=["float32", "float64"]
    )
    assert found.found.fastest.setting.precision == "float32"
    assert calls["float64"] == 4  # one to warm up, three for a median


def test_as_many_features_as_samples_do_not_count_as_samples() -> None:
    """A graph for each sample: its nodes are rows of one array."""
    found = carrel.advise(
        overhead,
        lambda size: np.zeros((size * 3, 32)),
        batch=32,
        largest=64,
        threads=[1],
        budget=30,
    )
    assert "samples instead of" not in str(found)


def test_a_batch_with_fewer_samples_than_it_should_have_is_no_advice() -> None:
    data = np.zeros((50, 32)), list(range(50))
    found = carrel.advise(
        overhead,
        lambda size: (data[0][:size], data[1][:size]),
        batch=32,
        largest=256,
        threads=[1],
        budget=30,
    )
    assert "make_batch returned 50 samples instead of 64" in str(found)
    assert (found.found.fastest.setting.batch or 0) <= 32


def test_a_step_that_leaves_out_its_work_is_no_advice() -> None:
    def step(size: int) -> None:
        time.sleep(0.02 if size <= 64 else 0.001)

    found = carrel.advise(step, lambda size: size, batch=32, largest=256, threads=[1], budget=30)
    assert "faster than batch 64 by more than the batch is larger" in str(found)
    assert found.found.fastest.setting.batch == 64


def test_only_parameters_of_the_step_are_varied() -> None:
    seen: set[tuple[str, bool]] = set()

    def step(data: bytes, precision: str, compile: bool = False) -> None:
        seen.add((precision, compile))
        time.sleep(0.001 if precision == "bfloat16" else 0.002)

    found = carrel.advise(step, batch, batch=4, largest=4, threads=[1], budget=20)
    assert {("float32", False), ("bfloat16", False), ("bfloat16", True)} <= seen
    assert found.found.fastest.setting.precision == "bfloat16"
    assert any("devices, threads, loader workers" in each for each in found.found.sentences)


def test_values_for_a_parameter_that_the_step_lacks_are_refused() -> None:
    def step(data: bytes) -> None:
        pass

    with pytest.raises(InvalidInput, match="has a parameter workers"):
        carrel.advise(step, batch, workers=[0, 2])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"batch": 0}, "The batch 0 is not possible"),
        ({"batch": 64, "largest": 32}, "The batch 64 is not possible"),
        ({"largest": math.inf}, "The largest batch inf is not possible"),
        ({"samples": -1}, "The number of samples -1 is not possible"),
        ({"samples": math.nan}, "The number of samples nan is not possible"),
        ({"deadline": math.inf}, "The deadline inf is not possible"),
        ({"budget": 0}, "The budget 0 is not possible"),
        ({"budget": math.nan}, "The budget nan is not possible"),
        ({"memory": -1}, "The memory -1 is not possible"),
        ({"batch": 2.5}, "The batch 2.5 is not possible"),
        ({"threads": []}, "threads has no value"),
    ],
)
def test_invalid_arguments_are_refused(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        carrel.advise(quick, batch, **arguments)  # type: ignore[arg-type]


def failing(data: bytes) -> None:
    raise ValueError("shapes do not\nagree")


def endless(data: bytes) -> None:
    while True:
        with suppress(Exception):  # as careless code does
            time.sleep(10)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (failing, "The step failed with batch 32.*: ValueError: shapes do not agree."),
        (endless, "The step failed with batch 32.*: it did not end within 1 s."),
    ],
    ids=["fails", "never ends"],
)
def test_a_step_that_does_not_work_is_refused(step: Callable[[bytes], None], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        carrel.advise(step, batch, budget=0.3)


def test_a_setting_that_fails_does_not_end_the_probe() -> None:
    def step(data: bytes) -> None:
        if len(data) > 32:
            raise MemoryError
        quick(data)

    found = carrel.advise(step, batch, threads=[1], budget=20)
    tried = [each.setting.batch or 0 for each in found.measured]
    assert max(tried) == 64
    assert "Failed: batch 64, 1 thread: MemoryError." in found.found.sentences


def test_a_loss_that_is_no_number_is_said() -> None:
    def step(data: bytes, precision: str) -> float:
        quick(data)
        return math.nan if precision == "bfloat16" else 0.5

    found = carrel.advise(step, batch, batch=4, largest=4, threads=[1], budget=30)
    begin = "The step returned NaN or an infinite number with: "
    # Whether batches of 1 and 2 are measured with it too depends on their times.
    (said,) = [each for each in found.found.sentences if each.startswith(begin)]
    assert "bfloat16" in said
    assert "float32" not in said


def test_one_sample_is_advised_on() -> None:
    found = carrel.advise(
        quick, batch, batch=np.int64(1), largest=np.int64(1), threads=[1], budget=30
    )
    assert found.found.fastest.setting.batch == 1
    assert "Nothing that was measured is clearly faster." in found.found.sentences
    assert found.memory_for(2) is None


def test_written_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.txt").write_text("")

    def step(data: bytes) -> None:
        Path("model.bin").write_bytes(data)

    found = carrel.advise(step, batch, largest=32, threads=[1])
    assert "Files in this folder were written during the probe: model.bin." in found.found.sentences


def test_a_probe_of_a_known_run_takes_a_twentieth_of_it() -> None:
    start = time.perf_counter()
    carrel.advise(quick, batch, samples=100_000, threads=[1])  # 0.4 s at 32 samples a step
    assert time.perf_counter() - start < 5


def test_a_probe_of_a_short_run_repeats_few_steps() -> None:
    """Otherwise a measurement would take longer than the run of a small exercise."""
    steps = 0

    def step(data: bytes) -> None:
        nonlocal steps
        steps += 1

    carrel.advise(step, batch, batch=32, samples=1_000, threads=[1])
    assert steps < 10


def test_no_device_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARREL_DEVICES", "Simulated A100 #0 (simulated)")
    found = carrel.advise(quick, batch, largest=32, threads=[1])
    assert any("sees no CUDA device" in each for each in found.found.sentences)


def test_it_works_outside_of_the_main_thread() -> None:
    found = []
    thread = threading.Thread(
        target=lambda: found.append(carrel.advise(quick, batch, largest=64, threads=[1]))
    )
    thread.start()
    thread.join()
    assert found[0].found.fastest.rate > 0


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux only")
def test_the_peak_of_memory_is_that_since_the_reset() -> None:
    meter = MemoryMeter()
    meter.reset()
    before = meter.peak()
    block = bytearray(os.urandom(1)) * (64 << 20)
    del block
    assert meter.peak() - before > 60 << 20
    meter.reset()
    assert meter.peak() - before < 32 << 20
    assert process_limit() > before
