"""Sentences about signs that something is wrong with a job: what was measured, and what may help.

A sign is a suggestion. Times are left to pages and terminals, which know the zone of the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ..records.json_value import Json
from ..records.leases import JobSign, SignKind
from .units import count, duration, number_text, size

TITLES: Mapping[SignKind, str] = MappingProxyType(
    {
        SignKind.LOSS_NOT_FINITE: "Loss not finite",
        SignKind.LOSS_RISING: "Loss rises",
        SignKind.LOSS_STALLED: "Loss stalled",
        SignKind.MEMORY_GROWTH: "Memory grows",
        SignKind.DEVICE_MEMORY_GROWTH: "Device memory grows",
        SignKind.DEVICES_UNUSED: "Devices not used",
        SignKind.DEVICES_IDLE: "Devices idle",
        SignKind.STARVED_LOADER: "Devices wait for data",
        SignKind.CONSTANT_LOAD: "No output",
        SignKind.CPU_CONTENTION: "Waits for cores",
        SignKind.CPU_LIMITED: "CPU limit reached",
    }
)
SUGGESTIONS: Mapping[SignKind, str] = MappingProxyType(
    {
        SignKind.LOSS_NOT_FINITE: "A smaller learning rate, clipped gradients, or a check of the "
        "data for missing values may help.",
        SignKind.LOSS_RISING: "A smaller learning rate may help; a loss on validation data that "
        "rises is a sign of overfitting.",
        SignKind.LOSS_STALLED: "It may have converged: then the job can end early.",
        SignKind.MEMORY_GROWTH: "Lists that collect tensors or results in a loop are a common "
        "cause; `.detach()` or `.item()` release what they hold.",
        SignKind.DEVICE_MEMORY_GROWTH: "A sum of losses that keeps its graph is a common cause; "
        "add `loss.item()` instead.",
        SignKind.DEVICES_UNUSED: "If the job does not need devices, submit it without them; "
        "otherwise check that the model and its data are moved to the device.",
        SignKind.DEVICES_IDLE: "If the rest of the job needs no devices, split it: a second job "
        "with --after runs without them.",
        SignKind.STARVED_LOADER: "More workers of the data loader, or data that is prepared once, "
        "may help.",
        SignKind.CONSTANT_LOAD: "If this is intended, carrel.progress() or carrel.report() shows "
        "that the job gets on.",
        SignKind.CPU_CONTENTION: "Other work on the node has the cores. A later run, or another "
        "node, may be faster.",
        SignKind.CPU_LIMITED: "Fewer threads, or fewer workers of the data loader, waste less.",
    }
)


def sentence(sign: JobSign) -> str:
    """Return what was found, in one sentence or two."""
    return _SENTENCES[sign.kind](sign.figures)


def _not_finite(figures: Mapping[str, Json]) -> str:
    return f"The {_metric(figures)} has been {figures.get('value')} since step {_step(figures)}."


def _rising(figures: Mapping[str, Json]) -> str:
    return (
        f"The {_metric(figures)} has risen since step {_step(figures)}: from "
        f"{number_text(_number(figures, 'best'))} to {number_text(_number(figures, 'last'))}."
    )


def _stalled(figures: Mapping[str, Json]) -> str:
    return (
        f"The {_metric(figures)} has not fallen since step {_step(figures)}: it stays at "
        f"about {number_text(_number(figures, 'last'))}."
    )


def _growing(what: str) -> Callable[[Mapping[str, Json]], str]:
    def text(figures: Mapping[str, Json]) -> str:
        rate = size(_number(figures, "bytes_per_hour"))
        now = size(_number(figures, "bytes"))
        found = f"{what} has grown by {rate} an hour, to {now} now."
        if "reached_in" not in figures:
            return found
        left = duration(_number(figures, "reached_in"))
        return f"{found} At this rate it reaches {size(_number(figures, 'limit'))} in {left}."

    return text


def _unused(figures: Mapping[str, Json]) -> str:
    held = count(int(_number(figures, "devices")), "device")
    return f"It holds {held} and has not used any for {_idle(figures)}."


def _idle_since(figures: Mapping[str, Json]) -> str:
    held = count(int(_number(figures, "devices")), "device")
    return f"It used its {held} before, and has not for {_idle(figures)}."


def _idle(figures: Mapping[str, Json]) -> str:
    found = duration(_number(figures, "idle_seconds"))
    more = []
    if held := _number(figures, "held_bytes"):
        more.append(f"{size(held)} of device memory in use at most")
    if figures.get("cores") is not None:
        more.append(f"{_number(figures, 'cores'):.1f} cores in use")
    return f"{found} ({', '.join(more)})" if more else found


def _starved(figures: Mapping[str, Json]) -> str:
    return (
        f"Its devices have been used at {_number(figures, 'percent'):.0f} % while its processes "
        f"have used {_number(figures, 'cores'):.1f} cores: they seem to wait for data."
    )


def _constant(figures: Mapping[str, Json]) -> str:
    return (
        f"Its devices have been evenly used at {_number(figures, 'percent'):.0f} %, without any "
        f"output, report, progress or file for {duration(_number(figures, 'seconds'))}."
    )


def _contention(figures: Mapping[str, Json]) -> str:
    return (
        f"Its threads have waited for a core in {_number(figures, 'part'):.0%} of the time in "
        f"which they could run; they have got {_number(figures, 'cores'):.1f} cores."
    )


def _limited(figures: Mapping[str, Json]) -> str:
    return (
        f"Its CPU limit has stopped it in {_number(figures, 'part'):.0%} of the time; it has got "
        f"{_number(figures, 'cores'):.1f} cores."
    )


_SENTENCES: Mapping[SignKind, Callable[[Mapping[str, Json]], str]] = MappingProxyType(
    {
        SignKind.LOSS_NOT_FINITE: _not_finite,
        SignKind.LOSS_RISING: _rising,
        SignKind.LOSS_STALLED: _stalled,
        SignKind.MEMORY_GROWTH: _growing("Its memory"),
        SignKind.DEVICE_MEMORY_GROWTH: _growing("The memory in use on its devices"),
        SignKind.DEVICES_UNUSED: _unused,
        SignKind.DEVICES_IDLE: _idle_since,
        SignKind.STARVED_LOADER: _starved,
        SignKind.CONSTANT_LOAD: _constant,
        SignKind.CPU_CONTENTION: _contention,
        SignKind.CPU_LIMITED: _limited,
    }
)


def _number(figures: Mapping[str, Json], name: str) -> float:
    found = figures.get(name)
    return float(found) if isinstance(found, int | float) else 0.0


def _metric(figures: Mapping[str, Json]) -> str:
    name = str(figures.get("name", "loss"))
    return name if name == "loss" else f"metric {name}"


def _step(figures: Mapping[str, Json]) -> str:
    return f"{int(_number(figures, 'step')):,}"
