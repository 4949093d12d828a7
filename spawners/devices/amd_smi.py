"""Read the GPUs and partitions that AMD's management library (AMD SMI) lists; calls may hang.

The library is called by ctypes: AMD's Python package belongs to one version of it each. Names,
values and layouts are those of ``amdsmi.h`` of ROCm 7.0 (library version 26, whose major version
changes with every layout), and agree with the package amdsmi 7.0.2:
https://github.com/ROCm/amdsmi/blob/rocm-7.0.2/include/amd_smi/amdsmi.h
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from ctypes import byref, c_char, c_char_p, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Final, TypeVar

from ...hub.interfaces.devices import DriverDevice, DriverReport
from ...hub.scheduling.model.snapshot import DeviceFile, Health

LIBRARY: Final = "libamd_smi.so.26"
_FOLDERS: Final = (os.environ.get("ROCM_PATH", "/opt/rocm"), "/opt/rocm")
_DEV: Final = Path("/dev")

_AMD_GPUS: Final = 1 << 1
_VRAM: Final = 0
_SUCCESS, _TIMEOUT, _IO, _DRIVER_NOT_LOADED = 0, 8, 12, 34
_OUT_OF_RESOURCES: Final = 15
"""The list of processes is longer than the array."""
_FAULTS: Final = frozenset({_TIMEOUT, _IO})
"""Any other status of an optional reading: this GPU, driver or account does not offer it."""
_PAGE_PENDING, _PAGE_UNRESERVABLE = 1, 2
_NOT_MEASURED: Final = frozenset({0xFFFF, 0xFFFFFFFF})
_MOST_PROCESSES: Final = 1024
_MOST_PAGES: Final = 4096

T = TypeVar("T")


class _Enumeration(ctypes.Structure):
    _fields_ = (
        ("drm_render", c_uint32),
        ("drm_card", c_uint32),
        ("hsa_id", c_uint32),
        ("hip_id", c_uint32),
        ("hip_uuid", c_char * 256),
    )


class _Asic(ctypes.Structure):
    """Only the name is read; the rest has 640 bytes in version 26.0."""

    _fields_ = (("market_name", c_char * 256), ("rest", c_char * 2048))


class _Activity(ctypes.Structure):
    """In percent."""

    _fields_ = (
        ("gfx_activity", c_uint32),
        ("umc_activity", c_uint32),
        ("mm_activity", c_uint32),
        ("reserved", c_uint32 * 13),
    )


class _Engines(ctypes.Structure):
    _fields_ = (("gfx", c_uint64), ("enc", c_uint64), ("reserved", c_uint32 * 12))


class _Memory(ctypes.Structure):
    _fields_ = (
        ("gtt_mem", c_uint64),
        ("cpu_mem", c_uint64),
        ("vram_mem", c_uint64),
        ("reserved", c_uint32 * 10),
    )


class _Process(ctypes.Structure):
    _fields_ = (
        ("name", c_char * 256),
        ("pid", c_uint32),
        ("mem", c_uint64),
        ("engine_usage", _Engines),
        ("memory_usage", _Memory),
        ("container_name", c_char * 256),
        ("cu_occupancy", c_uint32),
        ("reserved", c_uint32 * 11),
    )


class _ErrorCount(ctypes.Structure):
    _fields_ = (
        ("correctable_count", c_uint64),
        ("uncorrectable_count", c_uint64),
        ("deferred_count", c_uint64),
        ("reserved", c_uint64 * 5),
    )


class _RetiredPage(ctypes.Structure):
    _fields_ = (("page_address", c_uint64), ("page_size", c_uint64), ("status", c_uint32))


class AmdSmiError(Exception):
    """A call of the library failed; the text is the library's."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def report(*, library: str = "", dev: Path = _DEV) -> DriverReport:
    """Return what the driver lists.

    Args:
        library: path of the library; empty: where it is installed.
        dev: folder of device files.

    Raises:
        AmdSmiError: the library or the driver fails.
    """
    loaded = _load(library)
    if loaded is None:
        return DriverReport(reason=_why_not_loaded(), installed=False)
    smi = _Library(loaded)
    try:
        smi.call("amdsmi_init", c_uint64(_AMD_GPUS))
    except AmdSmiError as error:
        if error.status != _DRIVER_NOT_LOADED:
            raise
        return DriverReport(reason="The AMD driver is not loaded.", installed=False)
    devices: dict[str, DriverDevice] = {}
    reasons: list[str] = []
    for index, gpu in enumerate(_gpus(smi)):
        try:
            found = _describe(smi, gpu, index, dev)
        except AmdSmiError as error:
            reasons.append(f"AMD GPU {index} has no UUID that can be read: {error}.")
            continue
        if found is None:
            reasons.append(f"AMD GPU {index} has no UUID.")
        elif found.id in devices:
            reasons.append(f"AMD GPU {index} has the UUID of AMD GPU {devices[found.id].index}.")
        else:
            devices[found.id] = found
    return DriverReport(devices=tuple(devices.values()), reason=" ".join(reasons))


def _load(library: str) -> ctypes.CDLL | None:
    for name in [library] if library else [LIBRARY, *(f"{f}/lib/{LIBRARY}" for f in _FOLDERS)]:
        with suppress(OSError):
            return ctypes.CDLL(name)
    return None


def _why_not_loaded() -> str:
    for folder in _FOLDERS:
        other = Path(folder, "lib", "libamd_smi.so")
        if other.exists():
            return f"{other} is not version 26, which ROCm 7 has."
    return "The AMD driver's management library (AMD SMI) is not installed."


class _Library:
    """The library, whose status codes become exceptions."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def call(self, name: str, *arguments: object) -> None:
        """Call a function. Raises AmdSmiError unless it returns success."""
        try:
            function = getattr(self._library, name)
        except AttributeError:
            raise AmdSmiError(-1, f"{name} is missing in the library") from None
        function.restype = c_uint32
        status = function(*arguments)
        if status != _SUCCESS:
            raise AmdSmiError(status, self._text(status))

    def _text(self, status: int) -> str:
        text = c_char_p()
        function = self._library.amdsmi_status_code_to_string
        function.restype = c_uint32
        function(c_uint32(status), byref(text))
        return (text.value or b"").decode(errors="replace").rstrip(".") or f"status {status}"


def _gpus(smi: _Library) -> Iterator[c_void_p]:
    """Yield the handles of all GPUs; a partitioned one has a handle for each partition."""
    for socket in _handles(smi, "amdsmi_get_socket_handles"):
        yield from _handles(smi, "amdsmi_get_processor_handles", socket)


def _handles(smi: _Library, name: str, *arguments: c_void_p) -> list[c_void_p]:
    count = c_uint32(0)
    smi.call(name, *arguments, byref(count), None)
    handles = (c_void_p * count.value)()
    smi.call(name, *arguments, byref(count), handles)
    return [c_void_p(handle) for handle in handles[: count.value]]


def _describe(smi: _Library, gpu: c_void_p, index: int, dev: Path) -> DriverDevice | None:
    """Describe a device; None without a UUID, which is all that is required.

    The id is the name by which the ROCm runtime selects a device: ``GPU-`` and the serial number of
    the chip, which GPUs before 2018 do not have.
    """
    places = _Enumeration()
    smi.call("amdsmi_get_gpu_enumeration_info", gpu, byref(places))
    identity = places.hip_uuid.decode(errors="replace")
    if not identity.removeprefix("GPU-").strip("0"):
        return None
    health, why = Health.OK, ""
    total, used, activity, model = 0, 0, None, ""
    pids: tuple[int, ...] = ()
    try:
        health, why = _health(smi, gpu)
        model = _optional(lambda: _market_name(smi, gpu)) or ""
        total = _optional(lambda: _number(smi, "amdsmi_get_gpu_memory_total", gpu)) or 0
        used = _optional(lambda: _number(smi, "amdsmi_get_gpu_memory_usage", gpu)) or 0
        activity = _optional(lambda: _activity(smi, gpu))
        pids = _optional(lambda: _pids(smi, gpu)) or ()
    except AmdSmiError as error:
        if health is Health.OK:
            health, why = Health.SICK, f"The driver reports: {error}."
    return DriverDevice(
        id=identity,
        index=index,
        model=model if model.startswith("AMD") else f"AMD {model or 'GPU'}",
        memory_bytes=total,
        health=health,
        why=why,
        pids=pids,
        utilization=activity,
        used_bytes=used,
        files=_files(dev, places.drm_render),
    )


def _files(dev: Path, render: int) -> tuple[DeviceFile, ...]:
    """Return the compute interface, which all GPUs share, and the device's own render node."""
    paths = (dev / "kfd", dev / "dri" / f"renderD{render}")
    try:
        return tuple(DeviceFile(path=str(path), group=path.stat().st_gid) for path in paths)
    except OSError:  # no compute driver: the device cannot be given to a container
        return ()


def _market_name(smi: _Library, gpu: c_void_p) -> str:
    asic = _Asic()
    smi.call("amdsmi_get_gpu_asic_info", gpu, byref(asic))
    return str(asic.market_name.decode(errors="replace").strip())


def _number(smi: _Library, name: str, gpu: c_void_p) -> int:
    value = c_uint64(0)
    smi.call(name, gpu, c_uint32(_VRAM), byref(value))
    return value.value


def _activity(smi: _Library, gpu: c_void_p) -> int | None:
    activity = _Activity()
    smi.call("amdsmi_get_gpu_activity", gpu, byref(activity))
    percent = int(activity.gfx_activity)
    return None if percent in _NOT_MEASURED else percent


def _pids(smi: _Library, gpu: c_void_p) -> tuple[int, ...]:
    count = c_uint32(_MOST_PROCESSES)
    processes = (_Process * _MOST_PROCESSES)()
    try:
        smi.call("amdsmi_get_gpu_process_list", gpu, byref(count), processes)
    except AmdSmiError as error:
        if error.status != _OUT_OF_RESOURCES:
            raise
    listed = processes[: min(count.value, _MOST_PROCESSES)]
    return tuple(sorted({int(process.pid) for process in listed}))


def _health(smi: _Library, gpu: c_void_p) -> tuple[Health, str]:
    """Return what the GPU reports about its health; readings that it does not offer are skipped."""
    pages = _optional(lambda: _page_states(smi, gpu)) or frozenset()
    if _PAGE_UNRESERVABLE in pages:
        return Health.SICK, "A defective memory page cannot be retired."
    if _PAGE_PENDING in pages:
        return Health.SICK, "Retirement of memory pages is pending: the device needs a reset."
    count = _optional(lambda: _uncorrected(smi, gpu))
    if count:
        return Health.SICK, f"{count} uncorrected memory errors since the driver was loaded."
    return Health.OK, ""


def _page_states(smi: _Library, gpu: c_void_p) -> frozenset[int]:
    count = c_uint32(0)
    smi.call("amdsmi_get_gpu_bad_page_info", gpu, byref(count), None)
    if not count.value:
        return frozenset()
    count = c_uint32(min(count.value, _MOST_PAGES))
    pages = (_RetiredPage * count.value)()
    smi.call("amdsmi_get_gpu_bad_page_info", gpu, byref(count), pages)
    return frozenset(int(page.status) for page in pages[: count.value])


def _uncorrected(smi: _Library, gpu: c_void_p) -> int:
    errors = _ErrorCount()
    smi.call("amdsmi_get_gpu_total_ecc_count", gpu, byref(errors))
    return int(errors.uncorrectable_count)


def _optional(query: Callable[[], T]) -> T | None:
    try:
        return query()
    except AmdSmiError as error:
        if error.status in _FAULTS:
            raise
        return None
