"""What a lease costs a session: its spawn beside JupyterHub's own, and the wait for a device.

One installation with one simulated device is brought up for it and taken down again.

* spawn: from the POST to the hub's API to the ``ready`` event of the hub's own progress stream,
  for a session with a device that is free and for a plain ``SimpleLocalProcessSpawner`` under
  the same hub, by turns. Nothing of one server is left when the next one starts.
* request to process: the part of it that is Carrel's, from the event that stores the request to
  the event that says which process the session is; the service writes both, by its own clock.
* hand-over: two students take turns with the device. From the event that ends the holder's
  request, which frees the device, to the event that says which process the waiting session is.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from carrel.hub.client.transport.sse import Parser

from ..e2e.support import Installation, eventually, installation
from . import report
from .report import AtMost, NotWorseThan, Row, middle

OURS, PLAIN = "ours-desk", "plain-desk"
OPTIONS = {"devices": 1, "hours": 1, "group": "cs101"}
STUDENTS = ("student1", "student2")
PAIRS = HANDOVERS = 20
LONGEST_SECONDS = 60.0
GONE_SECONDS = 240.0
QUEUED, RUNNING = frozenset({"queued"}), frozenset({"running"})
ENDED = frozenset({"succeeded", "failed", "cancelled", "timed_out"})


@dataclass(slots=True)
class Times:
    """Milliseconds, one entry a run; empty where it could not be measured."""

    ours: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)
    leases: list[float] = field(default_factory=list)
    handovers: list[float] = field(default_factory=list)


def rows(times: Times, command: str) -> list[Row]:
    def row(name: str, ours: float | None, goal: AtMost | NotWorseThan) -> Row:
        return Row(name=name, ours=ours, goal=goal, unit="ms", command=command)

    beside_plain = NotWorseThan(peer=middle(times.plain), times=1.05, or_more=100)
    return [
        row("session spawn, median", middle(times.ours), beside_plain),
        row("request to process, median", middle(times.leases), AtMost(limit=100)),
        row("device free to process, median", middle(times.handovers), AtMost(limit=300)),
        row(
            "device free to process, longest",
            max(times.handovers, default=None),
            AtMost(limit=1000),
        ),
    ]


class Hub:
    """The hub's own API, as the installation's service calls it."""

    def __init__(self, site: Installation, options: Mapping[str, object] = OPTIONS) -> None:
        self.site = site
        self.options = options
        self.http = httpx.Client(
            base_url=site.hub_api,
            headers={"Authorization": f"token {site.secret('service_token')}"},
            timeout=LONGEST_SECONDS,
            trust_env=False,
        )

    def spawn(self, user: str, server: str) -> float:
        """Milliseconds until this server is ready; it then answers through the proxy."""
        begin = time.perf_counter()
        answer = self.http.post(
            f"/users/{user}/servers/{server}", json={"user_options": self.options}
        )
        assert answer.is_success, answer.text
        with closing(self.progress(user, server)) as events:
            last: dict[str, Any] = {}
            for last in events:
                if last.get("ready"):
                    break
            assert last.get("ready"), f"{server} did not start: {last.get('message', 'no word')}"
        took = 1000 * (time.perf_counter() - begin)
        seen = httpx.get(f"{self.site.url}/user/{user}/{server}/api", trust_env=False)
        assert seen.status_code == httpx.codes.OK, seen.text
        return took

    def progress(self, user: str, server: str) -> Generator[dict[str, Any], None, None]:
        """What a person who waits is told; ends when the start is over."""
        name = f"servers/{server}" if server else "server"
        with self.http.stream("GET", f"/users/{user}/{name}/progress") as answer:
            assert answer.is_success, answer.read()
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))

    def remove(self, user: str, server: str) -> None:
        answer = self.http.request(
            "DELETE", f"/users/{user}/servers/{server}", json={"remove": True}
        )
        assert answer.is_success, answer.text
        self.until_gone(user, server)

    def until_gone(self, user: str, server: str) -> None:
        gone = f"no {server} of {user} at the hub"
        # Twenty containers that end at once take their time; that is not what is measured.
        eventually(lambda: server not in self.servers(user), gone, within=GONE_SECONDS)

    def servers(self, user: str) -> dict[str, Any]:
        answer = self.http.get(f"/users/{user}")
        assert answer.is_success, answer.text
        return dict(answer.json()["servers"])


def measure_spawns(site: Installation, hub: Hub, pairs: int, times: Times) -> None:
    """By turns, each going first in every second pair; the pair before the first only warms."""
    sides = {OURS: times.ours, PLAIN: times.plain}
    gone_with = {OURS: [times.ours, times.leases], PLAIN: [times.plain]}
    for pair in range(pairs + 1):
        order = (OURS, PLAIN) if pair % 2 else (PLAIN, OURS)
        for server in [each for each in order if pair <= 1 or sides[each]]:
            with report.measuring(server, *gone_with[server]):
                took = spawn_and_remove(site, hub, server, times)
                if pair:
                    sides[server].append(took)
        if not pair:
            times.leases.clear()
        elif times.ours and times.plain:
            report.note(
                f"pair {pair} of {pairs}: ours {times.ours[-1]:.0f} ms "
                f"({times.leases[-1]:.0f} ms to its process), plain {times.plain[-1]:.0f} ms"
            )


def spawn_and_remove(site: Installation, hub: Hub, server: str, times: Times) -> float:
    user = STUDENTS[0]
    eventually(lambda: free_devices(site) == 1, "the device is free")
    took = hub.spawn(user, server)
    if server == OURS:
        with report.measuring("request to process", times.leases):
            newest = site.api("GET", "/requests?kind=session&mine=true&limit=1", user=user)
            request_id = newest.json()["requests"][0]["id"]
            queued, running = (moment(site, user, request_id, s) for s in (QUEUED, RUNNING))
            times.leases.append(1000 * (running - queued))
    hub.remove(user, server)
    return took


def measure_handovers(site: Installation, hub: Hub, handovers: int, times: Times) -> None:
    """The one who has waited holds the device in the next round."""
    holder, waiter = STUDENTS
    holding = site.start_session(holder)["id"]
    until_ready(hub, holder)
    for number in range(1, handovers + 1):
        waiting = site.start_session(waiter)["id"]
        until_queued(hub, waiter)
        stopped = site.api("DELETE", "/sessions/-", user=holder)
        assert stopped.is_success, stopped.text
        ended = moment(site, holder, holding, ENDED)
        running = moment(site, waiter, waiting, RUNNING)
        times.handovers.append(1000 * (running - ended))
        report.note(f"hand-over {number} of {handovers}: {times.handovers[-1]:.0f} ms")
        until_ready(hub, waiter)
        hub.until_gone(holder, "")
        holder, waiter, holding = waiter, holder, waiting


def until_queued(hub: Hub, user: str) -> None:
    """The hub's spawner has heard its place from the service, and listens."""
    with closing(hub.progress(user, "")) as events:
        assert any("Queued at position 1" in str(event.get("message")) for event in events)


def until_ready(hub: Hub, user: str) -> None:
    eventually(
        lambda: hub.servers(user).get("", {}).get("ready"),
        f"the session of {user} is ready",
        within=LONGEST_SECONDS,
    )


def free_devices(site: Installation) -> int:
    return int(site.api("GET", "/pool", user=STUDENTS[0]).json()["free"])


def moment(site: Installation, user: str, request_id: str, states: frozenset[str]) -> float:
    """When the request went into one of these states, by the service's clock."""
    parser = Parser()
    with httpx.stream(
        "GET",
        f"{site.service}/api/v1/requests/{request_id}/events",
        headers={"Authorization": f"token {site.token(user)}"},
        timeout=LONGEST_SECONDS,
        trust_env=False,
    ) as answer:
        for line in answer.iter_lines():
            message = parser.feed(line)
            if message and message.event == "state":
                event = json.loads(message.data)
                if event["data"]["state"] in states:
                    return float(event["at"])
    raise AssertionError(f"{request_id} of {user} ended without being {' or '.join(states)}")


@contextmanager
def site_of_both() -> Iterator[Installation]:
    """Its hub starts sessions on a lease and plain ones, by their names."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="carrel-spawn-")))
        state = folder / "state"
        state.mkdir(mode=0o700)
        shutil.copy(Path(__file__).with_name("site_config.py"), state / "jupyterhub_config.py")
        yield stack.enter_context(installation(state, "--simulated-devices", "1"))


def main(words: Sequence[str]) -> int:
    parser = report.parser("What a lease costs a session.")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="of spawns (default: 20)")
    parser.add_argument("--handovers", type=int, default=HANDOVERS, help="(default: 20)")
    options = parser.parse_args(words)
    command = report.command_line("tests.benchmarks.spawn", *words)
    times = Times()
    with report.measuring("an installation"), site_of_both() as site:
        hub = Hub(site)
        measure_spawns(site, hub, options.pairs, times)
        with report.measuring("hand-over", times.handovers):
            measure_handovers(site, hub, options.handovers, times)
    return report.finish(rows(times, command), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
