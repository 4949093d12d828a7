"""How fast the pages answer with thousands of requests in the store, beside the hub's own home.

One installation is brought up for it and taken down again. Its store is filled with requests of
three students over the last 30 days; the last of them wait, behind
a session that holds both devices. A course of 30 students has been graded. A student and an
administrator, signed in as with a browser, ask through the proxy for each page by turns, and for
JupyterHub's stock home page in every turn.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from ..e2e.support import Installation, installation
from ..faults.support import STUDENTS, browser, submit
from . import filled_store, graded_course, report
from .report import AtMost, NotWorseThan, Row, middle

STUDENT, ADMIN = "student1", "admin"
REQUESTS, WAITING, ROUNDS = 5000, 200, 20
LIMIT_MS, TIMES = 100.0, 2.0
HOME = "/hub/home"
DESK = "/services/carrel"
STOCK_HUB = "c = get_config()  # noqa: F821\nc.JupyterHub.template_paths = []\n"
STUDENTS_PAGES = {
    "desk": "/",
    "desk, live update": "/desk/live",
    "requests": "/requests",
    "queued requests": "/requests?state=queued",
    "requests by duration": "/requests?order=longest",
    "a job": "/requests/{job}",
    "usage": "/usage",
    "submit": "/submit",
    "my account": "/account",
}
ADMINS_PAGES = {
    "desk": "/",
    "all requests": "/requests?whose=all",
    "all requests by duration": "/requests?whose=all&order=longest",
    "groups": "/admin",
    "users": "/admin/people",
    "a user": "/admin/person/student1",
    "announcements": "/admin/announcements",
    "health, live update": "/admin/health/live",
    "backups": "/admin/backup",
    "devices": "/admin/pool",
    "audit log": "/admin/audit",
    "utilization and wait times": "/admin/use",
    "usage of all users": "/usage?whose=all",
    "a course": "/course/cs101",
    "gradebook of a course": "/course/{course}/gradebook",
    "grades of an assignment": "/course/{course}/grading/{assignment}",
    "grading by hand": "{by_hand}",
    "graded notebook": "{by_hand}/notebook/ps",
}


@dataclass(slots=True)
class Times:
    """Milliseconds by name of the page, one entry a turn."""

    pages: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    home: list[float] = field(default_factory=list)


def rows(times: Times, command: str, requests: int) -> list[Row]:
    home = middle(times.home)
    middles = {name: middle(values) for name, values in times.pages.items()}
    medians = {name: value for name, value in middles.items() if value is not None}
    pages = [
        Row(
            name=f"{name}, median",
            ours=medians.get(name),
            goal=NotWorseThan(peer=home, times=TIMES),
            unit="ms",
            command=command,
        )
        for name in [f"{page} (student)" for page in STUDENTS_PAGES]
        + [f"{page} (administrator)" for page in ADMINS_PAGES]
    ]
    slowest = Row(
        name=f"slowest page at {requests:,} requests, median",
        ours=max(medians.values(), default=None),
        goal=AtMost(limit=LIMIT_MS),
        unit="ms",
        command=command,
    )
    return [*pages, slowest]


# -- the pages -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A page of one person."""

    name: str
    client: httpx.Client
    path: str

    def milliseconds(self) -> float:
        """Return how long the page took; wait first while the service has had too many calls."""
        while True:
            begin = time.perf_counter()
            answer = self.client.get(self.path)
            took = 1000 * (time.perf_counter() - begin)
            if answer.status_code != httpx.codes.TOO_MANY_REQUESTS:
                break
            time.sleep(float(answer.headers["retry-after"]))
        assert answer.status_code == httpx.codes.OK, (self.name, answer.status_code, answer.text)
        assert not answer.history, (self.name, "was sent elsewhere")
        return took


def visits(
    client: httpx.Client, who: str, pages: Mapping[str, str], parts: Mapping[str, str]
) -> list[Visit]:
    """The pages of one user; ``parts`` fills the fields of their paths."""
    return [
        Visit(name=f"{page} ({who})", client=client, path=DESK + path.format_map(parts))
        for page, path in pages.items()
    ]


def measure(every: Sequence[Visit], home: Visit, rounds: int, times: Times) -> None:
    """The first turn only warms; each turn begins at another page."""
    for turn in range(rounds + 1):
        shift = turn % len(every)
        for visit in [*every[shift:], *every[:shift]]:
            took = visit.milliseconds()
            if turn:
                times.pages[visit.name].append(took)
        took = home.milliseconds()
        if turn:
            times.home.append(took)
            report.note(f"turn {turn} of {rounds}: the hub's home page {took:.0f} ms")


@contextmanager
def site_with_stock_pages() -> Iterator[Installation]:
    """Its hub shows JupyterHub's own home page."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="carrel-pages-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        state = folder / "state"
        state.mkdir(mode=0o700)
        (state / "jupyterhub_config.py").write_text(STOCK_HUB)
        yield stack.enter_context(installation(state, "--simulated-devices", "2"))


def prepared(site: Installation, requests: int) -> str:
    """Fill the store; the id of a job that has really run."""
    graded_course.fill(site)
    report.note("a course has been graded")
    job = submit(site, STUDENT, *(f"print('cell {n}')" for n in range(5)))
    site.wait_for(job, "succeeded", user=STUDENT, within=120)
    devices = [device["id"] for device in site.ready["devices"]]
    waiting = min(WAITING, requests // 2)
    filled_store.fill(site.state, STUDENTS, devices, ended=requests - waiting)
    holder = site.start_session("student2", devices=len(devices))["id"]
    site.wait_for(holder, "running", user="student2", within=120)
    filled_store.queue(site.state, STUDENTS, range(requests, requests + waiting))
    report.note(f"{requests - waiting} requests have run, {waiting} wait")
    return job


def page_by_hand(client: httpx.Client) -> str:
    """The path of the first student's page on which a person gives points."""
    first = f"/course/{graded_course.COURSE}/grading/{graded_course.ASSIGNMENTS[0]}/manual"
    return client.get(DESK + first).raise_for_status().url.path.removeprefix(DESK)


def main(words: Sequence[str]) -> int:
    parser = report.parser("How fast the pages answer.")
    parser.add_argument("--requests", type=int, default=REQUESTS, help="(default: 5000)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of all pages (default: 20)")
    options = parser.parse_args(words)
    command = report.command_line("tests.benchmarks.pages", *words)
    times = Times()
    with report.measuring("pages", times.home), site_with_stock_pages() as site:
        job = prepared(site, options.requests)
        with browser(site, STUDENT) as student, browser(site, ADMIN) as admin:
            parts = {
                "job": job,
                "course": graded_course.COURSE,
                "assignment": graded_course.ASSIGNMENTS[0],
                "by_hand": page_by_hand(admin),
            }
            every = [
                *visits(student, "student", STUDENTS_PAGES, parts),
                *visits(admin, "administrator", ADMINS_PAGES, parts),
            ]
            home = Visit(name="home of the hub", client=student, path=HOME)
            measure(every, home, options.rounds, times)
    return report.finish(rows(times, command, options.requests), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
