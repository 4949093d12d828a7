"""A whole installation with real containers."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import httpx

from .. import plain_http
from ..docker_engine import DockerEngine, site_file
from ..e2e.support import Installation, eventually, installation

CONFIG = """
c.DockerSpawner.volumes = {{"{data}": {{"bind": "/site-data", "mode": "ro"}}}}
c.DockerSpawner.mem_limit = "700M"
c.DockerSpawner.environment = {{"SITE": "cs", "NVIDIA_VISIBLE_DEVICES": "all"}}
c.DockerSpawner.extra_host_config = {{"privileged": True, "cap_add": ["SYS_ADMIN"]}}

async def before(spawner):
    if spawner.name == "broken":
        spawner.cmd = ["sh", "-c", "echo these are my last words; exit 3"]

c.Spawner.pre_spawn_hook = before
"""
USER = "student1"
HOME_MIB = 64
LIMITED = os.geteuid() == 0 and Path("/dev/loop-control").exists()
ENDED = ("cancelled", "failed", "succeeded", "lost")
TABLE = """
memory = "512MiB"
pids = 256
tmp = "64MiB"
"""


@contextmanager
def containers_for_people(engine: DockerEngine, folder: Path) -> Iterator[Installation]:
    """One simulated device, small homes, and a site that sets everything it had better not."""
    state, data = folder / "state", folder / "data"
    data.mkdir()
    (data / "note").write_text("of the site")
    site_file(state, engine, TABLE + (f'home_size = "{HOME_MIB}MiB"\n' if LIMITED else ""))
    (state / "jupyterhub_config.py").write_text(CONFIG.format(data=data))
    course = state / "courses" / "cs101" / "data"
    course.mkdir(parents=True)
    (course / "set").write_text("of the course")
    with installation(state, "--simulated-devices", "1", "--engine", "docker") as made:
        yield made


def fill(home: Path) -> None:
    """Until no byte fits: the file system refuses early what is still to be written out, and has
    room again once it is."""
    with (home / "big").open("wb", buffering=0) as big:
        size = 1 << 20
        while size:
            assert big.tell() < HOME_MIB << 20, "more fits than a home may hold"
            try:
                big.write(bytes(size))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                size //= 2
            os.fsync(big.fileno())


def stop(site: Installation, request: dict[str, Any]) -> None:
    """As its owner does."""
    answer = site.api("DELETE", f"/requests/{request['id']}", user=USER)
    assert answer.is_success, answer.text
    ended = site.wait_for(request["id"], *ENDED, user=USER)
    assert ended["state"] in ("cancelled", "succeeded"), ended


def wait_until_free(site: Installation) -> None:
    def free() -> bool:
        pool = site.api("GET", "/pool", user=USER).json()
        return [device["state"] for device in pool["devices"]] == ["free"]

    eventually(free, "the device is free")


def containers(client: docker.APIClient, request: dict[str, Any]) -> list[dict[str, Any]]:
    """Of the request, whatever became of them."""
    label = f"carrel.request={request['id']}"
    return list(client.containers(all=True, filters={"label": [label, "carrel.kind=session"]}))


def kill_the_hub(site: Installation) -> None:
    """And wait for the one that takes its place."""
    site.kill("hub")

    def back() -> bool:
        try:
            return plain_http.get(site.hub_api, timeout=30).is_success
        except httpx.TransportError:
            return False

    eventually(back, "the hub is back")


def answers(site: Installation) -> None:
    """Through the proxy; who asks for no more than its version need not be signed in."""

    def asked() -> bool:
        try:
            answer = plain_http.get(f"{site.url}/user/{USER}/api", timeout=30)
        except httpx.TransportError:
            return False
        return answer.status_code == httpx.codes.OK and "version" in answer.text

    eventually(asked, "the session answers")
