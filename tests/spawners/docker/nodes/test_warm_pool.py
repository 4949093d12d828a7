"""The size of the warm pool, and the lease of a container, without an engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from pydantic import ValidationError

from carrel.hub.config.site import DockerTable
from carrel.hub.errors import BackendFailed, Unavailable
from carrel.spawners.docker.containers.late_mounts import mounted
from carrel.spawners.docker.containers.template import (
    KIND,
    LABEL,
    LEASE,
    WARM,
    ContainerBounds,
    Task,
    labels,
    lease_of,
)
from carrel.spawners.docker.nodes.learned_packages import LearnedPackages
from carrel.spawners.docker.nodes.warm_pool import Demand, WarmPool, targets


def demand(*times: float) -> Demand:
    made = Demand()
    for at in times:
        made.add(at)
    return made


@pytest.mark.parametrize(
    ("times", "now", "most"),
    [
        ((), 0, 0),
        ((0,), 1, 1),
        ((0, 60, 120), 121, 1),
        ((0, 5, 10), 11, 3),
        ((0, 5, 10, 16, 17, 18), 20, 4),
        ((0, 1, 2, 1000), 1801, 2),
        ((0, 1, 2, 1000), 1900, 1),
        ((0, 1, 2, 1000), 2801, 0),
    ],
)
def test_demand_is_the_most_jobs_at_once_in_the_last_half_hour(
    times: tuple[float, ...], now: float, most: int
) -> None:
    assert demand(*times).most_at_once(now) == most


def test_the_last_requested_image_comes_first_and_all_stay_below_the_limit() -> None:
    demands = {"old": demand(1, 2, 3), "new": demand(50, 51), "gone": demand()}
    assert targets(demands, 3, 60.0) == {"new": 2, "old": 1, "gone": 0}
    assert targets(demands, 0, 60.0) == {"new": 0, "old": 0, "gone": 0}
    assert targets(demands, 3, 5000.0) == {"new": 0, "old": 0, "gone": 0}


def test_the_lease_of_a_container_is_in_its_label_or_in_the_name_of_a_warm_one() -> None:
    assert lease_of("anything", {LABEL: "abc123", LEASE: "j-1.1"}) == "j-1.1"
    assert lease_of("carrel-abc123-trial", {LABEL: "abc123"}) == ""
    waiting = {LABEL: "abc123", WARM: "warm-1"}
    assert lease_of("carrel-abc123-warm-1", waiting) == ""
    assert lease_of("carrel-abc123-j-1.1", waiting) == "j-1.1"


def test_a_warm_container_has_no_owner_label() -> None:
    task = Task(
        installation="abc123",
        lease_id="",
        request_id="",
        epoch=0,
        owner="",
        kind="job",
        image="sha256:1",
        command=(),
        uid=1000,
        network="none",
        bounds=ContainerBounds(memory=1, cpus=1, pids=1, tmp=1),
        warm="warm-1",
    )
    assert labels(task) == {LABEL: "abc123", WARM: "warm-1", KIND: "job"}


def test_mount_points_are_parsed() -> None:
    assert {"/", "/proc"} <= mounted()


@pytest.mark.parametrize("number", [-1, 65, "many"])
def test_the_number_of_warm_containers_is_bounded(number: object) -> None:
    with pytest.raises(ValidationError):
        DockerTable.model_validate({"warm": number})
    assert DockerTable.model_validate({"warm": 0}).warm == 0


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def pool(folder: Path, engine: Mock, clock: Clock, free: Callable[[], int]) -> WarmPool:
    engine.containers.return_value = []
    places = Mock()
    places.names.return_value = frozenset()
    options, settings = SimpleNamespace(memory=1 << 30), SimpleNamespace(installation="abc123")
    return WarmPool(
        engine=engine,
        packages=LearnedPackages(folder=folder),
        late_mounts=places,
        jobs=Mock(options=options, settings=settings),
        limit=1,
        clock=clock,
        free_memory=free,
    )


def test_memory_can_be_released_while_a_warm_container_fails_to_start(tmp_path: Path) -> None:
    """Starts and maintenance run in different threads."""
    free, engine = [1 << 40], Mock()
    warm = pool(tmp_path, engine, Clock(), lambda: free[0])

    def no_room(*_: object) -> str:
        free[0] = 0
        warm.release_memory()
        raise BackendFailed("there is no space")

    engine.create.side_effect = no_room
    warm.expect("sha256:1")
    warm.maintain()
    assert warm.ready_count() == 0
    engine.remove.assert_not_called()


@pytest.mark.parametrize(
    ("error", "seconds"), [(Unavailable("slow"), 15), (BackendFailed("there is no space"), 300)]
)
def test_a_creation_is_repeated_sooner_if_the_engine_was_only_slow(
    tmp_path: Path, error: Exception, seconds: int
) -> None:
    clock, engine = Clock(), Mock()
    warm = pool(tmp_path, engine, clock, lambda: 1 << 40)
    warm.late_mounts.listens.return_value = True  # type: ignore[attr-defined]
    engine.create.side_effect = [error, "container-1"]
    warm.expect("sha256:1")
    ready = []
    for clock.now in (0, seconds - 1, seconds + 1):
        warm.maintain()
        ready.append(warm.ready_count())
    assert ready == [0, 0, 1]
