"""A session or a job sees only its leased devices, and shares nothing with others."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

import pytest

from ..e2e.support import Installation
from .kernels import Kernel
from .support import home, leader, running_session, submit

SHOWN = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "CARREL_DEVICES")
PRINT_THEM = f"import json, os; print(json.dumps({{k: os.environ.get(k) for k in {SHOWN}}}))"


def test_case_6_a_session_and_a_job_see_exactly_their_leased_devices(desk: Installation) -> None:
    """Although ``carrel up`` was started with NVIDIA_VISIBLE_DEVICES=all."""
    names = {d["id"]: f"{d['model']} {n} (simulated)" for n, d in enumerate(_devices(desk))}
    session = running_session(desk, "student1")
    job = submit(desk, "student3", PRINT_THEM)
    bare = running_session(desk, "student2", devices=0)
    bare_job = submit(desk, "student3", PRINT_THEM, devices=0)

    (mine,) = _leased(desk, session, "student1")
    shown = {
        "CUDA_VISIBLE_DEVICES": mine,
        # The container runtime never hears of devices that it does not know.
        "NVIDIA_VISIBLE_DEVICES": "void",
        "CARREL_DEVICES": names[mine],
    }
    assert _of_process(desk, session, "student1") == shown
    kernel = Kernel.start(desk, "student1")
    assert json.loads(kernel.run(PRINT_THEM)) == shown
    # Setting it inside a session changes that process alone: a new kernel has the lease again.
    kernel.run("import os; os.environ['NVIDIA_VISIBLE_DEVICES'] = 'all'")
    assert json.loads(Kernel.start(desk, "student1").run(PRINT_THEM)) == shown

    desk.wait_for(job, "succeeded", user="student3")
    (other,) = _leased(desk, job, "student3")
    assert other != mine
    assert _printed(desk, job) == shown | {
        "CUDA_VISIBLE_DEVICES": other,
        "CARREL_DEVICES": names[other],
    }

    nothing = {
        "CUDA_VISIBLE_DEVICES": "",
        "NVIDIA_VISIBLE_DEVICES": "void",
        "CARREL_DEVICES": "",
    }
    assert _of_process(desk, bare, "student2") == nothing
    desk.wait_for(bare_job, "succeeded", user="student3")
    assert _printed(desk, bare_job) == nothing


@pytest.mark.slow  # spawners/sessions/test_local.py shows it of a hub with the spawner alone
def test_case_30_names_that_look_alike_share_nothing(desk: Installation) -> None:
    """Of people (a.b, a-b, a_b), and of a person with a server (a-b + c, a + b-c)."""
    people = {"a.b": "", "a_b": "", "a-b": "c", "a": "b-c"}
    for name in people:
        desk.cli(
            *("user", "add", name, "--group", "cs101", "--state", str(desk.state)),
            "--password-stdin",
            input="correct horse battery\n",
        )
        desk.passwords[name] = "correct horse battery"
    started = {
        name: desk.start_session(name, server, devices=0)["id"] for name, server in people.items()
    }
    for name, request in started.items():
        desk.wait_for(request, "running", user=name)
    found = {name: leader(desk, request, user=name) for name, request in started.items()}
    environments = {name: process.environ() for name, process in found.items()}
    for what in ("HOME", "CARREL_LEASE", "JUPYTERHUB_API_TOKEN", "JUPYTERHUB_SERVICE_PREFIX"):
        assert len({environment[what] for environment in environments.values()}) == len(people)
    assert {name: process.cwd() for name, process in found.items()} == {
        name: str(home(desk, name)) for name in people
    }
    logs = {os.readlink(f"/proc/{process.pid}/fd/1") for process in found.values()}
    assert len(logs) == len(people)


def _devices(site: Installation) -> list[Mapping[str, str]]:
    return list(site.api("GET", "/pool", user="student1").json()["devices"])


def _leased(site: Installation, request: str, user: str) -> list[str]:
    return [device["id"] for device in site.request(request, user=user)["lease"]["devices"]]


def _of_process(site: Installation, session: str, user: str) -> dict[str, str | None]:
    environment = leader(site, session, user=user).environ()
    return {name: environment.get(name) for name in SHOWN}


def _printed(site: Installation, job: str) -> dict[str, str | None]:
    notebook = json.loads(site.cli("output", job, "-o", "-", user="student3").stdout)
    text = "".join("".join(o["text"]) for cell in notebook["cells"] for o in cell["outputs"])
    return dict(json.loads(text))
