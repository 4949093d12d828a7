"""Plots of the use of CPU, memory and devices on the page of a request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ....messages import units
from ....messages import utilization as messages
from ....schemas import DeviceOut, UtilizationSeriesOut
from ...html.plot import Plot, Series

_GIBIBYTE, _MEBIBYTE = 1 << 30, 1 << 20
_FEWEST = 2
"""Points of a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilizationView:
    """The newest attempt with data.

    Attributes:
        epoch: of the attempt; 0 if nothing was measured.
        figures: a title, the figures of the whole attempt as a sentence, and the plot if there are
            enough points.
        note: a sentence about devices that cannot be measured.
    """

    epoch: int = 0
    figures: tuple[tuple[str, str, Plot | None], ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quantity:
    """What is drawn, and how its values are written."""

    title: str
    told: str
    values: Sequence[float | int | None]
    unit: str
    divisor: float = 1.0
    most: float = 0.0
    text: Callable[[float], str]


def utilization_view(
    attempts: Sequence[UtilizationSeriesOut], devices: Sequence[DeviceOut]
) -> UtilizationView:
    if not attempts:
        return UtilizationView()
    found = attempts[-1]
    quantities = [
        _Quantity(
            title="CPU",
            told=messages.cpu(found),
            values=found.cores,
            unit="cores",
            text=messages.cores,
        ),
        _bytes("Memory", messages.memory(found), found.memory_bytes),
    ]
    told = messages.device(found) if devices else ""
    if told:
        quantities += [
            _Quantity(
                title="Devices",
                told=told,
                values=found.device_percent,
                unit="%",
                most=100.0,
                text=lambda percent: f"{percent:.0f} %",
            ),
            _bytes("Device memory", "", found.device_bytes),
        ]
    return UtilizationView(
        epoch=found.epoch,
        figures=tuple(
            (each.title, each.told, plot)
            for each in quantities
            if (plot := _plot(each, found.seconds)) or each.told
        ),
        note="" if told else messages.not_measured(devices),
    )


def _plot(quantity: _Quantity, seconds: float) -> Plot | None:
    values = quantity.values
    known = [value for value in values if value is not None]
    if len(known) < _FEWEST:
        return None
    ends = tuple(units.duration((number + 1) * seconds) for number in range(len(values)))
    told = quantity.told or f"{quantity.text(max(known))} at most"
    return Plot(
        id=f"use-{quantity.title.lower().replace(' ', '-')}",
        title=quantity.title,
        about=f"{quantity.title} over {ends[-1]}: {told}; last {quantity.text(known[-1])}.",
        unit=quantity.unit,
        marks=ends,
        across="",  # no table is shown
        series=(
            Series(
                name=quantity.title,
                values=tuple(None if v is None else v / quantity.divisor for v in values),
                texts=(),
            ),
        ),
        shape="lines",
        most=quantity.most,
    )


def _bytes(title: str, told: str, values: Sequence[int | None]) -> _Quantity:
    most = max((value for value in values if value is not None), default=0)
    unit, divisor = ("GiB", _GIBIBYTE) if most >= _GIBIBYTE else ("MiB", _MEBIBYTE)
    return _Quantity(
        title=title, told=told, values=values, unit=unit, divisor=float(divisor), text=units.size
    )
