"""An engine whose disk is full, on a small disk of its own."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from carrel.hub.errors import BackendFailed
from carrel.hub.interfaces.backend_settings import DockerHost
from carrel.spawners.docker.engine.client import DockerClient

from ..docker_engine import DockerEngine, unmount
from ..requirements import need

pytestmark = pytest.mark.docker

DISK = "64m"


@pytest.fixture
def small(docker_engine: DockerEngine) -> Iterator[DockerEngine]:
    own = os.geteuid() == 0 and shutil.which("dockerd")
    need("docker", own, "a second Docker engine needs dockerd and root")
    # A socket's path is short: pytest's own folders are not.
    with TemporaryDirectory(prefix="carrel-full-") as name:
        folder = Path(name)
        data = folder / "data"
        data.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", data], check=True)
        engine = DockerEngine(
            url=f"unix://{folder}/docker.sock",
            folder=folder,
            data=data,
            options=("--iptables=false",),  # the first engine keeps the tables of this machine
            alone=True,
        )
        try:
            engine.start()
            yield engine
        finally:
            engine.stop()
            unmount(folder)


def tiny_image(engine: DockerEngine) -> str:
    """One with a single empty file."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("empty"))
    client = engine.client()
    client.import_image_from_data(packed.getvalue(), repository="carrel-tests/tiny")
    return str(client.inspect_image("carrel-tests/tiny")["Id"])


def fill(folder: Path) -> None:
    """To the last byte."""
    with (folder / "filling").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(folder).free)


def test_a_full_disk_is_reported_and_work_continues_once_space_is_free(small: DockerEngine) -> None:
    assert small.data is not None
    engine = DockerClient(DockerHost(node="gpu1", url=small.url))
    body = {"Image": tiny_image(small), "Cmd": ["none"], "HostConfig": {"NetworkMode": "none"}}
    engine.create("before", body)
    fill(small.data)
    with pytest.raises(BackendFailed) as refused:
        engine.create("now", body)
    assert str(refused.value) == (
        "The disk of gpu1 is full: no container can be created there. "
        "An administrator can free space: carrel images prune."
    )
    (small.data / "filling").unlink()
    engine.create("after", body)
    assert engine.inspect("now") is None
    assert engine.inspect("after") is not None
