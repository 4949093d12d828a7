"""What a job in a container costs: a trivial notebook beside ``docker run IMAGE papermill``.

One installation with one simulated device is brought up on a real engine, and taken down again.

* without a device: from the POST of a trivial notebook to its terminal state. A container waits
  for it, as one does where others have asked for one of late.
* with a device: the same, in a container that is made for it.
* the peer: ``docker run --rm IMAGE papermill``, on the same notebook and image, from the start of
  the command to its end.

All three by turns. The service's own clock says when a job ended; both clocks are this machine's.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import nbformat

from carrel.hub.config.state_folder import StateFolder
from carrel.hub.interfaces.backend_settings import DockerHost
from carrel.spawners.docker.containers.late_mounts import LateMounts
from carrel.spawners.docker.containers.template import LABEL, lease_of
from carrel.spawners.docker.engine.client import DockerClient

from ..docker_engine import DockerEngine, base_image, docker_engine, site_file
from ..e2e.support import Installation, eventually, installation
from . import report
from .report import NotWorseThan, Row, middle
from .submit import ENDED, STUDENT, made_notebook

_INSIDE = "/notebooks"
PAIRS = 20
LONGEST_SECONDS = 60.0
READY_SECONDS = 120.0
SETTLE_SECONDS = 1.0


@dataclass(slots=True)
class Times:
    """Milliseconds, one entry a run; empty where it could not be measured."""

    warm: list[float] = field(default_factory=list)
    device: list[float] = field(default_factory=list)
    peer: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Attributes:
    folder: of the peer.
    network: of the peer; an engine need not have a default one.
    """

    site: Installation
    engine: DockerClient
    url: str
    image: str
    folder: Path
    network: str
    notebook: nbformat.NotebookNode

    def waits(self) -> bool:
        """Whether a container waits for a job."""
        places = LateMounts(root=self.site.state.resolve() / "waiting")
        return any(map(places.listens, places.names()))

    def idles(self) -> bool:
        """Whether no job's container is left."""
        listed = self.engine.containers({LABEL: StateFolder(root=self.site.state).installation})
        return not any(lease_of(each.name, each.labels) for each in listed)

    def job(self, devices: int) -> float:
        body = {
            "kind": "job",
            "group": "cs101",
            "devices": devices,
            "notebook": {"name": "n.ipynb", "content": nbformat.writes(self.notebook)},
        }
        begin = time.time()
        answer = self.site.api("POST", "/requests", user=STUDENT, json=body)
        assert answer.status_code == httpx.codes.CREATED, answer.text
        ended = self.site.wait_for(
            answer.json()["id"], *ENDED, user=STUDENT, within=LONGEST_SECONDS, every=0.05
        )
        assert ended["state"] == "succeeded", ended
        return 1000 * (float(ended["ended_at"]) - begin)

    def peer(self) -> float:
        words = ["docker", "--host", self.url, "run", "--rm", "--user", "0"]
        words += ["--network", self.network, "--volume", f"{self.folder}:{_INSIDE}", self.image]
        begin = time.perf_counter()
        subprocess.run(
            [*words, "papermill", f"{_INSIDE}/n.ipynb", f"{_INSIDE}/out.ipynb"],
            check=True,
            capture_output=True,
        )
        return 1000 * (time.perf_counter() - begin)


def rows(times: Times, command: str) -> list[Row]:
    def row(name: str, ours: Sequence[float], allowed: float) -> Row:
        goal = NotWorseThan(peer=middle(times.peer), times=allowed)
        return Row(name=name, ours=middle(ours), goal=goal, unit="ms", command=command)

    return [
        row("job in a warm container, median", times.warm, 1 / 3),
        row("job with a device, median", times.device, 1.2),
    ]


def measure(bench: Bench, pairs: int, times: Times) -> None:
    """By turns; the round before the first only warms."""
    ways: Sequence[tuple[list[float], Callable[[], float]]] = (
        (times.warm, lambda: bench.job(0)),
        (times.device, lambda: bench.job(1)),
        (times.peer, bench.peer),
    )
    for pair in range(pairs + 1):
        for way, (into, run) in enumerate(ways):
            if pair and not way:
                eventually(bench.waits, "a warm container", within=READY_SECONDS)
            eventually(bench.idles, "the last container is gone", within=LONGEST_SECONDS)
            time.sleep(SETTLE_SECONDS)
            took = run()
            if pair:
                into.append(took)
        if pair:
            report.note(
                f"round {pair} of {pairs}: warm container {times.warm[-1]:.0f} ms, "
                f"with a device {times.device[-1]:.0f} ms, papermill {times.peer[-1]:.0f} ms"
            )


@contextmanager
def made_bench() -> Iterator[Bench]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="carrel-bench-")))
        engine = stack.enter_context(docker_engine())
        image = base_image(engine)
        state = folder / "state"
        site_file(state, engine)
        words = ("--simulated-devices", "1", "--engine", "docker")
        site = stack.enter_context(installation(state, *words))
        notebook = made_notebook("print('trivial')")
        (folder / "peer").mkdir()
        nbformat.write(notebook, folder / "peer" / "n.ipynb")
        network = stack.enter_context(peer_network(engine))
        yield Bench(
            site=site,
            engine=DockerClient(DockerHost(node="local", url=engine.url)),
            url=engine.url,
            image=image,
            folder=folder / "peer",
            network=network,
            notebook=notebook,
        )


@contextmanager
def peer_network(engine: DockerEngine) -> Iterator[str]:
    """As the default one of an engine is."""
    name, client = f"carrel-bench-{secrets.token_hex(3)}", engine.client()
    client.create_network(name, driver="bridge")
    try:
        yield name
    finally:
        client.remove_network(name)


def main(words: Sequence[str]) -> int:
    parser = report.parser("What a job in a container costs.")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="rounds (default: 20)")
    options = parser.parse_args(words)
    command = report.command_line("tests.benchmarks.docker_jobs", *words)
    times = Times()
    with report.measuring("an installation", times.warm, times.device), made_bench() as bench:
        measure(bench, options.pairs, times)
    return report.finish(rows(times, command), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
