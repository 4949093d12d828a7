"""Plans of requests with deadlines, against all orders of them."""

from __future__ import annotations

from itertools import groupby, pairwise, permutations
from operator import attrgetter

from hypothesis import given
from hypothesis import strategies as st

from .... import torch_packages
from ....property_settings import examples

torch_packages.load()

from carrel.extensions.execution.deadlines.plan import (  # noqa: E402
    TimedRequest,
    all_in_time,
    plan,
)

MODELS = {"small": 1.0, "middle": 3.0, "large": 7.0}
requests = st.lists(st.tuples(st.sampled_from(sorted(MODELS)), st.floats(0.5, 40)), max_size=6).map(
    lambda drawn: [
        TimedRequest(deadline=deadline, number=number, model=model)
        for number, (model, deadline) in enumerate(drawn)
    ]
)
SPEEDS = (1.0, 2.5)


@given(requests=requests, free_at=st.tuples(st.floats(0, 5), st.floats(0, 5)))
@examples(50, 2000)
def test_every_request_has_one_run_and_runs_of_a_worker_do_not_overlap(
    requests: list[TimedRequest], free_at: tuple[float, float]
) -> None:
    runs = plan(requests, free_at, lambda model, worker: MODELS[model] / SPEEDS[worker])
    assert sorted(run.request for run in runs) == sorted(requests)
    by_worker = attrgetter("worker")
    for worker, each in groupby(sorted(runs, key=by_worker), by_worker):
        mine = list(each)
        assert all(run.begins >= free_at[worker] for run in mine)
        assert all(first.ends <= second.begins for first, second in pairwise(mine))


@given(requests=requests)
@examples(50, 2000)
def test_on_one_worker_no_other_order_keeps_deadlines_that_the_plan_misses(
    requests: list[TimedRequest],
) -> None:
    def keeps(order: tuple[TimedRequest, ...]) -> bool:
        now = 0.0
        for request in order:
            now += MODELS[request.model]
            if now > request.deadline:
                return False
        return True

    runs = plan(requests, [0.0], lambda model, _: MODELS[model])
    assert all_in_time(runs) == any(map(keeps, permutations(requests)))
