"""Hooks and fixtures of all tests: the distribution to workers, a Docker engine and its images."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from carrel.hub.config.garbage_collection import raise_thresholds

from . import docker_engine as engines
from .distribution import BackgroundImageBuild, GroupScheduling, in_order
from .property_settings import QUICK
from .slurm.cluster import SlurmCluster, slurm_cluster

# The default; --hypothesis-profile replaces it.
settings.load_profile(QUICK)
# Collecting garbage took a twentieth of the time of a worker.
raise_thresholds()
BUILD = pytest.StashKey[BackgroundImageBuild]()


def pytest_configure(config: pytest.Config) -> None:
    """Start the image build of this run, in the process that starts the workers."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell runs commands in the background so; the programs under test would inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("dist", "no") == "loadfile" and not hasattr(config, "workerinput"):
        build = config.stash[BUILD] = BackgroundImageBuild()
        config.option.testrunuid = build.run
        config.option.loadscopereorder = False
        config.add_cleanup(build.close)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items[:] = in_order(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config) -> LoadScopeScheduling | None:
    return GroupScheduling(config) if BUILD in config.stash else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: object, ids: Sequence[str]) -> None:
    config: pytest.Config = node.config  # type: ignore[attr-defined]
    if BUILD in config.stash:
        config.stash[BUILD].wanted_by(ids)


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[engines.DockerEngine]:
    with engines.docker_engine() as engine:
        yield engine


@pytest.fixture(scope="session")
def slurm_for_all() -> Iterator[SlurmCluster]:
    with slurm_cluster() as cluster:
        yield cluster


@pytest.fixture
def slurm(slurm_for_all: SlurmCluster) -> Iterator[SlurmCluster]:
    """A real Slurm without jobs, shared by the tests of one worker."""
    yield slurm_for_all
    slurm_for_all.empty()


@pytest.fixture(scope="session")
def base_image(docker_engine: engines.DockerEngine) -> str:
    """The id of the base image, which is built at the first use."""
    return engines.base_image(docker_engine)


@pytest.fixture(scope="session")
def grading_image(docker_engine: engines.DockerEngine, base_image: str) -> str:
    """The id of the image for grading, which is built at the first use."""
    return engines.grading_image(docker_engine, base_image)
