"""What one client that floods the service takes from others: ``python -m tests.benchmarks.load``.

One installation with simulated devices is brought up for it and taken down again. Its queue is
filled, and many users follow their pages over event streams through the proxy. Students open the
desk and other users call the REST API at a constant rate, while one user submits and cancels a job
every second, so that streams have news. Periods without and with a flood alternate: the clients of
one user that call without a pause, whatever the answer.
"""

from __future__ import annotations

import asyncio
import math
import shutil
import ssl
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import httpx
import psutil

from ..e2e.support import Installation, installation
from ..faults.support import STUDENTS, browser, hub
from . import filled_store, report
from .report import AtMost, NotWorseThan, Row, middle

STREAMS, QUEUED, FLOOD, PEOPLE = 300, 1600, 12, 100
SECONDS, PERIODS = 15.0, 3
OPENED_AT_ONCE, OPENED_SECONDS = 5, 180.0
DEVICES = 4
"""Each is taken by a job that sleeps."""
DESK_MS, TIMES = 300.0, 1.5
CALLERS = 12
"""Users of the REST API; each makes a call a second."""
DESK_SECONDS = 0.5
"""How often each student opens the desk."""
PATHS = ("/requests", "/pool", "/queue", "/me")
GREEDY = "greedy"
_CERTIFICATES = ssl.create_default_context()
"""Read once: each client would read them again."""


@dataclass(slots=True)
class Times:
    """Milliseconds of the calls of one kind of period."""

    desk: list[float] = field(default_factory=list)
    api: list[float] = field(default_factory=list)

    @property
    def all(self) -> list[float]:
        return [*self.desk, *self.api]


@dataclass(slots=True)
class Found:
    """One entry a period."""

    quiet: list[Times] = field(default_factory=list)
    flooded: list[Times] = field(default_factory=list)
    answers: Counter[int] = field(default_factory=Counter)
    """The status codes that the flood got."""
    messages: int = 0
    """Received over all event streams."""


def percentile(values: Sequence[float], part: float = 0.99) -> float | None:
    """The nearest rank; None where nothing was measured."""
    ordered = sorted(values)
    return ordered[math.ceil(part * len(ordered)) - 1] if ordered else None


def slowest(periods: Sequence[Times], calls: Callable[[Times], Sequence[float]]) -> float | None:
    """The 99th percentile of the middle period: what else the machine does varies."""
    found = [percentile(calls(times)) for times in periods]
    return middle([each for each in found if each is not None])


def rows(found: Found, command: str, flood: int) -> list[Row]:
    def beside(name: str, calls: Callable[[Times], Sequence[float]]) -> Row:
        goal = NotWorseThan(peer=slowest(found.quiet, calls), times=TIMES)
        ours = slowest(found.flooded, calls)
        return Row(name=name, ours=ours, goal=goal, unit="ms", command=command)

    return [
        beside(f"others' calls with a flood of {flood}, 99th percentile", lambda t: t.all),
        beside(f"desk with a flood of {flood}, 99th percentile", lambda t: t.desk),
        Row(
            name="desk without a flood, 99th percentile",
            ours=slowest(found.quiet, lambda t: t.desk),
            goal=AtMost(limit=DESK_MS),
            unit="ms",
            command=command,
        ),
    ]


# -- what is called -------------------------------------------------------------------------


@contextmanager
def prepared(people: Sequence[str], queued: int) -> Iterator[Installation]:
    """Return an installation with these users and so many queued jobs of theirs."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="carrel-load-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        site = stack.enter_context(
            installation(folder / "state", "--simulated-devices", str(DEVICES))
        )
        for method, path, body in (
            ("POST", "users", {"usernames": [*people, GREEDY]}),
            ("POST", "groups/cs101/users", {"users": [*people, GREEDY]}),
        ):
            answer = hub(site, method, path, json=body)
            assert answer.is_success, answer.text
        with browser(site, "admin") as admin:
            admin.get("/hub/home")
            for person in (*people, GREEDY):
                answer = admin.post(
                    f"/hub/api/users/{person}/tokens",
                    headers={"X-XSRFToken": admin.cookies.get("_xsrf", path="/hub/") or ""},
                    json={"note": "load"},
                )
                assert answer.is_success, answer.text
                site.tokens[person] = answer.json()["token"]
        body = {"group": "cs101", "devices": 1, "seconds": 3600, "command": ["sleep", "3600"]}
        for person in people[:DEVICES]:
            answer = site.api("POST", "/requests", user=person, json=body)
            assert answer.is_success, answer.text
            site.wait_for(answer.json()["id"], "running", user=person)
        filled_store.queue(site.state, people, range(queued))
        yield site


@dataclass(slots=True, kw_only=True)
class Load:
    """The clients of one run."""

    site: Installation
    people: Sequence[str]
    found: Found

    def client(self, user: str) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=f"{self.site.service}/api/v1",
            headers={"Authorization": f"token {self.site.token(user)}"},
            timeout=120,
            trust_env=False,
            verify=_CERTIFICATES,
            limits=httpx.Limits(max_connections=None),
        )

    async def stream(self, user: str, turn: asyncio.Semaphore, opened: Callable[[], None]) -> None:
        """Follow the page of a user; a few streams are opened at a time."""
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(self.client(user))
            async with turn:
                answer = await stack.enter_async_context(client.stream("GET", "/events"))
                assert answer.is_success, answer.status_code
                opened()
            async for line in answer.aiter_lines():
                self.found.messages += line == "event: changed"

    async def call(self, client: httpx.AsyncClient, path: str, spent: list[float]) -> None:
        began = time.perf_counter()
        answer = await client.get(path)
        spent.append(1000 * (time.perf_counter() - began))
        assert answer.is_success, (path, answer.status_code, answer.text[:500])

    async def api(self, user: str, number: int, spent: list[float]) -> None:
        async with self.client(user) as client:
            paths = cycle([*PATHS[number % len(PATHS) :], *PATHS[: number % len(PATHS)]])
            await asyncio.sleep(number / CALLERS)
            await evenly(1.0, lambda: self.call(client, next(paths), spent))

    async def desk(self, cookies: httpx.Cookies, number: int, spent: list[float]) -> None:
        async with httpx.AsyncClient(
            base_url=self.site.url,
            cookies=cookies,
            timeout=120,
            trust_env=False,
            verify=_CERTIFICATES,
        ) as client:
            await asyncio.sleep(DESK_SECONDS * number / len(STUDENTS))
            await evenly(DESK_SECONDS, lambda: self.call(client, "/services/carrel/", spent))

    async def changes(self, user: str) -> None:
        body = {"group": "cs101", "devices": 1, "command": ["true"]}
        async with self.client(user) as client:

            async def change() -> None:
                made = await client.post("/requests", json=body)
                assert made.is_success, made.text
                await client.delete(f"/requests/{made.json()['id']}")

            await evenly(1.0, change)

    async def greedy(self) -> None:
        """Call without a pause and without regard to ``Retry-After``."""
        async with self.client(GREEDY) as client:
            for path in cycle(("/requests", "/queue")):
                answer = await client.get(path)
                self.found.answers[answer.status_code] += 1


async def evenly(seconds: float, call: Callable[[], Awaitable[None]]) -> None:
    """Call at a constant rate, later calls without a pause where earlier ones took too long."""
    clock = asyncio.get_running_loop().time
    due = clock()
    while True:
        await call()
        due = max(due + seconds, clock() - seconds)
        await asyncio.sleep(max(0.0, due - clock()))


@asynccontextmanager
async def running(*work: Awaitable[None]) -> AsyncIterator[None]:
    """Run these in the background; an error of theirs is raised here."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        yield
        for task in tasks:
            if task.done():
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def measure(load: Load, options: Options, cookies: Sequence[httpx.Cookies]) -> None:
    found, people = load.found, load.people
    service = psutil.Process(load.site.pid_of("service"))
    async with AsyncExitStack() as stack:
        opened, all_open = 0, asyncio.Event()

        def one_more() -> None:
            nonlocal opened
            opened += 1
            if opened == options.streams:
                all_open.set()

        turn = asyncio.Semaphore(OPENED_AT_ONCE)
        readers = [people[number % len(people)] for number in range(options.streams)]
        await stack.enter_async_context(
            running(
                *(load.stream(user, turn, one_more) for user in readers), load.changes(people[0])
            )
        )
        with suppress(TimeoutError):
            async with asyncio.timeout(OPENED_SECONDS):
                await all_open.wait()
        assert all_open.is_set(), f"only {opened} streams are open"
        report.note(f"{opened} streams are open")

        async def period(kind: str) -> Times:
            times = Times()
            callers = [load.api(people[n], n, times.api) for n in range(CALLERS)]
            desks = [load.desk(each, n, times.desk) for n, each in enumerate(cookies)]
            before = sum(service.cpu_times()[:2])
            async with running(*callers, *desks):
                await asyncio.sleep(options.seconds)
            used = 100 * (sum(service.cpu_times()[:2]) - before) / options.seconds
            report.note(
                f"{kind}: median {middle(times.all) or 0:.0f} ms, 99th percentile "
                f"{percentile(times.all) or 0:.0f} ms, service {used:.0f} % of a core"
            )
            return times

        await period("only warming")
        for _ in range(options.periods):
            found.quiet.append(await period("quiet"))
            found.answers.clear()
            async with running(*(load.greedy() for _ in range(options.flood))):
                # What each user may call at once is used up first.
                async with asyncio.timeout(120):
                    while not found.answers[httpx.codes.TOO_MANY_REQUESTS]:
                        await asyncio.sleep(0.1)
                found.answers.clear()
                found.flooded.append(await period("flooded"))
            report.note(f"the flood got {dict(found.answers)}; {found.messages} stream messages")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    streams: int
    queued: int
    flood: int
    seconds: float
    periods: int


def main(words: Sequence[str]) -> int:
    parser = report.parser("How much one client that floods takes from the others.")
    for name, default, about in (
        ("streams", STREAMS, "open event streams"),
        ("queued", QUEUED, "queued jobs"),
        ("flood", FLOOD, "parallel clients of the flood"),
        ("periods", PERIODS, "periods of each kind"),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{about} ({default})")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"a period ({SECONDS:g})")
    chosen = vars(parser.parse_args(words))
    as_json = bool(chosen.pop("json"))
    options = Options(**chosen)
    command = report.command_line("tests.benchmarks.load", *words)
    found, complete = Found(), Found()
    people = [f"load{number}" for number in range(PEOPLE)]
    with report.measuring("load"), prepared(people, options.queued) as site:
        cookies = []
        for student in STUDENTS:
            with browser(site, student) as client:
                cookies.append(client.cookies)
        load = Load(site=site, people=people, found=found)
        asyncio.run(measure(load, options, cookies))
        complete = found
    return report.finish(rows(complete, command, options.flood), as_json=as_json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
