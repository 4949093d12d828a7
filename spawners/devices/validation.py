"""Measure devices in a process of its own: compute, memory, copies, and a collective of several.

``python -m carrel.spawners.devices.validation`` measures the devices that it sees through PyTorch
and prints one line of JSON with a result for each, in their order. A device may hang or end the
process, which is then the result. What its environment can cause as well, such as a lack of memory
or an old driver, says nothing of the device.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ...hub.interfaces.devices import ValidationReading
from ...hub.scheduling.model.snapshot import Device
from .simulated import SimulatedFault, fault_of

SECONDS: Final = 20.0
"""For all tests together."""
_TESTS: Final = 4
_SIZE: Final = 4096
_BYTES: Final = 256 << 20
_DISTURBED: Final = 0.01
"""Share by which simulated devices differ from each other."""
_NO_TORCH: Final = "PyTorch is not installed where the service runs."
_ENVIRONMENT: Final = re.compile(
    r"no kernel image|out of memory|\bpin(ned|_memory)?\b|host memory|driver version", re.IGNORECASE
)
"""Errors that say nothing of a device."""
_ENDED_BY_OTHERS: Final = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT})
_READY: Final = json.dumps({"ready": True})
"""The line that the program prints when it uses the devices; what hangs before may be the host."""
_NO_CUDA: Final = "PyTorch finds no CUDA device."


def measured_rate(step: Callable[[], float], wait: Callable[[], None], seconds: float) -> float:
    """Return the median rate of a step that is repeated for some seconds.

    Args:
        step: does the work and returns how much it was.
        wait: returns when the work has been done.
    """
    step()
    wait()
    rates: list[float] = []
    until = time.perf_counter() + seconds
    while not rates or time.perf_counter() < until:
        began = time.perf_counter()
        work = step()
        wait()
        rates.append(work / (time.perf_counter() - began))
    return sorted(rates)[len(rates) // 2]


def measure_cuda(torch: Any, position: int, seconds: float) -> dict[str, object]:
    """Return the rates of one device, or the problem that it has."""
    part, device = seconds / _TESTS, torch.device("cuda", position)

    def wait() -> None:
        torch.cuda.synchronize(device)

    try:
        left = torch.rand(_SIZE, _SIZE, device=device)
        first = left @ left
        if not torch.equal(first, left @ left):
            return {"problem": "The same product of matrices had two results."}
        here = torch.empty(_BYTES, dtype=torch.uint8, device=device)
        there = torch.empty_like(here)
        host = torch.empty(_BYTES, dtype=torch.uint8, pin_memory=True)

        def compute() -> float:
            torch.mm(left, left, out=first)
            return 2.0 * _SIZE**3

        def memory() -> float:
            there.copy_(here)
            return 2.0 * _BYTES

        def copies() -> float:
            here.copy_(host, non_blocking=True)
            host.copy_(here, non_blocking=True)
            return 2.0 * _BYTES

        return {
            "rates": {
                "compute": measured_rate(compute, wait, part),
                "memory": measured_rate(memory, wait, part),
                "copies": measured_rate(copies, wait, part),
            }
        }
    except RuntimeError as error:
        return {_outcome(_first_line(error)): f"PyTorch reports: {_first_line(error)}"}


def _first_line(error: RuntimeError) -> str:
    return str(error).strip().partition("\n")[0][:300]


def _outcome(error: str) -> str:
    return "unavailable" if _ENVIRONMENT.search(error) else "problem"


def create_contexts(torch: Any, count: int) -> None:
    """Create the context of each device; an error shows again when the device is measured."""
    for position in range(count):
        with contextlib.suppress(RuntimeError):
            torch.zeros(1, device=f"cuda:{position}")
            torch.cuda.synchronize(position)


def measure_collective(torch: Any, count: int, seconds: float) -> float:
    """Return the rate at which values are passed round all devices of this process."""
    parts = [torch.empty(_BYTES, dtype=torch.uint8, device=f"cuda:{n}") for n in range(count)]

    def step() -> float:
        for number, part in enumerate(parts):
            parts[(number + 1) % count].copy_(part, non_blocking=True)
        return float(count * _BYTES)

    def wait() -> None:
        for number in range(count):
            torch.cuda.synchronize(number)

    return measured_rate(step, wait, seconds)


def end_with_parent(descriptor: int) -> None:
    """End this process when the other end of a pipe is closed, as the end of the parent does."""

    def wait() -> None:
        with contextlib.suppress(OSError):
            while os.read(descriptor, 1):
                pass
        os._exit(1)  # a thread in a call of the driver would keep the interpreter alive

    threading.Thread(target=wait, daemon=True).start()


def main() -> int:
    """Measure all devices that this process sees, one after the other, and print the results."""
    if stat.S_ISFIFO(os.fstat(0).st_mode):
        end_with_parent(0)
    try:
        torch = importlib.import_module("torch")  # optional, and slow to import
    except ImportError:
        print(json.dumps({"unavailable": _NO_TORCH}))
        return 0
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        print(json.dumps({"unavailable": _NO_CUDA}))
        return 0
    create_contexts(torch, count)
    print(_READY, flush=True)
    results = [measure_cuda(torch, position, SECONDS / count) for position in range(count)]
    if count > 1 and all("rates" in each for each in results):
        together = measure_collective(torch, count, SECONDS / _TESTS)
        for each in results:
            rates = each["rates"]
            if isinstance(rates, dict):
                rates["collective"] = together
    print(json.dumps({"devices": results}))
    return 0


def run_validation(
    devices: Sequence[Device], environment: Mapping[str, str], seconds: float
) -> dict[str, ValidationReading]:
    """Measure devices in a child process that sees them alone, in this order.

    The child ends when this process does.
    """
    for_child, here = os.pipe()
    try:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],
            env=dict(environment),
            stdin=for_child,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    except OSError as error:
        os.close(here)
        failed = ValidationReading(unavailable=f"The validation could not be started: {error}.")
        return {device.id: failed for device in devices}
    finally:
        os.close(for_child)
    try:
        output, errors = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as error:
        # Not waited for: a child that hangs in a driver may not even end when it is killed.
        child.kill()
        hung = hung_validation(error.stdout, seconds)
        return {device.id: hung for device in devices}
    finally:
        os.close(here)
    return parse_validation(devices, child.returncode, output, errors)


def hung_validation(output: bytes | str | None, seconds: float) -> ValidationReading:
    """Return the reading of a program that printed this and did not end within its time."""
    printed = output.decode(errors="replace") if isinstance(output, bytes) else output or ""
    if _READY in printed.splitlines():
        return ValidationReading(problem=f"The validation did not end within {seconds:g} s.")
    return ValidationReading(unavailable=f"The validation did not begin within {seconds:g} s.")


def parse_validation(
    devices: Sequence[Device], status: int, output: str, errors: str
) -> dict[str, ValidationReading]:
    """Return the readings that the program has printed."""
    if status < 0:
        ended = f"The validation was ended by signal {-status}."
        by_others = -status in _ENDED_BY_OTHERS
        died = ValidationReading(
            unavailable=ended if by_others else "", problem="" if by_others else ended
        )
        return {device.id: died for device in devices}
    try:
        answer = json.loads(output.strip().splitlines()[-1])
        unavailable = str(answer.get("unavailable", ""))
        results = [] if unavailable else answer["devices"]
        if not unavailable and len(results) != len(devices):
            unavailable = f"It measured {len(results)} of {len(devices)} devices."
        readings = [
            ValidationReading(
                rates={str(test): float(rate) for test, rate in each.get("rates", {}).items()},
                problem=str(each.get("problem", "")),
                unavailable=str(each.get("unavailable", "")),
            )
            for each in results
        ]
    except (IndexError, AttributeError, KeyError, TypeError, ValueError):
        told = [line for line in errors.strip().splitlines() if line != _READY]
        last = told[-1:] or [f"exit status {status}"]
        unavailable, readings = f"The validation failed: {last[0][:300]}", []
    if unavailable:
        return {device.id: ValidationReading(unavailable=unavailable) for device in devices}
    return {device.id: found for device, found in zip(devices, readings, strict=True)}


def simulated_validation(
    devices: Sequence[Device], faults: Mapping[str, SimulatedFault]
) -> dict[str, ValidationReading]:
    """Return what simulated devices are said to reach; nothing is measured."""
    found = {}
    for device in devices:
        own = 1 + _DISTURBED * (device.index % 3 - 1)
        speed = fault_of(device.id, device.index, faults).speed
        found[device.id] = ValidationReading(rates={"simulated": 100 * own * speed})
    return found


if __name__ == "__main__":
    sys.exit(main())
