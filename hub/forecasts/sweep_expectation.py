"""What is expected of a sweep that has not ended, on the present queue, as sentences."""

from __future__ import annotations

from collections.abc import Iterator

from ..messages.units import about
from ..records.requests import RequestRecord
from ..runtime.context import Context
from ..scheduling.model.states import TERMINAL
from .advice import run_time_sentence
from .pipeline_end import expected_end
from .sweep_stages import critical_text


def sweep_expectation(context: Context, record: RequestRecord) -> Iterator[str]:
    """Yield its run time, its critical path and its end; nothing where earlier runs say nothing."""
    now = context.clock()
    forecast = context.run_times.forecast(record, now)
    if record.state in TERMINAL or forecast is None or forecast.basis is None:
        return
    yield run_time_sentence(forecast, record.seconds)
    if forecast.critical:
        yield f"Critical path: {critical_text(forecast.critical)}."
    end = expected_end(context, {record.id: record}, ())
    if end is not None:
        low, at, high = (about(max(0.0, each - now)) for each in (end.earliest, end.at, end.latest))
        yield f"On the present queue it is expected to end in about {at} ({low} to {high})."
