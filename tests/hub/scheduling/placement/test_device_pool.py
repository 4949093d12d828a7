from __future__ import annotations

import pytest

from carrel.hub.scheduling.model.snapshot import Device, Health, PendingRequest
from carrel.hub.scheduling.placement.device_pool import DevicePool, largest_node

from ..values import allocation, device, node, pending

ONE = pending("one")
TWO = pending("two", 2)
BIG_AND_SMALL = (*node("a", 4), *node("b", 2))


def taken(pool: DevicePool, request: PendingRequest) -> tuple[str, ...] | None:
    placed = pool.take(request)
    return placed.devices if placed else None


@pytest.mark.parametrize(
    ("devices", "held", "count", "model", "expected"),
    [
        pytest.param(
            BIG_AND_SMALL, (), 1, None, ("b0",), id="the node with the fewest left is taken"
        ),
        pytest.param(BIG_AND_SMALL, (), 2, None, ("b0", "b1"), id="an exact fit is best"),
        pytest.param(
            BIG_AND_SMALL, ("b0",), 2, None, ("a0", "a1"), id="devices of two nodes do not add up"
        ),
        pytest.param(
            BIG_AND_SMALL, ("a1", "b0", "b1"), 2, None, ("a0", "a2"), id="held devices are left out"
        ),
        pytest.param(BIG_AND_SMALL, (), 5, None, None, id="more than any node has is not placed"),
        pytest.param(
            (*node("b", 2), *node("a", 2)), (), 1, None, ("a0",), id="equal nodes go by name"
        ),
        pytest.param(
            tuple(reversed(node("a", 12))), (), 2, None, ("a0", "a1"), id="devices go by index"
        ),
        pytest.param(
            (*node("a", 2, model="A100"), *node("b", 4)),
            (),
            1,
            "H200",
            ("b0",),
            id="only devices of the model will do",
        ),
        pytest.param(
            (device("a0", model="A100"), device("a1"), device("a2"), *node("b", 3)),
            (),
            2,
            "H200",
            ("a1", "a2"),
            id="what is left over counts devices of the model",
        ),
        *(
            pytest.param(
                (device("a0", health=health), device("a1")),
                (),
                1,
                None,
                ("a1",),
                id=f"a {health} device is not lent",
            )
            for health in (Health.BUSY, Health.SICK, Health.GONE)
        ),
        pytest.param((), (), 1, None, None, id="an empty pool places nothing"),
    ],
)
def test_best_fit(
    devices: tuple[Device, ...],
    held: tuple[str, ...],
    count: int,
    model: str | None,
    expected: tuple[str, ...] | None,
) -> None:
    pool = DevicePool(devices, [allocation("j", *held)])

    assert taken(pool, pending("r", count, model=model)) == expected


def test_devices_are_taken_once_and_can_be_released() -> None:
    pool = DevicePool(node("a", 3), ())

    assert taken(pool, TWO) == ("a0", "a1")
    assert not pool.fits(TWO)
    assert taken(pool, TWO) is None
    pool.release(allocation("j", "a0", "a0", "not of this pool"))
    assert pool.fits(TWO)
    assert taken(pool, TWO) == ("a0", "a2")
    assert taken(pool, ONE) is None


def test_a_copy_is_independent() -> None:
    pool = DevicePool(node("a", 2), ())
    copied = pool.copy()

    assert taken(copied, TWO) == ("a0", "a1")
    assert (pool.free_count(), copied.free_count()) == (2, 0)


def test_free_devices_are_counted_by_model() -> None:
    pool = DevicePool([*node("a", 2), *node("b", 3, model="A100")], [allocation("j", "b0")])

    assert [pool.free_count(model) for model in (None, "H200", "A100", "V100")] == [4, 2, 2, 0]
    assert [pool.total_count(model) for model in (None, "A100")] == [5, 3]


def test_an_unhealthy_device_does_not_become_free_when_its_lease_ends() -> None:
    pool = DevicePool([device("a0", health=Health.SICK)], [allocation("j", "a0")])

    pool.release(allocation("j", "a0"))

    assert taken(pool, ONE) is None


def test_potential_fit_counts_held_devices_and_no_broken_ones() -> None:
    pool = DevicePool(
        [*node("a", 2), device("a2", health=Health.SICK)], [allocation("j", "a0", "a1")]
    )

    assert pool.could_fit(TWO)
    assert not pool.could_fit(pending("three", 3))
    assert not pool.could_fit(pending("other", model="A100"))


def test_the_largest_node_counts_devices_that_do_not_work() -> None:
    devices = (*node("a", 2), *node("b", 3, health=Health.GONE))

    assert largest_node(devices) == 3
    assert largest_node(devices, "A100") == 0
    assert largest_node(()) == 0
