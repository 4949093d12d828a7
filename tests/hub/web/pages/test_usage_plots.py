"""Plots of utilization and waits."""

from __future__ import annotations

import pytest

from carrel.hub.schemas.usage import HistoryOut, PeriodOut
from carrel.hub.web.pages import usage_plots as usage_plots_pages


def history(*queued: float) -> HistoryOut:
    periods = [
        PeriodOut(starts_at=3600.0 * n, ends_at=3600.0 * (n + 1), leased=0.0, queued=each, waits=[])
        for n, each in enumerate(queued)
    ]
    return HistoryOut(span="day", periods=periods, waits=[])


@pytest.mark.parametrize(("queued", "top"), [((0.4, 0.0), 1.0), ((1.0,), 1.0), ((0.0, 3.2), 5.0)])
def test_a_queue_is_drawn_on_a_scale_of_whole_requests(
    queued: tuple[float, ...], top: float
) -> None:
    plot = usage_plots_pages.queue(history(*queued))
    assert plot.top == top
    assert plot.series[0].values == queued


def test_a_short_wait_is_not_drawn() -> None:
    assert usage_plots_pages.queue(history(0.0, 0.00002)).empty
