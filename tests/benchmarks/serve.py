"""``carrel serve`` under more load than it can carry, beside a server without admission.

Both answer on a Unix socket, in a process of their own, with one thread that executes one function:
it sleeps 10 ms a row, as if it waited for a device, so that other work on the machine changes it
little. The peer is tornado with an executor of one thread, in the order in which calls come. Calls
come at random times (Poisson), each with one row and a deadline. Goodput is what was answered with
200 before the deadline, by the clock of the caller; the peak is the best goodput at any load.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_unix_socket
from tornado.web import Application, RequestHandler

from carrel.extensions.model_server.application import serve
from carrel.extensions.model_server.request_queue import RequestQueue

from . import report
from .report import AtMost, Beside, Row

ROW_SECONDS = 0.01
DEADLINE = 0.5
LOADS = (0.7, 0.9, 1.1, 3.0)
"""Times what one thread can execute."""
OVERLOAD = LOADS[-1]
LEAST_PART = 0.8
"""Of the peak, the goodput under overload."""
SECONDS = 4.0  # of a load and way
ROUNDS = 3
WARM_CALLS = 5
START_SECONDS = 60.0
OK, REFUSED, UNANSWERED = 200, 429, 0
OURS, PEER = "carrel serve", "one thread without admission"


def held(rows: list[Any]) -> list[Any]:
    time.sleep(ROW_SECONDS * len(rows))
    return rows


def serve_ours(path: Path) -> None:
    queue = RequestQueue({"held": held})
    asyncio.run(serve("held", queue, path, deadline=DEADLINE, ready=lambda: None))


class PlainHandler(RequestHandler):
    def initialize(self, thread: ThreadPoolExecutor) -> None:
        self.thread = thread

    async def post(self) -> None:
        rows = json.loads(self.request.body)["rows"]
        loop = asyncio.get_running_loop()
        self.write({"results": await loop.run_in_executor(self.thread, held, rows)})


def serve_plainly(path: Path) -> None:
    async def run() -> None:
        given = {"thread": ThreadPoolExecutor(1)}
        quiet: Callable[[RequestHandler], None] = lambda _handler: None  # noqa: E731
        server = HTTPServer(
            Application([(r"/models/held", PlainHandler, given)], log_function=quiet)
        )
        server.add_socket(bind_unix_socket(str(path), mode=0o600))
        await asyncio.Event().wait()

    asyncio.run(run())


@contextmanager
def server(target: Callable[[Path], None]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="carrel-serve-") as folder:
        path = Path(folder) / "socket"
        process = multiprocessing.get_context("spawn").Process(target=target, args=(path,))
        process.start()
        try:
            yield path
        finally:
            process.kill()
            process.join()


async def call(path: Path) -> int:
    """Return the status of one call."""
    body = json.dumps({"rows": [1], "deadline": DEADLINE}).encode()
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        head = f"POST /models/held HTTP/1.1\r\nHost: held\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        return int((await reader.readline()).split()[1])
    finally:
        writer.close()


@dataclass(slots=True)
class LoadResult:
    """What calls at one load got: seconds until the answer, by status."""

    seconds: float
    answers: dict[int, list[float]] = field(default_factory=dict)
    in_time: int = 0
    """Answers before their deadline that came while there was load."""

    @property
    def goodput(self) -> float:
        """Answers before the deadline, a second."""
        return self.in_time / self.seconds

    def slowest_hundredth(self, status: int) -> float | None:
        """Return milliseconds."""
        found = sorted(self.answers.get(status, ()))
        return 1000 * found[int(0.99 * (len(found) - 1))] if found else None


async def drive(path: Path, load: float, seconds: float, draw: random.Random) -> LoadResult:
    """Call at a load for some seconds, whatever is answered; wait for late answers a while."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + START_SECONDS
    while not path.is_socket():
        assert loop.time() < ends, "the server did not start"
        await asyncio.sleep(0.02)
    for _ in range(WARM_CALLS):
        assert await call(path) == OK
    found = LoadResult(seconds)

    async def one() -> None:
        begun = loop.time()
        try:
            status = await asyncio.wait_for(call(path), 2 * DEADLINE)
        except (OSError, TimeoutError, IndexError):
            status = UNANSWERED
        ended = loop.time()
        found.answers.setdefault(status, []).append(ended - begun)
        found.in_time += status == OK and ended - begun <= DEADLINE and ended <= ends

    tasks = []
    at = loop.time()
    ends = at + seconds
    while (at := at + draw.expovariate(load / ROW_SECONDS)) < ends:
        await asyncio.sleep(at - loop.time())
        tasks.append(asyncio.create_task(one()))
    await asyncio.gather(*tasks)
    return found


def measure(seconds: float, rounds: int) -> dict[tuple[str, float], list[LoadResult]]:
    draw = random.Random(35)  # noqa: S311
    found: dict[tuple[str, float], list[LoadResult]] = {}
    for _ in range(rounds):
        for load in LOADS:
            for way, target in ((OURS, serve_ours), (PEER, serve_plainly)):
                with server(target) as path:
                    result = asyncio.run(drive(path, load, seconds, draw))
                found.setdefault((way, load), []).append(result)
                counts = {status: len(each) for status, each in sorted(result.answers.items())}
                report.note(f"{way} at {load:g}: {result.goodput:.1f} in time a second, {counts}")
    return found


def rows(found: dict[tuple[str, float], list[LoadResult]], command: str) -> list[Row]:
    def goodput(way: str, load: float) -> float:
        return report.middle([each.goodput for each in found[way, load]]) or 0.0

    def peak(way: str) -> float:
        return max(goodput(way, load) for load in LOADS)

    def fall(way: str) -> float | None:
        """Return the peak in percent of what is left under overload."""
        left = goodput(way, OVERLOAD)
        return 100 * peak(way) / left if left else None

    def slowest(way: str, status: int) -> float | None:
        each = [result.slowest_hundredth(status) for result in found[way, OVERLOAD]]
        return report.middle([one for one in each if one is not None])

    def row(name: str, ours: float | None, goal: report.Goal, unit: str) -> Row:
        return Row(name=name, ours=ours, goal=goal, unit=unit, command=command)

    return [
        row(
            "peak goodput, of that at three times the load",
            fall(OURS),
            AtMost(limit=100 / LEAST_PART),
            "%",
        ),
        row(
            "the same, beside one thread without admission",
            fall(OURS),
            Beside(peer=fall(PEER)),
            "%",
        ),
        row(
            "slowest hundredth of admitted calls at three times the load",
            slowest(OURS, OK),
            AtMost(limit=1000 * DEADLINE),
            "ms",
        ),
        row(
            "slowest hundredth of refusals (429) at three times the load",
            slowest(OURS, REFUSED),
            AtMost(limit=1000 * DEADLINE / 5),
            "ms",
        ),
        row("highest goodput, a second", peak(OURS), Beside(peer=peak(PEER)), ""),
    ]


def main(words: Sequence[str]) -> int:
    parser = report.parser("Goodput of carrel serve under overload, beside one plain thread.")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each load (4)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of all loads in turns (3)")
    options = parser.parse_args(words)
    found = measure(options.seconds, options.rounds)
    command = report.command_line("tests.benchmarks.serve", *words)
    return report.finish(rows(found, command), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
