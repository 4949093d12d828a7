"""Secrets of a job on a cluster: in its processes, and in nothing that Slurm keeps or shows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.hub.interfaces.backend import LaunchOrder, ProcessState
from carrel.hub.interfaces.backend_settings import BackendSettings
from carrel.hub.records.requests import JobSpec
from carrel.spawners.slurm.backend import SlurmBackend

from ..fake_service import eventually
from ..spawners.fake_service import FakeService
from .cluster import SlurmCluster

pytestmark = pytest.mark.slurm
VALUE = "tok-8f14e45fceea167a"
CODE = """
import os, time
key = open(os.environ["CARREL_SECRETS"] + "/KEY").read()
print(key == os.environ["TOKEN"], len(key), key, flush=True)
while not os.path.exists("described"):
    time.sleep(0.05)
"""


@pytest.fixture
def service() -> Iterator[FakeService]:
    made = FakeService().up()
    made.secrets = {"files": {"KEY": VALUE}, "variables": {"TOKEN": VALUE}, "missing": ""}
    yield made
    made.down()


def command_lines() -> str:
    """Return the command lines of all processes, as every user sees them."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                found.append((folder / "cmdline").read_text("latin-1"))
            except OSError:
                continue
    return "\n".join(found)


def test_the_value_of_a_secret_is_in_the_job_and_in_nothing_that_describes_it(
    slurm: SlurmCluster, service: FakeService, tmp_path: Path
) -> None:
    settings = BackendSettings(
        state=tmp_path, service_url=service.url, installation="c0ffee", slurm=slurm.options()
    )
    backend = SlurmBackend(settings, fresh_seconds=0)
    folder, home = tmp_path / "outputs" / "j-secrets" / "1", tmp_path / "home"
    for each in (folder, home):
        each.mkdir(mode=0o700, parents=True)
    order = LaunchOrder(
        lease_id="j-secrets.1",
        request_id="j-secrets",
        epoch=1,
        owner="student1",
        devices=(),
        job=JobSpec(
            notebook_name="",
            command=("python3", "-c", CODE),
            secrets=("KEY:file", "TOKEN:env=TOKEN"),
        ),
        seconds=600,
        token="the-token",
        folder=folder,
        input_path=folder.parent / "input.ipynb",
        home=home,
    )
    handle = backend.start(order)
    log = folder / "log.txt"
    eventually(lambda: log.exists() and "True 20 ***" in log.read_text())
    (job,) = backend.client.live_jobs("c0ffee").values()
    shown = slurm.run("scontrol", "show", "job", "--details", str(job.id))
    script = slurm.run("scontrol", "write", "batch_script", str(job.id), "-")
    lines = command_lines()
    assert (order.lease_id in shown + script, "CARREL_SECRETS" in lines) == (True, True)
    described = [shown, script, lines, everything(slurm.folder)]
    (home / "described").touch()
    service.wait_for_event("ended")
    gone = {order.lease_id: handle}
    eventually(lambda: backend.status(gone)[order.lease_id].life is ProcessState.DEAD)
    described += [everything(slurm.folder), everything(tmp_path), str(service.events)]
    described += [slurm.run("sacct", "--json", "-j", str(job.id))]
    for text in described:
        assert VALUE not in text


def everything(folder: Path) -> str:
    """Return the content of all files, those of daemons included, which come and go."""
    found = []
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "data"]  # the database: see sacct
        for name in names:
            try:
                if (file := Path(path, name)).is_file():
                    found.append(file.read_text("latin-1"))
            except OSError:
                continue
    return "\n".join(found)
