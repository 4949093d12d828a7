"""Jobs of the stress tests, and what must hold after them."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import psutil
import pytest

from ..e2e.support import Installation
from .audit import Books
from .support import BEGAN, FINISHED, STUDENTS, executions, job_body

RETRIES = 9
"""More than there are runners killed of one job, for every second one; the others have none."""
ALONE = """\
import fcntl
held = open(pathlib.Path.home() / ("at-work-" + os.environ["CARREL_REQUEST"]), "a")
try:
    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    with open(pathlib.Path.home() / "twice.txt", "a") as book:
        book.write(os.environ["CARREL_REQUEST"] + " " + os.environ["CARREL_LEASE"] + "\\n")
"""
"""Held by the kernel (the operating system's) as long as any process of an attempt lives."""


def work(number: int, chance: random.Random) -> dict[str, Any]:
    """A job that writes down when it is not alone; every second one may be tried again."""
    busy = f"import time; time.sleep({chance.uniform(1, 3):.2f})"
    cells = (BEGAN + ALONE, busy, FINISHED)
    body: dict[str, Any] = job_body(
        *cells, retries=RETRIES if number % 2 else 0, idempotency_key=f"stress-{number}"
    )
    if number % 5:  # a fifth are notebooks
        del body["notebook"]
        body["command"] = ["python3", "-c", "\n".join(cells)]
    return body


def kill(site: Installation, part: str) -> bool:
    """Also while it is coming up again; not while it is not there at all."""
    try:
        site.kill(part)
    except (AssertionError, psutil.NoSuchProcess):
        return False
    return True


def each_ran_alone(site: Installation, books: Books) -> None:
    """The audit says so of the leases; this is what the jobs themselves saw."""
    assert executions(site, "twice") == {}
    for book in ("began", "finished"):
        leases = Counter(lease for leases in executions(site, book).values() for lease in leases)
        assert [lease for lease, times in leases.items() if times > 1] == []
        assert leases.keys() <= {lease.id for lease in books.leases if lease.ran}


def every_second_is_charged(site: Installation, books: Books) -> None:
    """The ledger's sum, recomputed from the leases, is what people are told."""
    leases = sum(
        len(lease.devices) * (lease.charged_until - lease.granted_at) for lease in books.leases
    )
    assert sum(entry.device_seconds for entry in books.entries) == pytest.approx(leases)
    told = sum(
        site.api("GET", "/usage", user=student).json()["device_seconds"] for student in STUDENTS
    )
    assert told == pytest.approx(leases)
