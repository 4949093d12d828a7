"""How a job scales: the fit, the recommendation, and samples that cannot be used."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carrel.hub.errors import InvalidInput
from carrel.hub.insight.step_samples import StepSample, of_one_model, samples_from_csv
from carrel.hub.insight.step_time_model import fit_step_times
from carrel.hub.insight.worker_advice import advice_sentences, advise_workers


def runs(**seconds: float) -> list[StepSample]:
    """Return runs of one job: ``n4=50.0`` took 50 s on four workers of one node."""
    return [
        StepSample(workers=workers, seconds=each, batch=1 / workers)
        for workers, each in ((int(name[1:]), value) for name, value in seconds.items())
    ]


def step(workers: int, nodes: int, batch: float) -> float:
    """Return a step of a job whose synchronisation is slower on several nodes."""
    if workers == 1:
        return 0.02 + 0.004 * batch
    synchronised = 0.03 + 0.002 * workers if nodes == 1 else 0.15 + 0.004 * workers
    return float(((0.02 + 0.004 * batch) ** 2 + synchronised**2) ** 0.5)


def test_two_steps_of_each_shape_predict_other_batches_and_shapes() -> None:
    shapes = [(1, 1), (2, 1), (4, 1), (4, 2), (8, 2), (16, 4)]
    model = fit_step_times(
        [
            StepSample(
                workers=workers, nodes=nodes, batch=batch, seconds=step(workers, nodes, batch)
            )
            for workers, nodes in shapes
            for batch in (16.0, 96.0)
        ]
    )
    for workers, nodes in [*shapes, (3, 1), (12, 3)]:
        found = model.predict(workers, nodes, 48.0)
        assert found.seconds == pytest.approx(step(workers, nodes, 48.0), rel=0.05)
        assert found.low < step(workers, nodes, 48.0) < found.high


def test_a_number_of_workers_is_recommended_with_its_price() -> None:
    advice = advise_workers(runs(n1=120, n2=70, n4=45, n8=32.5), per_node=64)
    assert advice.recommended.workers == 4
    assert advice_sentences(advice, "device") == [
        "Use 4 devices: 1.6 times faster than 2, 1.3 times the cost.",
        "8 devices: 1.4 times faster than 4, 1.5 times the cost.",
        "Measure before you use 32 devices or more: that is too far from what was measured.",
    ]


def test_a_job_that_does_not_scale_stays_on_one() -> None:
    advice = advise_workers(runs(n1=100, n2=99), per_node=8)
    assert advice_sentences(advice)[:2] == [
        "Use 1 worker.",
        "2 workers: as fast as 1, twice the cost.",
    ]


def test_past_twice_the_most_workers_measured_nothing_is_recommended() -> None:
    perfect = runs(n1=400, n2=200, n4=100)
    advice = advise_workers(perfect, per_node=64)
    assert advice.recommended.workers == 8
    assert [each.workers for each in advice.choices if each.measure_first] == [16]
    assert advice.choices[-1].step.high > 2 * advice.choices[-1].step.low


def test_several_nodes_are_not_recommended_before_they_were_measured() -> None:
    advice = advise_workers(runs(n1=400, n2=200, n4=100))
    assert advice.recommended.workers == 4
    assert [each.nodes for each in advice.choices if each.measure_first] == [2, 4]


def test_a_batch_of_one_worker_that_is_kept_is_said_to_change_the_learning() -> None:
    rows = ["workers,batch,seconds", "1,32,0.2", "2,32,0.22", "4,32,0.23"]
    kept = advise_workers(samples_from_csv(rows))
    assert kept.total_batch is None
    assert "changes what the model learns" in advice_sentences(kept)[-1]
    divided = advise_workers(samples_from_csv(rows), total_batch=64)
    assert [each.batch for each in divided.choices] == [64, 32, 16, 8, 4]
    assert "learns" not in " ".join(advice_sentences(divided))


WRONG = {
    "no samples": ([], "no samples"),
    "one sample": (["workers,seconds", "2,5"], "the same number of workers"),
    "one number of workers": (["workers,seconds", "2,5", "2,6"], "the same number of workers"),
    "not a number": (["workers,seconds", "1,nan"], "Line 2: 'nan' is not a value of seconds."),
    "negative": (["workers,seconds", "1,5", "2,-1"], "Line 3: '-1' is not a value of seconds."),
    "infinite": (["workers,seconds", "1,inf"], "'inf' is not a value of seconds"),
    "a part of a worker": (["workers,seconds", "1.5,1"], "'1.5' is not a value of workers"),
    "no worker": (["workers,seconds", "0,1"], "'0' is not a value of workers"),
    "more nodes": (["workers,nodes,seconds", "2,4,1"], "2 workers cannot be on 4 nodes"),
    "unknown column": (["workers,time", "1,1"], "Unknown columns: 'time'."),
    "missing column": (["workers", "1"], "Missing columns: seconds."),
    "twice": (["workers,seconds,seconds", "1,1,1"], "A column occurs twice."),
    "short row": (["workers,seconds", "1"], "Line 2 has more or fewer values"),
    "long row": (["workers,seconds", "1,2,3"], "Line 2 has more or fewer values"),
    "quotes": (["workers,seconds", '"1,2'], "not a CSV file"),
    "too many": (["workers,seconds", *["1,2"] * 5001], "more than 5,000 rows"),
}


@pytest.mark.parametrize("case", WRONG)
def test_samples_that_cannot_be_used_are_refused_with_the_reason(case: str) -> None:
    lines, reason = WRONG[case]
    with pytest.raises(InvalidInput) as refused:
        advise_workers(samples_from_csv(lines) if lines else [])
    assert reason in str(refused.value)


def test_samples_of_several_device_models_need_a_choice() -> None:
    samples = [
        StepSample(workers=1, seconds=1.0, batch=1.0, model=model) for model in ("A100", "H100")
    ]
    with pytest.raises(InvalidInput, match="several device models: A100, H100"):
        of_one_model(samples)
    with pytest.raises(InvalidInput, match="No sample is of the device model T4"):
        of_one_model(samples, "T4")
    assert of_one_model(samples, "H100") == samples[1:]


@settings(max_examples=20)
@given(
    st.lists(
        st.builds(
            StepSample,
            workers=st.integers(1, 100_000),
            seconds=st.floats(1e-9, 3e7),
            batch=st.floats(1e-9, 1e12),
            nodes=st.just(1),
        ),
        min_size=2,
        max_size=6,
        unique_by=lambda each: each.workers,
    )
)
def test_any_positive_samples_lead_to_finite_advice(samples: list[StepSample]) -> None:
    advice = advise_workers(samples)
    assert not advice.recommended.measure_first
    for each in advice.choices:
        assert 0 < each.step.low <= each.step.seconds <= each.step.high < float("inf")
