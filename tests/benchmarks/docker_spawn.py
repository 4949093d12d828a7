"""What a lease costs a session in a container: beside DockerSpawner as it comes, one and twenty.

One installation with one simulated device is brought up on a real engine, and taken down again.

* spawn: as in ``spawn``, from the POST to the hub's API to the ``ready`` event, for a session
  with a device that is free and for a plain DockerSpawner on the same image under the same hub,
  by turns.
* at once: twenty servers of three users are requested in the same moment, without devices; from
  the first POST to the last ``ready``. All must come, on either side.
"""

from __future__ import annotations

import json
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from carrel.images.docker_cli import Docker

from ..docker_engine import DockerEngine, base_image, docker_engine, site_file
from ..e2e.support import Installation, installation
from . import report
from .report import NotWorseThan, Row, middle
from .spawn import PAIRS, Hub, Times, measure_spawns

PEOPLE = ("student1", "student2", "student3")
AT_ONCE = 20
ROUNDS = 3
CPU_ONLY = {"devices": 0, "hours": 1, "group": "cs101"}


@dataclass(slots=True)
class Totals:
    """Seconds, one entry a round; empty where it could not be measured."""

    ours: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)


def rows(times: Times, totals: Totals, command: str) -> list[Row]:
    beside = NotWorseThan(peer=middle(times.plain), times=1.05, or_more=150)
    together = NotWorseThan(peer=middle(totals.plain), times=1.1)
    return [
        Row(
            name="session spawn, median",
            ours=middle(times.ours),
            goal=beside,
            unit="ms",
            command=command,
        ),
        Row(
            name="20 sessions requested together, total",
            ours=middle(totals.ours),
            goal=together,
            unit="s",
            command=command,
        ),
    ]


def measure_at_once(hub: Hub, number: int, rounds: int, totals: Totals) -> None:
    """By turns, each going first in every second round."""
    for turn in range(rounds):
        for kind in ("ours", "plain") if turn % 2 else ("plain", "ours"):
            into = totals.ours if kind == "ours" else totals.plain
            into.append(all_at_once(hub, kind, number))
            report.note(f"round {turn + 1} of {rounds}: {number} {kind} in {into[-1]:.1f} s")


def all_at_once(hub: Hub, kind: str, number: int) -> float:
    """Seconds; whatever came is gone afterwards."""
    wanted = [(PEOPLE[each % len(PEOPLE)], f"{kind}-{each}") for each in range(number)]
    with ThreadPoolExecutor(number) as threads:
        try:
            begin = time.perf_counter()
            for came in [threads.submit(hub.spawn, *each) for each in wanted]:
                came.result()
            return time.perf_counter() - begin
        finally:
            # Also where one did not come: the others would run beside all that is measured next.
            for gone in [threads.submit(hub.remove, *each) for each in wanted]:
                gone.result()


@contextmanager
def network_of_plain(engine: DockerEngine) -> Iterator[str]:
    """As large as the engine makes them; it goes with the last of its containers."""
    name = f"plain-{secrets.token_hex(3)}"
    docker = Docker(engine.url)
    docker.ask("network", "create", name)
    try:
        yield name
    finally:
        docker.ask("network", "rm", name)


@contextmanager
def site_of_both() -> Iterator[Installation]:
    """Its hub starts sessions on a lease and plain ones, by their names."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="carrel-bench-")))
        engine = stack.enter_context(docker_engine())
        state = folder / "state"
        site_file(state, engine)
        network = stack.enter_context(network_of_plain(engine))
        given = {"image": base_image(engine), "engine": engine.url, "network": network}
        (state / "benchmark.json").write_text(json.dumps(given))
        shutil.copy(Path(__file__).with_name("docker_config.py"), state / "jupyterhub_config.py")
        words = ("--simulated-devices", "1", "--engine", "docker")
        yield stack.enter_context(installation(state, *words))


def main(words: Sequence[str]) -> int:
    parser = report.parser("What a lease costs a session in a container.")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="of spawns (default: 20)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of many at once (default: 3)")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="(default: 20)")
    options = parser.parse_args(words)
    command = report.command_line("tests.benchmarks.docker_spawn", *words)
    times, totals = Times(), Totals()
    with report.measuring("an installation"), site_of_both() as site:
        measure_spawns(site, Hub(site), options.pairs, times)
        with report.measuring("many at once", totals.ours, totals.plain):
            measure_at_once(Hub(site, CPU_ONLY), options.at_once, options.rounds, totals)
    return report.finish(rows(times, totals, command), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
