"""What all tests use: the distribution to workers, and a Docker engine with images in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from . import docker_engine as engines
from .distribution import BackgroundImageBuild, GroupScheduling, in_order
from .property_settings import QUICK

# Until pytest loads the one that --hypothesis-profile names.
settings.load_profile(QUICK)
BUILD = pytest.StashKey[BackgroundImageBuild]()


def pytest_configure(config: pytest.Config) -> None:
    """In the process that has workers: the images are built for their run."""
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
def base_image(docker_engine: engines.DockerEngine) -> str:
    """Its id; built at the first use."""
    return engines.base_image(docker_engine)


@pytest.fixture(scope="session")
def grading_image(docker_engine: engines.DockerEngine, base_image: str) -> str:
    """The same of the one in which submissions are graded."""
    return engines.grading_image(docker_engine, base_image)
