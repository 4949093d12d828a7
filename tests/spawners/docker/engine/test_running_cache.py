"""The polls of many sessions cost an engine one call."""

from __future__ import annotations

import asyncio

import pytest

from carrel.hub.errors import Unavailable
from carrel.spawners.docker.engine.running_cache import FRESH_SECONDS, RunningContainers


class Engine:
    def __init__(self) -> None:
        self.runs = frozenset({"a", "b"})
        self.asked = 0
        self.away = False
        self.now = 100.0

    def ask(self) -> frozenset[str]:
        self.asked += 1
        if self.away:
            raise Unavailable("The Docker engine on local does not answer.")
        return self.runs

    def clock(self) -> float:
        return self.now


@pytest.fixture
def engine() -> Engine:
    return Engine()


def test_one_call_answers_all_polls_within_a_second(engine: Engine) -> None:
    async def story() -> None:
        running = RunningContainers(engine.ask, engine.clock)
        together = await asyncio.gather(*(running.has(name) for name in "abc"))
        assert together == [True, True, False]
        engine.runs = frozenset("c")
        engine.now += FRESH_SECONDS / 2
        assert await running.has("a")
        assert engine.asked == 1
        engine.now += FRESH_SECONDS
        assert not await running.has("a")
        assert await running.has("c")
        assert engine.asked == 2

    asyncio.run(story())


def test_a_cancelled_poll_does_not_cancel_the_others(engine: Engine) -> None:
    async def story() -> None:
        running = RunningContainers(engine.ask, engine.clock)
        first, second = (asyncio.create_task(running.has("a")) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert await second
        assert engine.asked == 1

    asyncio.run(story())


def test_an_engine_that_did_not_answer_is_asked_again(engine: Engine) -> None:
    async def story() -> None:
        running = RunningContainers(engine.ask, engine.clock)
        engine.away = True
        with pytest.raises(Unavailable):
            await running.has("a")
        engine.away = False
        engine.now += FRESH_SECONDS
        assert await running.has("a")

    asyncio.run(story())
