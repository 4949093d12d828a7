"""How processes inside a container are signalled before the stop."""

from __future__ import annotations

import os
import subprocess
import sys
from unittest.mock import Mock

import pytest

from carrel.spawners import processes
from carrel.spawners.docker.containers.template import WARM
from carrel.spawners.docker.engine.client import Container
from carrel.spawners.docker.nodes import container_exit
from carrel.spawners.docker.nodes.node import SurveyedContainer
from carrel.spawners.processes import lease_processes

CATCHES_USR1 = """
import signal, sys
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(7))
print("ready", flush=True)
signal.pause()
"""


def container(labels: dict[str, str]) -> SurveyedContainer:
    details = Container(
        id="c1", state="running", handle=None, exit_status=None, out_of_memory=False, error=""
    )
    return SurveyedContainer(id="c1", labels=labels, running=True, details=details)


@pytest.mark.parametrize(
    ("labels", "lease"), [({}, "j-exit-1.1"), ({WARM: "warm-exit"}, "warm-exit")]
)
def test_the_program_run_inside_a_container_signals_the_processes_of_the_lease(
    labels: dict[str, str], lease: str
) -> None:
    engine = Mock()
    container_exit.request_checkpoint(engine, container(labels), "j-exit-1.1")
    (_, command), _ = engine.run_inside.call_args
    assert command[0] == "python"
    with subprocess.Popen(
        [sys.executable, "-c", CATCHES_USR1],
        env={**os.environ, lease_processes.LEASE_VARIABLE: lease},
        stdout=subprocess.PIPE,
    ) as job:
        assert job.stdout is not None
        job.stdout.readline()
        subprocess.run([sys.executable, *command[1:]], check=True)
        assert job.wait(60) == 7


def test_images_of_any_version_have_the_module_that_this_program_imports() -> None:
    """Older images have ``carrel.spawners.processes`` as one module."""
    assert processes.ask is lease_processes.ask
    engine = Mock()
    container_exit.request_checkpoint(engine, container({}), "j-1.1")
    (_, command), _ = engine.run_inside.call_args
    assert "from carrel.spawners.processes import ask" in command[-2]
