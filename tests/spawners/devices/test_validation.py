"""Devices are measured by a program of its own, whose output is checked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from carrel.hub.interfaces.devices import ValidationReading
from carrel.hub.scheduling.model.snapshot import Health
from carrel.spawners.devices.simulated import FAULTS, read_faults, simulated_devices
from carrel.spawners.devices.validation import (
    hung_validation,
    measure_cuda,
    measured_rate,
    parse_validation,
    run_validation,
    simulated_validation,
)

TWO = simulated_devices("node", 2)
GOOD = {"rates": {"compute": 3.0}}


def parsed(status: int, output: str, errors: str = "") -> list[ValidationReading]:
    return list(parse_validation(TWO, status, output, errors).values())


def test_each_device_has_its_own_result() -> None:
    output = "a warning\n" + json.dumps({"devices": [GOOD, {"problem": "CUDA error."}]})
    assert parsed(0, output) == [
        ValidationReading(rates={"compute": 3.0}),
        ValidationReading(problem="CUDA error."),
    ]


@pytest.mark.parametrize(
    ("status", "output", "errors", "expected"),
    [
        (0, json.dumps({"devices": [GOOD]}), "", "It measured 1 of 2 devices."),
        (0, json.dumps({"unavailable": "No torch."}), "", "No torch."),
        (1, "", "Traceback\nOSError: broken", "The validation failed: OSError: broken"),
        (137, '{"ready": true}', '{"ready": true}', "The validation failed: exit status 137"),
        (0, "[1]", "", "The validation failed: exit status 0"),
        (0, json.dumps({"devices": [GOOD, 1]}), "", "The validation failed: exit status 0"),
    ],
)
def test_what_could_not_be_measured_says_nothing_of_the_devices(
    status: int, output: str, errors: str, expected: str
) -> None:
    assert parsed(status, output, errors) == [ValidationReading(unavailable=expected)] * 2


def test_a_program_that_a_device_ends_is_a_problem_of_the_device() -> None:
    died = ValidationReading(problem="The validation was ended by signal 11.")
    assert parsed(-11, "") == [died] * 2


def test_a_program_that_somebody_else_ends_says_nothing_of_the_devices() -> None:
    ended = ValidationReading(unavailable="The validation was ended by signal 9.")
    assert parsed(-9, "") == [ended] * 2


def test_a_program_that_hangs_is_a_problem_of_the_device_once_it_uses_it() -> None:
    printed = b'a warning\n{"ready": true}\n'
    assert hung_validation(printed, 45) == ValidationReading(
        problem="The validation did not end within 45 s."
    )
    found = run_validation(TWO[:1], {}, 0.001)
    assert list(found.values()) == [
        ValidationReading(unavailable="The validation did not begin within 0.001 s.")
    ]


def test_a_measurement_ends_with_the_service() -> None:
    program = (
        "import signal; from carrel.spawners.devices.validation import end_with_parent; "
        "end_with_parent(0); print('begun', flush=True); signal.pause()"
    )
    for_child, here = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=for_child, stdout=subprocess.PIPE, text=True
    ) as child:
        os.close(for_child)
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        os.close(here)
        assert child.wait(30) == 1


class FailingTorch:
    """PyTorch whose first call fails."""

    uint8 = "uint8"

    def __init__(self, error: str) -> None:
        self._error = error

    def device(self, *_: object) -> str:
        return "cuda"

    def rand(self, *_: object, **__: object) -> None:
        raise RuntimeError(self._error)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("CUDA error: no kernel image is available for execution on the device", "unavailable"),
        ("CUDA out of memory. Tried to allocate 64.00 MiB.", "unavailable"),
        ("Need to provide pin_memory allocator to use pin memory.", "unavailable"),
        ("CUDA driver version is insufficient for CUDA runtime version", "unavailable"),
        ("CUDA error: uncorrectable ECC error encountered\nadvice", "problem"),
        ("CUDA error: unspecified launch failure while spinning", "problem"),
        ("", "problem"),
    ],
)
def test_errors_of_the_environment_say_nothing_of_the_device(error: str, outcome: str) -> None:
    found = measure_cuda(FailingTorch(error), 0, 1.0)
    assert found == {outcome: f"PyTorch reports: {error.partition(chr(10))[0]}"}
    (reading,) = parse_validation(TWO[:1], 0, json.dumps({"devices": [found]}), "").values()
    assert bool(reading.problem) == (outcome == "problem")
    assert bool(reading.unavailable) == (outcome == "unavailable")


def test_a_kernel_on_the_processor_is_measured() -> None:
    source, target = bytes(1 << 20), bytearray(1 << 20)
    waited = []

    def copy() -> float:
        target[:] = source
        return float(len(source))

    rate = measured_rate(copy, lambda: waited.append(1), 0.01)
    assert rate > 1e6
    assert len(waited) >= 2


def test_simulated_devices_fail_as_a_file_says(tmp_path: Path) -> None:
    (tmp_path / FAULTS).write_text(
        json.dumps({"0": {"speed": 0.5}, TWO[1].id: {"health": "sick", "why": "Burnt."}})
    )
    faults = read_faults(tmp_path)
    slow, fast = simulated_validation(TWO, faults).values()
    assert slow.rates["simulated"] < 0.6 * fast.rates["simulated"]
    devices = simulated_devices("node", 2, faults)
    assert [(d.health, d.why) for d in devices] == [(Health.OK, ""), (Health.SICK, "Burnt.")]


@pytest.mark.parametrize("written", ["", "[]", '{"0": {"speed": -1}}', '{"0": {"health": "odd"}}'])
def test_a_damaged_file_of_faults_is_ignored(tmp_path: Path, written: str) -> None:
    (tmp_path / FAULTS).write_text(written)
    assert read_faults(tmp_path) == {}
