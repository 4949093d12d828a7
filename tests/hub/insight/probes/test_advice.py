"""The advice of a probe: plans, and the sentences that say them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.insight.probes.advice import ProbeGoal, advise_on, batch_change, memory_for
from carrel.hub.insight.probes.settings import ProbeMeasurement, ProbeSetting, ProbeSpace

MIB = 1 << 20


def measured(devices: int, batch: int, rate: float, mebibytes: int = 0) -> ProbeMeasurement:
    return ProbeMeasurement(
        setting=ProbeSetting(batch=batch, devices=devices),
        rate=rate,
        memory_bytes=mebibytes * MIB,
        seconds=1,
    )


SPACE = ProbeSpace(
    start=ProbeSetting(batch=32, devices=1), largest=4096, devices=(1, 2), memory_limit=1000 * MIB
)
FOUND = [
    measured(1, 32, 100, 132),
    measured(1, 64, 150, 164),
    measured(1, 128, 140, 228),
    measured(2, 64, 250),
]


def test_fastest_cheapest_and_largest_are_told_apart() -> None:
    found = advise_on(SPACE, FOUND, ProbeGoal(work=150_000, deadline_seconds=700))
    assert found.fastest.setting == ProbeSetting(batch=64, devices=2)
    assert found.cheapest.setting == ProbeSetting(batch=64, devices=1)
    assert found.for_deadline == found.fastest
    assert found.sentences[:4] == (
        "Now: batch 32, 1 device: 100 samples a second, 25 min for the run.",
        "Fastest: batch 64, 2 devices: 250 samples a second, 10 min for the run, "
        "1,200 device-seconds, 2.5 times as fast.",
        "Cheapest: batch 64, 1 device: 150 samples a second, 16 min 40 s for the run, "
        "for 83% of the device-seconds of the fastest.",
        "To end within 11 min 40 s: batch 64, 2 devices: 250 samples a second, 10 min for the run, "
        "1,200 device-seconds.",
    )
    assert "Measured: 4 of 26 combinations, in 4.0 s." in found.sentences


def test_of_batches_that_are_as_fast_the_one_next_to_the_present_is_advised() -> None:
    """A batch beyond the size of the data is no faster, and changes what is learned."""
    found = [measured(1, batch, rate) for batch, rate in
             [(32, 100), (64, 190), (128, 296), (256, 300), (512, 298), (1024, 302)]]  # fmt: skip
    assert advise_on(SPACE, found, ProbeGoal()).fastest.setting.batch == 128
    present = [measured(1, batch, rate) for batch, rate in [(32, 100), (64, 101), (16, 102)]]
    said = advise_on(SPACE, present, ProbeGoal()).sentences
    assert "Nothing that was measured is clearly faster." in said
    assert not any(each.startswith("Cheapest") for each in said)


def test_the_largest_batch_is_below_the_limit() -> None:
    found = advise_on(SPACE, FOUND[:3], ProbeGoal())
    assert found.largest_batch == 879  # 980 - 100, rounded down
    assert found.checked_batch == 128
    said = "\n".join(found.sentences)
    assert "Largest batch that fits: about 879, of 1000 MiB of memory" in said
    assert "up to 128, which is far below; take it with care." in said


@pytest.mark.parametrize(
    ("largest", "said"),
    [
        (512, "Every batch up to 512 fits into 1000 MiB; batch 256 failed for another reason"),
        (4096, "take it with care; batch 256 failed for another reason than memory."),
        (200, "Every batch up to 200 fits into 1000 MiB."),
    ],
)
def test_a_batch_that_fits_into_memory_and_fails_is_named(largest: int, said: str) -> None:
    failed = [
        ProbeMeasurement(setting=ProbeSetting(batch=batch, devices=devices), problem="Failed.")
        for batch, devices in ((512, 1), (256, 1), (16, 2))
    ]
    found = advise_on(replace(SPACE, largest=largest), [*FOUND[:3], *failed], ProbeGoal())
    assert any(said in each for each in found.sentences)


def test_a_deadline_that_nothing_meets_is_said() -> None:
    found = advise_on(SPACE, FOUND, ProbeGoal(work=1e9, deadline_seconds=60))
    assert found.for_deadline is None
    assert "No measured setting ends within 1 min; the fastest comes closest." in found.sentences


def test_a_step_that_failed_is_refused_with_its_sentence() -> None:
    failed = ProbeMeasurement(setting=SPACE.start, problem="ValueError: shapes differ.")
    with pytest.raises(InvalidInput, match="shapes differ"):
        advise_on(SPACE, [failed], ProbeGoal())
    with pytest.raises(InvalidInput, match="Nothing was measured"):
        advise_on(SPACE, [], ProbeGoal())


def test_what_ran_out_of_memory_is_told_how_much_it_would_need() -> None:
    failed = ProbeMeasurement(
        setting=ProbeSetting(batch=4096, devices=1), problem="MemoryError.", out_of_memory=True
    )
    found = advise_on(SPACE, [*FOUND[:3], failed], ProbeGoal())
    needed = memory_for(FOUND, failed.setting)
    assert needed == (4196 * MIB, "32, 64, 128")
    assert (
        "batch 4,096, 1 device ran out of memory; it would need about 4.1 GiB, by the batches "
        "32, 64, 128." in found.sentences
    )


def test_another_batch_comes_with_the_rules_of_the_rate() -> None:
    text = batch_change(32, 128)
    assert "4 times fewer, larger updates" in text
    assert "by 4 for SGD" in text
    assert "by 2 for Adam" in text
    assert "4 times more, smaller updates" in batch_change(128, 32)


def test_a_missing_batch_or_limit_is_said() -> None:
    alone = ProbeMeasurement(setting=ProbeSetting(), rate=1, seconds=1)
    found = advise_on(ProbeSpace(start=ProbeSetting()), [alone], ProbeGoal())
    assert (
        "There is no batch to vary: the notebook has no parameter such as batch_size."
        in found.sentences
    )
    no_limit = ProbeSpace(start=SPACE.start)
    said = advise_on(no_limit, FOUND[:1], ProbeGoal()).sentences
    assert "The largest batch is unknown: no limit of memory can be read here." in said
