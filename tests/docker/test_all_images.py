"""Build the images above base as an administrator does: needs a package index."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.images import recipes
from carrel.images.docker_cli import Docker

from ..docker_engine import ROOT, DockerEngine, site_file
from ..e2e import camera_traps
from ..e2e.support import CARREL, Installation, installation
from ..requirements import need

pytestmark = [pytest.mark.docker, pytest.mark.slow]

ABOVE_BASE = ("datascience", "jax", "torch", "spark", "grading")
DIGITS = ROOT / "courses" / "sample" / "digits.ipynb"
NETWORK_TOOLS = ("pip", "apt", "apt-get", "curl", "wget", "nft", "ssh", "nc")


@pytest.fixture(scope="module")
def built(
    docker_engine: DockerEngine, base_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Docker:
    """All of them, on the base image of these tests."""
    # Not every index has the CPU build of PyTorch: it is fetched here, as the how-to says.
    wheels = tmp_path_factory.mktemp("wheels")
    torch = f"torch=={recipes.locked(recipes.find('torch'))['torch']}"
    asked = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", torch]
    fetched = subprocess.run(asked, cwd=wheels, check=False, capture_output=True).returncode == 0
    need("index", fetched, f"no package index gives {torch}")
    docker = Docker(docker_engine.url)
    docker.ask("tag", base_image, "carrel/base:latest")
    carrel(docker_engine, "images", "build", "--wheelhouse", str(wheels), *ABOVE_BASE)
    return docker


@pytest.fixture
def site(built: Docker, docker_engine: DockerEngine, tmp_path: Path) -> Iterator[Installation]:
    site_file(tmp_path / "state", docker_engine)
    with installation(tmp_path / "state", "--engine", "docker") as made:
        yield made


def carrel(engine: DockerEngine, *words: str) -> str:
    environment = {**os.environ, "DOCKER_HOST": engine.url}
    done = subprocess.run(
        [CARREL, *words], env=environment, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run(docker: Docker, name: str, *words: str) -> str:
    return docker.ask("run", "--rm", "--network", "none", f"carrel/{name}:latest", *words)


@pytest.mark.parametrize("name", ABOVE_BASE)
def test_the_lock_gives_its_packages_and_no_others(
    built: Docker, docker_engine: DockerEngine, name: str
) -> None:
    said = carrel(docker_engine, "images", "verify", name)
    assert re.search(r"has exactly the \d+ packages of its lock files", said)


def test_torch_shares_the_layers_of_datascience(built: Docker) -> None:
    def layers(name: str) -> list[str]:
        (found,) = json.loads(built.ask("image", "inspect", f"carrel/{name}:latest"))
        return list(found["RootFS"]["Layers"])

    below, above = layers("datascience"), layers("torch")
    assert above[: len(below)] == below


def test_grading_has_no_network_tools(built: Docker) -> None:
    lookup = "; ".join(f"command -v {tool}" for tool in NETWORK_TOOLS)
    assert run(built, "grading", "sh", "-c", f"PATH=$PATH:/usr/sbin:/sbin; {lookup}; true") == ""


def test_the_sample_notebook_runs_in_datascience(built: Docker) -> None:
    said = built.ask(
        *("run", "--rm", "--network", "none", "--volume", f"{DIGITS}:/digits.ipynb:ro"),
        *("carrel/datascience:latest", "papermill", "/digits.ipynb", "/tmp/out.ipynb"),
        *("--log-output", "--no-progress-bar"),
    )
    assert "Traceback" not in said


def test_camera_traps_are_told_apart_by_a_job_in_spark(site: Installation, tmp_path: Path) -> None:
    camera_traps.check(camera_traps.job(site, tmp_path, "--image", "spark"))
