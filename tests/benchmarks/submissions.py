"""A class hands in at once: how soon each has the receipt, and what a kill in between costs.

One installation is brought up with a course of 300. Within 10 seconds everybody sends one notebook
of 1 MB, each with a token of the own, through the proxy. In a second round the service is killed
in the middle; whoever got no answer asks again, as Carrel's client does. Then every receipt that
anybody got is looked for.

Beside it stands nbgrader's own exchange, a shared folder, with files of the same size. Nothing
travels there, and nobody is asked who may write.
"""

from __future__ import annotations

import asyncio
import base64
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from carrel.hub.client import Client
from carrel.hub.schemas.courses import CourseIn, FileIn, ReleaseIn

from ..courses.notebook_samples import SOURCE
from ..e2e.support import Installation, installation
from . import report, shared_folder
from .report import AtMost, Beside, Row

STUDENTS, SECONDS, SIZE = 300, 10.0, 1_000_000
LIMIT_MS = 2000.0
COURSE, ASSIGNMENT = "crowd", "ps1"
# Three hundred sign-ins would take minutes: the harness makes the tokens.
MINTING = """c = get_config()  # noqa: F821
c.JupyterHub.load_roles = [
    *c.JupyterHub.load_roles,
    {"name": "mints", "scopes": ["tokens"], "services": ["carrel"]},
]
"""
_PATIENCE = 60.0
_PAUSE = 0.2


@dataclass(slots=True, kw_only=True)
class Round:
    """What one round of submissions came to.

    Attributes:
        receipts: SHA-256 by student, of those that got one.
        milliseconds: from the first attempt to the receipt.
        repeated: attempts beyond the first.
    """

    receipts: dict[str, str] = field(default_factory=dict)
    milliseconds: list[float] = field(default_factory=list)
    repeated: int = 0
    lost: int = 0


def notebook(student: str, turn: int, size: int) -> bytes:
    """Of that many bytes, unlike any other."""
    filling = random.Random(f"{student} {turn}").randbytes(size * 3 // 4)  # noqa: S311
    text = base64.b64encode(filling).decode()[: size - 200]
    cell = {"id": "a", "cell_type": "raw", "metadata": {}, "source": text}
    return json.dumps(
        {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    ).encode()


def body(content: bytes) -> bytes:
    coded = base64.b64encode(content).decode()
    return json.dumps({"files": [{"name": "ps1.ipynb", "content": coded}]}).encode()


async def hand_in(
    client: httpx.AsyncClient, student: str, token: str, content: bytes, found: Round
) -> None:
    headers = {"Authorization": f"token {token}", "Content-Type": "application/json"}
    path = f"courses/{COURSE}/assignments/{ASSIGNMENT}/submissions"
    begin = time.perf_counter()
    while time.perf_counter() - begin < _PATIENCE:
        try:
            answer = await client.post(path, content=content, headers=headers)
        except httpx.TransportError:
            answer = None
        if answer is not None and answer.is_success:
            found.receipts[student] = answer.json()["sha256"]
            found.milliseconds.append(1000 * (time.perf_counter() - begin))
            return
        assert answer is None or answer.status_code >= httpx.codes.INTERNAL_SERVER_ERROR, (
            answer.text
        )
        found.repeated += 1
        await asyncio.sleep(_PAUSE)


async def crowd(
    site: Installation, tokens: dict[str, str], turn: int, options: Options, kill: bool
) -> Round:
    """Everybody at a moment of the own within these seconds; perhaps a kill in the middle."""
    found = Round()
    bodies = {student: body(notebook(student, turn, options.size)) for student in tokens}
    begins = {s: random.Random(f"{turn} {s}").uniform(0, options.seconds) for s in tokens}  # noqa: S311
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    base = f"{site.service}/api/v1/"
    async with httpx.AsyncClient(base_url=base, timeout=_PATIENCE, limits=limits) as client:

        async def one(student: str) -> None:
            await asyncio.sleep(begins[student])
            await hand_in(client, student, tokens[student], bodies[student], found)

        async def killing() -> None:
            if kill:
                await asyncio.sleep(options.seconds / 2)
                await asyncio.to_thread(site.kill, "service")

        await asyncio.gather(killing(), *(one(student) for student in tokens))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    students: int
    seconds: float
    size: int


@contextmanager
def class_of(options: Options) -> Iterator[tuple[Installation, dict[str, str]]]:
    """The installation, and everybody's token."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="carrel-submissions-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        state = folder / "state"
        state.mkdir(mode=0o700)
        (state / "jupyterhub_config.py").write_text(MINTING)
        site = stack.enter_context(installation(state, "--simulated-devices", "1"))
        names = [f"s{number:03}" for number in range(options.students)]
        with Client(site.url, site.token("admin")) as admin:
            roster = "\n".join(["student", *names])
            made = CourseIn(name=COURSE, teachers=["teacher"], students=roster)
            admin.create_course(made)
        with Client(site.url, site.token("teacher")) as teacher:
            file = FileIn(name="ps1.ipynb", content=base64.b64encode(SOURCE).decode())
            teacher.release(COURSE, ASSIGNMENT, ReleaseIn(files=[file], due=""))
        yield site, {name: site.token(name) for name in names}


def kept(site: Installation) -> dict[str, set[str]]:
    """The SHA-256 of every submission that the site has, by student."""
    found: dict[str, set[str]] = {}
    with Client(site.url, site.token("teacher")) as teacher:
        for receipt in teacher.receipts(COURSE, ASSIGNMENT):
            found.setdefault(receipt.person, set()).add(receipt.sha256)
            teacher.submission_files(receipt.id)
    return found


def measured(options: Options) -> tuple[Round, Round]:
    with class_of(options) as (site, tokens):
        rounds = []
        for turn, kill in enumerate((False, True)):
            found = asyncio.run(crowd(site, tokens, turn, options, kill))
            there = kept(site)
            lost = [s for s, sha in found.receipts.items() if sha not in there.get(s, set())]
            found.lost = len(lost)
            rounds.append(found)
            middle = report.middle(found.milliseconds) or 0.0
            report.note(
                f"{len(found.receipts)} of {len(tokens)} have a receipt, the middle one after "
                f"{middle:.0f} ms; {found.repeated} attempts were repeated, {found.lost} lost"
            )
    return rounds[0], rounds[1]


def shared(options: Options) -> list[float]:
    names = [f"s{number:03}" for number in range(options.students)]
    contents = {name: notebook(name, 0, options.size) for name in names}
    return shared_folder.milliseconds(COURSE, ASSIGNMENT, contents)


def worst_but_one_percent(milliseconds: Sequence[float]) -> float | None:
    found = sorted(milliseconds)[max(0, -(-len(milliseconds) * 99 // 100) - 1) :]
    return found[0] if found else None


def rows(
    calm: Round, killed: Round, peer: list[float], options: Options, command: str
) -> list[Row]:
    everybody = calm.milliseconds if len(calm.receipts) == options.students else []
    worst = worst_but_one_percent(everybody)
    missing = float(options.students - len(killed.receipts) + killed.lost)
    return [
        Row(
            name=f"{options.students} submissions within {options.seconds:.0f} s, 99 % under",
            ours=worst,
            goal=AtMost(limit=LIMIT_MS),
            unit="ms",
            command=command,
        ),
        Row(
            name="the same beside nbgrader's shared folder, one by one",
            ours=worst,
            goal=Beside(peer=worst_but_one_percent(peer)),
            unit="ms",
            command=command,
        ),
        Row(
            name="receipts lost or missing, service killed in the middle",
            ours=missing,
            goal=AtMost(limit=0.0),
            unit="",
            command=command,
        ),
    ]


def main(words: Sequence[str]) -> int:
    parser = report.parser("A class hands in at once.")
    parser.add_argument("--students", type=int, default=STUDENTS, help="(default: 300)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="(default: 10)")
    parser.add_argument("--size", type=int, default=SIZE, help="bytes (default: 1,000,000)")
    given = parser.parse_args(words)
    options = Options(students=given.students, seconds=given.seconds, size=given.size)
    command = report.command_line("tests.benchmarks.submissions", *words)
    calm, killed = measured(options)
    found = rows(calm, killed, shared(options), options, command)
    return report.finish(found, as_json=given.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
