"""Many servers at once: only a few start at a time, and the others keep their lease."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from carrel.spawners.sessions.start_queue import StartQueue

from ...fake_service import FakeService, eventually
from ..hub_process import HubProcess, kill_lease

ONE_AT_A_TIME = "c.LeaseMixin.launches_at_once = 1\n"
HELD_UP = """
import pathlib, runpy, time
while not pathlib.Path("../../go").exists():
    time.sleep(0.02)
runpy.run_module("jupyterhub.tests.mocksu", run_name="__main__")
"""


class Line:
    """Tasks that each take a slot of the start queue, and hold it until they are released."""

    def __init__(self, limit: int) -> None:
        self.queue, self.limit = StartQueue(), limit
        self.began: list[str] = []
        self.positions: dict[str, list[int]] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.let_go: dict[str, asyncio.Event] = {}

    async def come(self, *names: str, holds_device: bool = False) -> None:
        for name in names:
            self.let_go[name] = asyncio.Event()
            report = self.positions.setdefault(name, []).append
            slot = self.queue.slot(self.limit, report, holds_device=holds_device)
            self.tasks[name] = asyncio.create_task(self._hold(name, slot))
        await settled()

    async def _hold(self, name: str, slot: AbstractAsyncContextManager[None]) -> None:
        async with slot:
            self.began.append(name)
            await self.let_go[name].wait()

    async def end(self, name: str, how: Callable[[Line, str], object]) -> None:
        how(self, name)
        await settled()


def leave(line: Line, name: str) -> None:
    line.let_go[name].set()


def cancel(line: Line, name: str) -> None:
    line.tasks[name].cancel()


async def settled() -> None:
    """Wait until no task can continue."""
    for _ in range(10):
        await asyncio.sleep(0)


def state_of(service: FakeService, owner: str) -> str:
    found = [each["state"] for each in service.requests.values() if each["owner"] == owner]
    return found[0] if found else "none"


def test_a_limited_number_start_at_once_and_the_others_in_order() -> None:
    async def story() -> None:
        line = Line(2)
        await line.come("a", "b", "c", "d")
        assert line.began == ["a", "b"]
        await line.end("b", leave)
        assert line.began == ["a", "b", "c"]
        await line.end("a", leave)
        await line.end("c", leave)
        await line.end("d", leave)
        await line.come("e", "f", "g")
        assert line.began == ["a", "b", "c", "d", "e", "f"]
        assert line.positions == {
            "a": [],
            "b": [],
            "c": [1, 1],
            "d": [2, 1],
            "e": [],
            "f": [],
            "g": [1],
        }

    asyncio.run(story())


def test_a_start_with_a_device_goes_before_those_without() -> None:
    async def story() -> None:
        line = Line(1)
        await line.come("first", "cpu", "cpu 2")
        await line.come("gpu", "gpu 2", holds_device=True)
        for name in ("first", "gpu", "gpu 2", "cpu"):
            await line.end(name, leave)
        assert line.began == ["first", "gpu", "gpu 2", "cpu", "cpu 2"]
        assert line.positions["cpu 2"] == [2, 3, 4, 3, 2, 1]

    asyncio.run(story())


def test_a_cancelled_start_leaves_the_queue_or_its_slot() -> None:
    async def story() -> None:
        line = Line(1)
        await line.come("a", "b", "c", "d")
        await line.end("b", cancel)  # while it is queued
        await line.end("a", cancel)  # while it has a slot
        assert line.began == ["a", "c"]
        # The slot and the cancellation come at the same time.
        leave(line, "c")
        line.let_go["c"].set()
        line.tasks["d"].cancel()
        await line.come("e")
        assert line.began == ["a", "c", "e"]

    asyncio.run(story())


def test_a_start_in_the_start_queue_keeps_its_lease_and_says_so(tmp_path: Path) -> None:
    """The service knows that a spawner attends to both; otherwise it would call the hub again, or
    count a start as failed."""
    with FakeService() as service:
        service.free = 2
        hub = HubProcess(tmp_path, service, cmd=[sys.executable, "-c", HELD_UP], more=ONE_AT_A_TIME)
        try:
            for user in ("first", "second"):
                hub.add_user(user)
                assert hub.spawn(user).status_code == 202
                service.wait_for(lambda user=user: state_of(service, user) != "none")
            service.wait_for(lambda: state_of(service, "first") == "running")
            before = dict(service.beats)
            eventually(
                lambda: all(service.beats[i] > 2 + before.get(i, 0) for i in service.requests)
            )
            said = next(each for each in hub.progress("second") if each["progress"] > 10)
            assert "yours is number 1 in the start queue" in said["message"]
            assert state_of(service, "second") == "granted"
            (tmp_path / "go").touch()
            eventually(lambda: hub.ready("first") and hub.ready("second"))
        finally:
            hub.stop()
            for request in service.requests.values():
                kill_lease(request["lease"]["id"])
