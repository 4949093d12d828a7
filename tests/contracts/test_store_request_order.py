"""Contract of the store: lists of requests in several orders, page by page."""

from __future__ import annotations

import pytest

from carrel.hub.interfaces.store import Store
from carrel.hub.records.requests import RequestFilter, RequestOrder
from carrel.hub.transitions import lifecycle

from .store_kit import DEAD, device, furnish, job, running


@pytest.fixture
def filled(store: Store) -> Store:
    """One waits, one has run since 150, two ran for 30 s, one for 5 s; some have two devices."""
    furnish(store)
    store.sync_devices("n1", [device(f"D{number}", number) for number in range(4)])
    store.submit(job("waiting", devices=2), 90.0)
    for name, start, end in (("a", 100.0, 130.0), ("b", 100.0, 105.0), ("c", 120.0, 150.0)):
        lease = running(store, job(name), "D0", at=start)
        store.apply_to_lease(lease.id, lifecycle.lose, DEAD, now=end, charge_until=end)
    running(store, job("runs", devices=2), "D1", "D2", at=150.0)
    return store


@pytest.mark.parametrize(
    ("order", "names"),
    [
        (RequestOrder.NEWEST, ["runs", "c", "b", "a", "waiting"]),
        (RequestOrder.OLDEST, ["waiting", "a", "b", "c", "runs"]),
        (RequestOrder.LONGEST, ["runs", "c", "a", "b", "waiting"]),
        (RequestOrder.SHORTEST, ["waiting", "b", "c", "a", "runs"]),
        (RequestOrder.MOST_DEVICES, ["runs", "waiting", "c", "b", "a"]),
        (RequestOrder.FEWEST_DEVICES, ["c", "b", "a", "runs", "waiting"]),
    ],
)
def test_pages_in_an_order_have_every_request_once(
    filled: Store, order: RequestOrder, names: list[str]
) -> None:
    found: list[str] = []
    while len(found) <= len(names):
        before = found[-1] if found else None
        page = filled.requests(
            RequestFilter(order=order, now=250.0, before=before, limit=2, owner="ada")
        )
        if not page:
            break
        found += [request.id for request in page]
    assert found == [f"j-{name}" for name in names]
