"""Read the GPUs and MIG instances that NVIDIA's management library (NVML) lists; calls may hang."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeAlias, TypeVar

import pynvml

from ...hub.interfaces.devices import DeviceSignals, DriverDevice, DriverReport, ThrottleReason
from ...hub.scheduling.model.devices import Health
from . import kernel_log
from .kernel_log import LoggedXid

T = TypeVar("T")
Unit: TypeAlias = object
"""NVML's own handle of a GPU or of a MIG instance."""

_MOST_XIDS: Final = 50
_THROTTLE_BITS: Final = (
    (pynvml.nvmlClocksThrottleReasonHwThermalSlowdown, ThrottleReason.HARDWARE_THERMAL),
    (pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown, ThrottleReason.POWER_BRAKE),
    (pynvml.nvmlClocksThrottleReasonHwSlowdown, ThrottleReason.HARDWARE),
    (pynvml.nvmlClocksThrottleReasonSwThermalSlowdown, ThrottleReason.THERMAL),
    (pynvml.nvmlClocksThrottleReasonSwPowerCap, ThrottleReason.POWER_CAP),
    (pynvml.nvmlClocksThrottleReasonApplicationsClocksSetting, ThrottleReason.CHOSEN),
)


def report() -> DriverReport:
    """Return what the driver lists. Raises NVMLError if it fails."""
    absent = {
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "The NVIDIA driver is not installed.",
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "The NVIDIA driver is not loaded.",
    }
    try:
        pynvml.nvmlInit()
        units, reasons = _list_units()
    except pynvml.NVMLError as error:
        if error.value in absent:
            return DriverReport(reason=absent[error.value], installed=False)
        raise
    return DriverReport(devices=tuple(units), reason=" ".join(reasons))


def _list_units() -> tuple[list[DriverDevice], list[str]]:
    """List every GPU that can be opened; a GPU in MIG mode is listed as its instances."""
    units: list[DriverDevice] = []
    reasons: list[str] = []
    position = 0
    xids = kernel_log.logged_xids()
    for number in range(pynvml.nvmlDeviceGetCount()):
        try:
            gpu = pynvml.nvmlDeviceGetHandleByIndex(number)
            parts = list(_mig_instances(gpu)) if _has_mig(gpu) else [gpu]
        except pynvml.NVMLError as error:
            # Without a handle there is no UUID: the GPU is reported, but cannot be listed.
            reasons.append(f"NVIDIA GPU {number} cannot be opened: {error}.")
            position += 1
            continue
        if not parts:
            reasons.append(f"NVIDIA GPU {number} is in MIG mode and has no instances.")
        health, why = _health(gpu)
        signals = _signals(gpu, xids)
        for part in parts:
            try:
                units.append(replace(_describe(part, position, health, why), signals=signals))
            except pynvml.NVMLError as error:
                reasons.append(f"NVIDIA GPU {number} has no UUID that can be read: {error}.")
            position += 1
    return units, reasons


def _describe(unit: Unit, index: int, health: Health, why: str) -> DriverDevice:
    """Describe a device; only its UUID is required.

    A reading that the driver does not offer is not a fault: integrated GPUs have no memory of their
    own, and several readings are missing for MIG instances and without permission.
    """
    identity = pynvml.nvmlDeviceGetUUID(unit)
    model, memory, used = "NVIDIA GPU", 0, 0
    pids: tuple[int, ...] = ()
    samples: list[int] = []
    try:
        model = _if_supported(lambda: pynvml.nvmlDeviceGetName(unit)) or model
        sizes = _if_supported(lambda: pynvml.nvmlDeviceGetMemoryInfo(unit))
        if sizes is not None:
            memory, used = sizes.total, sizes.used
        pids = _if_supported(lambda: _pids(unit)) or ()
        samples = _utilization(unit)
    except pynvml.NVMLError as error:
        if health is Health.OK:
            health, why = _from_error(error)
    return DriverDevice(
        id=identity,
        index=index,
        model=model,
        memory_bytes=memory,
        health=health,
        why=why,
        pids=pids,
        utilization=max(samples, default=None),
        mean_utilization=sum(samples) / len(samples) if samples else None,
        used_bytes=used,
    )


def _has_mig(gpu: Unit) -> bool:
    mode = _if_supported(lambda: pynvml.nvmlDeviceGetMigMode(gpu)[0])
    return bool(mode == pynvml.NVML_DEVICE_MIG_ENABLE)


def _mig_instances(gpu: Unit) -> Iterator[Unit]:
    for slot in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        try:
            yield pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, slot)
        except pynvml.NVMLError_NotFound:
            continue


def _pids(unit: Unit) -> tuple[int, ...]:
    """Return the processes with a compute context; graphics processes (a desktop) do not count."""
    try:
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(unit)
    except (pynvml.NVMLError_FunctionNotFound, pynvml.NVMLLibraryMismatchError):  # before 510
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses_v2(unit)
    return tuple(sorted({process.pid for process in processes}))


def _utilization(unit: Unit) -> list[int]:
    """Return the driver's utilization samples of the last seconds, in percent."""

    found: list[int] = []
    # A failed measurement is not a fault of the device: _health() reports faults.
    with contextlib.suppress(pynvml.NVMLError):
        found.append(int(pynvml.nvmlDeviceGetUtilizationRates(unit).gpu))
    with contextlib.suppress(pynvml.NVMLError):
        _, samples = pynvml.nvmlDeviceGetSamples(unit, pynvml.NVML_GPU_UTILIZATION_SAMPLES, 0)
        found += [int(sample.sampleValue.uiVal) for sample in samples]
    return found


def _health(gpu: Unit) -> tuple[Health, str]:
    """Return what the GPU reports about its health; unsupported queries are skipped."""

    def errors() -> int:
        count: int = pynvml.nvmlDeviceGetTotalEccErrors(
            gpu, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
        )
        return count

    try:
        if _if_supported(lambda: pynvml.nvmlDeviceGetRetiredPagesPendingStatus(gpu)):
            return Health.SICK, "Retirement of memory pages is pending: the device needs a reset."
        rows = _if_supported(lambda: pynvml.nvmlDeviceGetRemappedRows(gpu))
        if rows:
            _, _, pending, failed = rows
            if failed:
                return Health.SICK, "Remapping of defective memory rows failed."
            if pending:
                return Health.SICK, "Remapping of memory rows is pending: the device needs a reset."
        count = _if_supported(errors)
        if count:
            return Health.SICK, (f"{count} uncorrected memory errors since the driver was loaded.")
    except pynvml.NVMLError as error:
        return _from_error(error)
    return Health.OK, ""


def _signals(gpu: Unit, xids: Mapping[str, tuple[LoggedXid, ...]]) -> DeviceSignals:
    """Return the readings of a GPU, which are those of all of its MIG instances.

    Args:
        xids: by PCI address, as in ``kernel_log.logged_xids``.
    """

    def corrected() -> float:
        kind = pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED
        return float(pynvml.nvmlDeviceGetTotalEccErrors(gpu, kind, pynvml.NVML_VOLATILE_ECC))

    watts = 1000.0  # NVML's unit is a milliwatt
    logged: tuple[LoggedXid, ...] = ()
    if xids:
        address = _reading(lambda: pynvml.nvmlDeviceGetPciInfo(gpu).busId)
        logged = xids.get(kernel_log.pci_address(address) if address else "", ())
    reasons = _reading(lambda: pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu))
    power = _reading(lambda: pynvml.nvmlDeviceGetPowerUsage(gpu))
    limit = _reading(lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(gpu))
    return DeviceSignals(
        clock_mhz=_reading(lambda: pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_SM)),
        throttled=None
        if reasons is None
        else tuple(str(name) for bit, name in _THROTTLE_BITS if reasons & bit),
        temperature_celsius=_reading(
            lambda: pynvml.nvmlDeviceGetTemperature(gpu, pynvml.NVML_TEMPERATURE_GPU)
        ),
        power_watts=None if power is None else power / watts,
        power_limit_watts=None if limit is None else limit / watts,
        pcie_lanes=_reading(lambda: pynvml.nvmlDeviceGetCurrPcieLinkWidth(gpu)),
        pcie_replays=_reading(lambda: pynvml.nvmlDeviceGetPcieReplayCounter(gpu)),
        corrected_errors=_reading(corrected),
        xids=tuple(error.code for error in logged if error.recent),
        logged_xids=tuple((error.number, error.code) for error in logged[-_MOST_XIDS:]),
    )


def _reading(query: Callable[[], T]) -> T | None:
    """Return a reading, or None if it fails for whatever reason: ``_health`` reports faults."""
    try:
        return query()
    except pynvml.NVMLError:
        return None


def _if_supported(query: Callable[[], T]) -> T | None:
    try:
        return query()
    except (
        pynvml.NVMLError_NotSupported,
        pynvml.NVMLError_FunctionNotFound,
        pynvml.NVMLError_NoPermission,
    ):
        return None


def _from_error(error: Exception) -> tuple[Health, str]:
    if isinstance(error, pynvml.NVMLError_GpuIsLost):
        return Health.GONE, "The device has fallen off the bus: the driver reports it as lost."
    if isinstance(error, pynvml.NVMLError_ResetRequired):
        return Health.SICK, "The device needs a reset."
    return Health.SICK, f"The driver reports: {error}."
