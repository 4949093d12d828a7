"""The size of the warm pool, and the lease of a container, without an engine."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from pydantic import ValidationError

from carrel.hub.config.site import DockerTable
from carrel.hub.errors import BackendFailed
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


def test_memory_can_be_released_while_a_warm_container_fails_to_start(tmp_path: Path) -> None:
    """Starts and maintenance run in different threads."""
    free = [1 << 40]
    engine = Mock()
    engine.containers.return_value = []
    places = Mock()
    places.names.return_value = frozenset()
    options, settings = SimpleNamespace(memory=1 << 30), SimpleNamespace(installation="abc123")
    jobs = Mock(options=options, settings=settings)
    pool = WarmPool(
        engine=engine,
        packages=LearnedPackages(folder=tmp_path),
        late_mounts=places,
        jobs=jobs,
        limit=1,
        clock=iter(range(0, 10_000, 2)).__next__,
        free_memory=lambda: free[0],
    )

    def no_room(*_: object) -> str:
        free[0] = 0
        pool.release_memory()
        raise BackendFailed("there is no space")

    engine.create.side_effect = no_room
    pool.expect("sha256:1")
    pool.maintain()
    assert pool.ready_count() == 0
    engine.remove.assert_not_called()
