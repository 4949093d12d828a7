"""The form for the job that was probed, with the settings that its probe has found the fastest."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pydantic import JsonValue

from ...client.probe_job import ADVICE_FILE, probed_job, probed_notebook
from ...client.probe_result import MOST_BYTES, ProbeResult
from ...errors import CarrelError
from ...forecasts.advice import limit_above
from ...messages import units
from ...records.identity import Identity
from ...schemas import JobIn, RequestOut
from ..dependencies.context import WebContext

_VARIES = 1.6
"""A run is expected to take at most so many times what a probe predicts."""


def found_advice(web: WebContext, who: Identity, request: RequestOut) -> ProbeResult | None:
    """Return what a probe job has found; None for other jobs, and without a usable result."""
    if not probed_notebook(request.labels, request.notebook) or request.state != "succeeded":
        return None
    try:
        with web.requests.open_file(who, request.id, ADVICE_FILE) as file:
            return ProbeResult.from_json(file.read(MOST_BYTES))
    except CarrelError:
        return None


def advised_job(web: WebContext, who: Identity, request_id: str) -> JobIn:
    """Return the job that was probed, as the probe advises it.

    Raises:
        NotFound: the job does not exist, or its files are deleted.
        InvalidInput: it is no probe job, or was changed.
    """
    job = probed_job(web.jobs.same_job(who, request_id))
    found = found_advice(web, who, web.requests.request(who, request_id))
    if found is None:
        return job
    seconds = job.seconds
    if found.run_seconds:
        # The notebook may have more loops than the one whose progress was measured.
        seconds = max(seconds, limit_above(found.run_seconds * _VARIES))
    parameters = {**job.parameters, **found.parameters}
    return job.model_copy(update={"parameters": parameters, "seconds": seconds})


def advice_notes(web: WebContext, who: Identity, request_id: str) -> Iterator[str]:
    """Yield what the form has taken over from a probe, as sentences.

    Raises:
        NotFound: the job does not exist, or the user may not see it.
    """
    found = found_advice(web, who, web.requests.request(who, request_id))
    if found is None:
        yield f"{request_id} has found no advice: the settings are those that it was to examine."
        return
    if found.parameters:
        values = ", ".join(f"{name} = {_text(value)}" for name, value in found.parameters.items())
        yield f"By the advice of {request_id}: {values}."
    if found.run_seconds:
        limit = limit_above(found.run_seconds * _VARIES)
        yield (
            f"The run is predicted to take about {units.about(found.run_seconds)}, by its first "
            f"progress loop: a time limit of {units.duration(limit)} is above that. The form "
            "keeps the job's own limit if that is longer."
        )
    yield from (each for each in found.sentences if "changes what is learned" in each)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value)
