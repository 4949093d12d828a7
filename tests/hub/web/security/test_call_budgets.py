"""Token buckets of calls, with a clock that stands until it is told to go."""

from __future__ import annotations

import asyncio

import pytest

from carrel.hub.config.settings import CALLS_PER_SECOND, Settings
from carrel.hub.interfaces.clock import Instant
from carrel.hub.web.security.call_budgets import (
    ADDRESS,
    BURST_SECONDS,
    CALL_SECONDS,
    CallBudgets,
    CallQueues,
    ProcessorShares,
    retry_after,
)

RATE = 4.0
BURST = int(RATE * BURST_SECONDS)


class StandingClock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> Instant:
        return Instant(self.seconds)


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def budgets(clock: StandingClock) -> CallBudgets:
    return CallBudgets(RATE, clock)


def admitted(budgets: CallBudgets, account: str, calls: int) -> int:
    return sum(budgets.admit(account) == 0 for _ in range(calls))


def test_a_full_bucket_admits_a_burst_and_then_says_when_the_next_call_may_come(
    budgets: CallBudgets, clock: StandingClock
) -> None:
    assert admitted(budgets, "user ada", 2 * BURST) == BURST
    assert budgets.admit("user ada") == pytest.approx(1 / RATE)
    clock.seconds += 0.2
    assert budgets.admit("user ada") == pytest.approx(0.05)
    clock.seconds += 0.05
    assert budgets.admit("user ada") == 0


def test_a_refused_call_costs_nothing(budgets: CallBudgets, clock: StandingClock) -> None:
    assert admitted(budgets, "user ada", 1000) == BURST
    clock.seconds += 3.0
    assert admitted(budgets, "user ada", 1000) == 3 * RATE


def test_a_bucket_holds_no_more_than_a_burst(budgets: CallBudgets, clock: StandingClock) -> None:
    assert admitted(budgets, "user ada", BURST) == BURST
    clock.seconds += 86400.0
    assert admitted(budgets, "user ada", 1000) == BURST


def test_each_user_has_a_bucket(budgets: CallBudgets) -> None:
    assert admitted(budgets, "user ada", 1000) == BURST
    assert admitted(budgets, "user ben", 1000) == BURST


def test_an_address_may_be_that_of_a_whole_class(budgets: CallBudgets) -> None:
    assert admitted(budgets, f"{ADDRESS}192.0.2.1", 1000) == 5 * BURST


def test_a_call_that_takes_long_counts_as_several(
    budgets: CallBudgets, clock: StandingClock
) -> None:
    budgets.admit("user ada")
    budgets.charge("user ada", (BURST + 3) * CALL_SECONDS)
    assert budgets.admit("user ada") == pytest.approx(4 / RATE), "three tokens in debt"
    clock.seconds += 4 / RATE
    assert budgets.admit("user ada") == 0
    budgets.charge("user ada", CALL_SECONDS / 2)
    clock.seconds += 1 / RATE
    assert budgets.admit("user ada") == 0, "its token has paid for a short one"


def test_one_call_cannot_shut_its_user_out_for_long(budgets: CallBudgets) -> None:
    budgets.admit("user ada")
    budgets.charge("user ada", 3600.0)
    assert budgets.admit("user ada") < 5 * BURST_SECONDS


def test_a_rate_of_zero_is_no_limit(clock: StandingClock) -> None:
    budgets = CallBudgets(0.0, clock)
    assert admitted(budgets, "user ada", 10_000) == 10_000
    budgets.charge("user ada", 3600.0)
    assert budgets.admit("user ada") == 0


def test_only_the_newest_callers_are_remembered(budgets: CallBudgets) -> None:
    assert admitted(budgets, "user ada", 1000) == BURST
    for number in range(9_999):
        budgets.admit(f"{ADDRESS}{number}")
    assert budgets.admit("user ada") > 0
    for number in range(10_000):
        budgets.admit(f"{ADDRESS}{number}")
    assert budgets.admit("user ada") == 0, "forgotten: memory is bounded"


def test_the_default_lets_an_open_page_a_poller_and_a_sweep_pass() -> None:
    """A desk that is read again every second, a poller at 10 Hz, and 100 jobs at once."""
    assert Settings().calls_per_second == CALLS_PER_SECOND
    clock = StandingClock()
    budgets = CallBudgets(CALLS_PER_SECOND, clock)
    assert admitted(budgets, "user ada", 100) == 100
    for _ in range(600):
        for _ in range(11):
            assert budgets.admit("user ada") == 0
        budgets.charge("user ada", 0.03)
        clock.seconds += 1.0


def test_the_calls_in_progress_share_the_processor_time() -> None:
    used = 10.0

    def processor() -> float:
        return used

    shares = ProcessorShares(processor)
    used += 5.0  # before the first call
    one = shares.begin()
    used += 1.0
    two = shares.begin()
    used += 4.0
    assert shares.end(two) == pytest.approx(2.0)
    used += 3.0
    assert shares.end(one) == pytest.approx(1.0 + 2.0 + 3.0)


@pytest.mark.parametrize(("seconds", "header"), [(0.01, 1), (1.0, 1), (1.2, 2), (40.0, 40)])
def test_the_header_has_whole_seconds(seconds: float, header: int) -> None:
    assert retry_after(seconds) == header


def test_a_burst_of_one_user_is_worked_on_a_few_at_a_time() -> None:
    async def burst() -> list[int]:
        queues, working, most = CallQueues(at_once=2, longest=60.0), 0, list[int]()

        async def call(account: str, begun: asyncio.Event | None = None) -> None:
            nonlocal working
            async with queues.turn(account):
                working += 1
                most.append(working)
                if begun is not None:
                    await begun.wait()
                await asyncio.sleep(0)
                working -= 1

        await asyncio.gather(*(call("user ada") for _ in range(12)))
        alone, begun = max(most), asyncio.Event()
        held = [asyncio.ensure_future(call("user ada", begun)) for _ in range(12)]
        await asyncio.sleep(0)
        await call("user ben")
        other = working
        begun.set()
        await asyncio.gather(*held)
        return [alone, other, working]

    assert asyncio.run(burst()) == [2, 2, 0]


def test_a_turn_may_end_before_its_call_and_none_is_waited_for_long() -> None:
    async def calls() -> None:
        queues = CallQueues(at_once=1, longest=0.01)
        async with queues.turn("user ada") as end:
            async with queues.turn("user ada"):
                """A stuck call does not block its user."""
            end()
            end()
            patient = CallQueues(at_once=1, longest=60.0)
            async with patient.turn("user ada") as end_first:
                end_first()
                async with patient.turn("user ada"):
                    """The response of the first, such as a stream, has begun."""

    asyncio.run(calls())
