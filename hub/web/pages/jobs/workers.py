"""The panel of a job that shows how it gets faster with more devices."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from ....errors import InvalidInput
from ....insight.job_samples import (
    SEARCHED_NAME,
    comparable_jobs,
    devices_per_node,
    job_samples,
    model_of,
    worker_noun,
)
from ....insight.worker_advice import advice_sentences, advise_workers, choice_note
from ....requests.pagination import RequestQuery
from ....scheduling.model.states import State
from ...dependencies.callers import Carrel, RequestId
from ...dependencies.visitors import Follower, html

router = APIRouter(include_in_schema=False)


@router.get("/requests/{request_id}/workers")
def workers(web: Carrel, visitor: Follower, request_id: RequestId) -> Response:
    """Compare the newest runs of the same work by its owner, as far as the visitor may see them."""
    who = visitor.identity
    job = web.requests.request(who, request_id)
    wanted = RequestQuery(
        kind="job",
        states=frozenset({State.SUCCEEDED}),
        owner=job.owner,
        text=job.notebook[:SEARCHED_NAME],
        mine=False,
    )
    runs = comparable_jobs(job, web.requests.find(who, wanted).requests)
    pool = web.pool.pool(who, groups_of=())
    per_node = devices_per_node(pool.devices, model_of(job))
    try:
        advice = advise_workers(job_samples(runs), per_node=per_node)
    except InvalidInput as error:
        return html(web.render("jobs/workers.html", error=error))
    noun = worker_noun(runs)
    page = web.render(
        "jobs/workers.html",
        error=None,
        noun=noun,
        rows=[(each, choice_note(each, advice)) for each in advice.choices],
        sentences=advice_sentences(advice, noun),
    )
    return html(page)
