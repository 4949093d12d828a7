"""Jobs of several members on two Docker hosts: one network of each job across both."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from ipaddress import ip_interface
from pathlib import Path
from typing import Any

import pytest

from carrel.spawners.docker.containers.swarm_networks import overlay_subnets

from ..docker_engine import DockerEngine, end_what_was_half_made
from ..e2e.all_reduce import ALL_REDUCE
from ..e2e.support import Installation, eventually
from .swarm import FROM_FAR, HERE, TwoEngines, site_of_two, two_engines

pytestmark = [pytest.mark.docker, pytest.mark.slow]
USER = "student1"
VXLAN = 4789
NODES = {"local", "far"}
PORT = 7777

WAITING = f"""
import os, pathlib, socket, time
open_to_members = socket.create_server(("", {PORT}))
exec(pathlib.Path("reduce.py").read_text().replace("sys.exit", "print"))
for each in os.environ["CARREL_ADDRESSES"].split(","):
    socket.create_connection((each, {PORT}), timeout=20).close()
print("computed", flush=True)
while not pathlib.Path(os.environ["HOME"], "go").exists():
    time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def engines(docker_engine: DockerEngine, base_image: str) -> Iterator[TwoEngines]:
    with two_engines(docker_engine, base_image) as made:
        yield made


@pytest.fixture(scope="module")
def separate(
    engines: TwoEngines, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """The site before its engines form a swarm, and after."""
    with site_of_two(engines, tmp_path_factory.mktemp("gangs") / "state") as made:
        yield made
    assert engines.overlays() == [], "carrel down has removed all networks"


@pytest.fixture(scope="module")
def site(
    separate: Installation, engines: TwoEngines, tmp_path_factory: pytest.TempPathFactory
) -> Installation:
    engines.connect()
    eventually(lambda: doctor(separate)["verdict"] == "fine", "the engines form a swarm")
    folder = tmp_path_factory.mktemp("programs")
    eventually(lambda: accepts_two_nodes(separate, folder), "the service knows", within=90)
    return separate


def doctor(site: Installation) -> dict[str, Any]:
    said = json.loads(site.cli("doctor", "--state", str(site.state), "--json", check=False).stdout)
    (found,) = (each for each in said["findings"] if each["subject"] == "jobs on several nodes")
    return dict(found)


def spread(folder: Path, *command: str) -> str:
    """Write the file of a job with a member on each node."""
    words = json.dumps(command)
    roles = folder / "roles.toml"
    roles.write_text(
        f'arrangement = "spread"\n[roles.worker]\ncommand = {words}\ndevices = 1\ncount = 2\n'
    )
    return str(roles)


def accepts_two_nodes(site: Installation, folder: Path) -> bool:
    words = ("run", "--workdir", ".", "--roles", spread(folder, "true"), "--time", "2m")
    sent = site.cli(*words, "--json", user=USER, check=False)
    if sent.returncode:
        return False
    site.wait_for(json.loads(sent.stdout)["id"], "succeeded", user=USER)
    return True


def run(site: Installation, folder: Path, program: str, *words: str) -> str:
    """Submit a program for a member on each node; return the job's id."""
    (folder / "reduce.py").write_text(ALL_REDUCE)
    (folder / "program.py").write_text(program)
    files = ("--input", str(folder / "reduce.py"), "--input", str(folder / "program.py"))
    command = ("python", "program.py", *words)
    sent = site.cli(
        *("run", "--nodes", "2", "--devices", "1", "--time", "10m", "--json", *files),
        *("--", *command),
        user=USER,
    )
    return str(json.loads(sent.stdout)["id"])


def test_without_a_swarm_a_job_on_two_nodes_is_refused_with_the_reason(
    separate: Installation, tmp_path: Path
) -> None:
    words = ("run", "--workdir", ".")
    sent = separate.cli(*words, "--roles", spread(tmp_path, "true"), user=USER, check=False)
    assert sent.returncode
    assert "the Docker engine on local, far is in no swarm" in sent.stderr
    two = ("--nodes", "2", "--devices", "1", "--", "true")
    sent = separate.cli(*words, *two, user=USER, check=False)
    assert "All members must be on one node" in sent.stderr
    assert "the Docker engine on local, far is in no swarm" in sent.stderr
    assert "the engines form no swarm" in doctor(separate)["what"]


def test_members_on_two_nodes_add_their_numbers(
    site: Installation, engines: TwoEngines, tmp_path: Path
) -> None:
    job = run(site, tmp_path, ALL_REDUCE)
    ended = site.wait_for(job, "succeeded", "failed", "lost", user=USER)
    assert ended["state"] == "succeeded", ended
    assert {member["node"] for member in ended["lease"]["members"]} == NODES
    for rank in range(2):
        said = site.cli("logs", job, "--member", str(rank), user=USER).stdout
        assert f"worker {rank} of 2: sum 11" in said
    eventually(lambda: engines.overlays() == [], "its network is removed")


def test_one_failed_member_ends_the_job_and_is_named(
    site: Installation, engines: TwoEngines, tmp_path: Path
) -> None:
    job = run(site, tmp_path, ALL_REDUCE, "fail")
    ended = site.wait_for(job, "failed", "succeeded", "lost", user=USER)
    assert ended["state"] == "failed"
    assert ended["cause"]["message"].startswith("Member 1 of the role worker failed"), ended
    eventually(lambda: engines.overlays() == [], "its network is removed")


def computed(site: Installation, job: str) -> bool:
    said = (site.cli("logs", job, "--member", str(rank), user=USER).stdout for rank in (0, 1))
    return all("computed" in each for each in said)


def test_members_reach_each_other_on_all_ports_and_other_jobs_reach_none(
    site: Installation, tmp_path: Path
) -> None:
    job = run(site, tmp_path, WAITING)
    eventually(lambda: computed(site, job), "members reach each other")
    lease = site.request(job, user=USER)["lease"]
    addresses = [str(member["address"]) for member in lease["members"]]
    (subnet,) = {ip_interface(f"{address}/27").network for address in addresses}
    assert subnet in overlay_subnets(site.setting("docker_subnets"))
    program = (
        "import socket\n"
        f"for address in {addresses}:\n"
        "    try:\n"
        f"        socket.create_connection((address, {PORT}), timeout=2)\n"
        "        print('reached', address)\n"
        "    except OSError:\n"
        "        print('not reached')\n"
    )
    words = ("run", "--workdir", ".", "--devices", "0", "--json", "--", "python", "-c", program)
    other = json.loads(site.cli(*words, user=USER).stdout)["id"]
    site.wait_for(other, "succeeded", user=USER)
    said = site.cli("logs", other, user=USER).stdout
    assert said.count("not reached") == 2, said
    site.cli("cancel", job, "--yes", user=USER)
    site.wait_for(job, "cancelled", user=USER)


def test_a_killed_service_loses_nothing(
    site: Installation, engines: TwoEngines, tmp_path: Path
) -> None:
    job = run(site, tmp_path, WAITING)
    running = site.wait_for(job, "running", user=USER)
    lease = running["lease"]["id"]
    eventually(lambda: computed(site, job), "both have the sum")
    site.kill("service")
    site.wait_for(job, "running", user=USER)
    assert len(engines.overlays()) == 1, "it was not taken for a leftover"
    (site.state / "homes" / USER / "go").touch()
    ended = site.wait_for(job, "succeeded", "failed", "lost", user=USER)
    assert (ended["state"], ended["lease"]["id"]) == ("succeeded", lease), ended
    eventually(lambda: engines.overlays() == [], "its network is removed")


def test_a_service_killed_while_it_starts_the_members_leaves_no_network(
    site: Installation, engines: TwoEngines, tmp_path: Path
) -> None:
    job = run(site, tmp_path, ALL_REDUCE)
    eventually(engines.overlays, "its network is there", every=0.02)
    site.kill("service")
    ended = site.wait_for(job, "succeeded", "failed", "lost", user=USER, within=240)
    assert ended["state"] == "succeeded", ended
    eventually(lambda: engines.overlays() == [], "its network is removed")


def test_a_job_whose_machine_fails_runs_again_with_a_network_of_its_own(
    site: Installation, engines: TwoEngines, tmp_path: Path
) -> None:
    job = run(site, tmp_path, WAITING.replace('"go"', '"again"'))
    eventually(lambda: computed(site, job), "both have the sum")
    first = site.request(job, user=USER)["lease"]["id"]
    assert engines.far.folder is not None
    engines.far.kill()
    end_what_was_half_made(engines.far.folder)
    engines.far.start()

    def is_repeated() -> bool:
        found = site.request(job, user=USER)
        return found["state"] == "running" and found["lease"]["id"] != first

    eventually(is_repeated, "all members start again", within=240)
    (site.state / "homes" / USER / "again").touch()
    ended = site.wait_for(job, "succeeded", "failed", "lost", user=USER)
    assert ended["state"] == "succeeded", ended
    eventually(lambda: engines.overlays() == [], "both of its networks are removed", within=120)


def test_no_container_sends_packets_into_networks_of_a_swarm(site: Installation) -> None:
    """A host takes any packet at the port of overlay networks for one of them."""
    with (
        socket.socket(type=socket.SOCK_DGRAM) as closed,
        socket.socket(type=socket.SOCK_DGRAM) as open_,
    ):
        closed.bind(("", VXLAN))
        open_.bind(("", 0))
        program = (
            "import socket\n"
            "each = socket.socket(type=socket.SOCK_DGRAM)\n"
            f"for port in {VXLAN}, {open_.getsockname()[1]}:\n"
            f"    each.sendto(b'one', ({HERE!r}, port))\n"
            f"    each.sendto(b'one', ({FROM_FAR!r}, port))\n"
        )
        sent = site.cli(
            *("run", "--workdir", ".", "--devices", "1", "--json"),
            *("--", "python", "-c", program),
            user=USER,
        )
        site.wait_for(json.loads(sent.stdout)["id"], "succeeded", user=USER)
        open_.settimeout(20)
        assert open_.recv(10) == b"one"
        closed.setblocking(False)
        with pytest.raises(BlockingIOError):
            closed.recv(10)


def test_networks_of_running_jobs_are_removed_with_the_installation(
    site: Installation, engines: TwoEngines, tmp_path: Path
) -> None:
    job = run(site, tmp_path, WAITING.replace('"go"', '"never"'))
    site.wait_for(job, "running", user=USER)
    assert len(engines.overlays()) == 1
    site.down()
    assert engines.overlays() == []
