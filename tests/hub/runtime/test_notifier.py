"""Waits for a change end when they are cancelled, in whatever moment that is."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from carrel.hub.runtime.notifier import ChangeNotifier

from ..world import World


def test_a_cancellation_in_the_moment_of_a_notification_is_not_lost() -> None:
    """``asyncio.wait_for`` of Python 3.11 returned its result and swallowed the cancellation."""

    async def scenario() -> None:
        notifier = ChangeNotifier()
        notifier.bind()
        waiting = asyncio.create_task(notifier.wait(notifier.version, 60))
        await asyncio.sleep(0)
        notifier.notify()
        await asyncio.sleep(0)  # The waiter is woken, and its task has not run yet.
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(scenario())


def test_a_wait_returns_the_new_version_or_the_old_one_after_its_time() -> None:
    async def scenario() -> None:
        notifier = ChangeNotifier()
        notifier.bind()
        assert await notifier.wait(notifier.version, 0.01) == notifier.version
        waiting = asyncio.create_task(notifier.wait(notifier.version, 60))
        await asyncio.sleep(0)
        notifier.notify()
        assert await waiting == notifier.version == 1

    asyncio.run(scenario())


def test_the_scheduling_loop_ends_when_cancelled_in_200_tries_under_load(tmp_path: Path) -> None:
    """The shutdown of the service waits for this task."""
    world = World.over(tmp_path)
    notifier, over = world.context.notifier, threading.Event()

    def notify_again_and_again() -> None:
        while not over.wait(0.0001):
            notifier.notify()

    async def scenario() -> None:
        notifier.bind()
        for number in range(200):
            cycling = asyncio.create_task(world.loop.run())
            for _ in range(number % 7):
                await asyncio.sleep(0)
            await notifier.wait(notifier.version, 1)
            cycling.cancel()
            done, _ = await asyncio.wait({cycling}, timeout=10)
            assert done, f"try {number}: the loop runs on"

    load = threading.Thread(target=notify_again_and_again)
    load.start()
    try:
        asyncio.run(scenario())
    finally:
        over.set()
        load.join()
        world.loop.close()
