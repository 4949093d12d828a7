"""Find a loss that is not finite, rises above its beginning, or no longer falls."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Final

from ...records.json_value import Json
from ...records.leases import SignKind
from .findings import JobHistory, MetricSeries, SignFinding, median, noise_of

_LOSS: Final = re.compile(
    r"(?:^|[^a-z])(?:loss|losses|nll|cost|perplexity|ppl|mse|rmse|mae)(?:[^a-z]|$)"
)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_IN_A_ROW: Final = 3
"""Values that are not finite, so that one skipped step is no sign."""
_BLOCKS: Final = 20
_FEWEST: Final = 100
"""Reports with which a trend can be told from noise."""
_STALL_SECONDS: Final = 1800.0
_STEPS_OF_NOISE: Final = 4.0
_LARGEST: Final = 1e150
"""Trends of larger values are not computed: their sums may not be finite."""


def is_loss(name: str) -> bool:
    """Whether smaller values of a metric are better, by its name: ``train_loss``, ``valLoss``."""
    return _LOSS.search(_CAMEL.sub("_", name).lower()) is not None


def loss_signs(history: JobHistory) -> Iterator[SignFinding]:
    """Yield at most one sign for each loss."""
    for name, series in history.metrics.items():
        if not is_loss(name) or not series.values:
            continue
        found = _not_finite(name, series)
        if found is None:
            found = _trend(name, series)
        if found is not None:
            yield found


def _not_finite(name: str, series: MetricSeries) -> SignFinding | None:
    count = 0
    for value in reversed(series.values):
        if math.isfinite(value):
            break
        count += 1
    if count < _IN_A_ROW:
        return None
    first = len(series.values) - count
    value = series.values[first]
    shown = "NaN" if math.isnan(value) else "infinite"
    return SignFinding(
        kind=SignKind.LOSS_NOT_FINITE,
        since=series.times[first],
        figures={"name": name, "value": shown, "step": series.steps[first]},
    )


def _trend(name: str, series: MetricSeries) -> SignFinding | None:
    kept = [at for at, value in enumerate(series.values) if math.isfinite(value)]
    if len(kept) < _FEWEST:
        return None
    values = [series.values[at] for at in kept]
    blocks = _medians(values)
    if max(map(abs, values)) > _LARGEST:
        return None
    size = len(values) / _BLOCKS
    error = 1.2533 * noise_of(values[len(values) // 2 :]) / math.sqrt(size)
    base, level = blocks[0], min(blocks[-3:])
    best = min(range(_BLOCKS), key=blocks.__getitem__)
    margin = max(_STEPS_OF_NOISE * error, 0.1 * abs(base))
    fallen = blocks[best] < base - margin
    start = kept[min(len(kept) - 1, int((best + 1) * size))]
    figures: dict[str, Json] = {
        "name": name,
        "step": series.steps[start],
        "best": blocks[best],
        "last": blocks[-1],
    }
    since = series.times[start]
    if best < _BLOCKS - 3 and (level > base + margin or (fallen and level >= base)):
        return SignFinding(kind=SignKind.LOSS_RISING, since=since, figures=figures)
    half = kept[len(kept) // 2]
    if series.times[-1] - series.times[half] < _STALL_SECONDS:
        return None
    if not _falls(blocks, error):
        middle: dict[str, Json] = {**figures, "step": series.steps[half], "best": min(blocks)}
        return SignFinding(kind=SignKind.LOSS_STALLED, since=series.times[half], figures=middle)
    return None


def _falls(blocks: Sequence[float], error: float) -> bool:
    """Whether the second half of the blocks improves on the first, or still falls in itself."""
    early, late = blocks[: _BLOCKS // 2], blocks[_BLOCKS // 2 :]
    whole = blocks[0] - min(blocks)
    if min(early) - min(late) > max(2.5 * error, 0.01 * whole):
        return True
    # A least-squares line through the later blocks, whose noise is known.
    middle = (len(late) - 1) / 2
    weights = [at - middle for at in range(len(late))]
    square = sum(weight**2 for weight in weights)
    slope = sum(weight * value for weight, value in zip(weights, late, strict=True)) / square
    return -slope > max(1.5 * error / math.sqrt(square), 0.001 * whole)


def _medians(values: Sequence[float]) -> list[float]:
    count = len(values)
    return [
        median(values[count * part // _BLOCKS : count * (part + 1) // _BLOCKS])
        for part in range(_BLOCKS)
    ]
