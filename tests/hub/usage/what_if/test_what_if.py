"""What-if replays: the ledger of a site, replayed on the site and on a changed site."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from carrel.hub.errors import Forbidden, InvalidInput, Unavailable
from carrel.hub.interfaces.store import Store
from carrel.hub.messages import what_if as what_if_messages
from carrel.hub.records.requests import RequestFilter, RequestRecord
from carrel.hub.scheduling.model.learned_order import WEIGHTS, LearnedOrder
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas.usage import WhatIfOut
from carrel.hub.simulation.workload.reader import Selection
from carrel.hub.transitions import lifecycle
from carrel.hub.usage.what_if.order import nodes_of, parse_max_quotas, read_order
from carrel.hub.usage.what_if.replay import compare
from carrel.hub.usage.what_if.service import SiteChange, WhatIfReplays
from carrel.hub.usage.what_if.site_history import read_history

from ....contracts.store_kit import DONE, device, job, running
from ....stores import new_store
from ...doubles import ADMIN, STUDENT1

NOW = 10_000.0


def site(requests: int = 4) -> Store:
    """Return a site with one device on which jobs of 100 s ran, submitted every 10 s."""
    store = new_store()
    store.put_group(Group(name="lab", max_devices=4, max_devices_per_user=4))
    store.sync_devices("n1", [device("D0", 0)])
    for number in range(requests):
        new = replace(job(f"{number}"), seconds=3600)
        lease = running(store, new, "D0", at=1000.0 + 10 * number)
        end = 1100.0 + 10 * number
        store.apply(new.id, lifecycle.stop, State.SUCCEEDED, DONE, now=end)
        store.apply_to_lease(lease.id, lifecycle.finish, now=end, charge_until=end)
    return store


def replays(store: Store) -> WhatIfReplays:
    return WhatIfReplays(store=store, clock=lambda: NOW)


def replayed_here(store: Store, query: SiteChange) -> WhatIfOut:
    """Replay without the process, but with the order as JSON that it gets."""
    return compare(read_order(replays(store).order(query).written()))


def test_more_devices_shorten_the_waits_in_a_process_with_limits() -> None:
    found = replays(site()).replay(ADMIN, SiteChange(devices="+1"))
    assert (found.requests, found.devices, found.changed_devices) == (4, 1, 2)
    now, changed = found.total.now, found.total.changed
    assert (now.median_wait_seconds, now.ninetieth_wait_seconds) == (90.0, 270.0)
    assert (changed.median_wait_seconds, changed.ninetieth_wait_seconds) == (0.0, 80.0)
    assert now.utilization == 1.0
    assert changed.utilization == pytest.approx(400 / (2 * 210))
    assert [row.name for row in found.by_group] == ["lab"]
    assert found.notes[0].startswith("It rests on 4 requests of the ledger, with the same")
    assert what_if_messages.rows(found)[0] == (
        "lab",
        "4",
        "1 min 30 s",
        "0 s",
        "4 min 30 s",
        "1 min 20 s",
    )


def test_a_lower_quota_lengthens_the_waits_and_a_quota_of_none_is_refused() -> None:
    store = site()
    store.sync_devices("n1", [device("D0", 0), device("D1", 1)])
    found = replayed_here(store, SiteChange(quotas=("lab=1",)))
    assert found.total.now.median_wait_seconds == 0.0
    assert found.total.changed.median_wait_seconds == 90.0
    with pytest.raises(InvalidInput, match="Admission would reject all jobs"):
        replayed_here(store, SiteChange(quotas=("lab=0",)))


def test_both_replays_use_the_learned_order_of_the_site() -> None:
    """The widest job is submitted last, and passes the other by a discount for wide ones."""
    store = site(0)
    store.sync_devices("n1", [device("D0", 0), device("D1", 1)])
    for number, (devices, ran) in enumerate([(2, 100.0), (1, 50.0), (2, 100.0)]):
        at = 1000.0 + 10 * number
        names = ("D0", "D1")[:devices]
        lease = running(store, job(f"{number}", devices=devices), *names, at=at)
        store.apply(f"j-{number}", lifecycle.stop, State.SUCCEEDED, DONE, now=at + ran)
        store.apply_to_lease(lease.id, lifecycle.finish, now=at + ran, charge_until=at + ran)
    weights = (0.0, 0.0, 10.0, *(WEIGHTS - 3) * (0.0,))
    query = SiteChange(quotas=("lab=4",))
    plain = compare(replays(store).order(query))
    order = replace(replays(store), learned_order=LearnedOrder(name="long", weights=weights))
    learned = compare(read_order(order.order(query).written()))
    assert learned.notes[-1] == "Both replays use the learned order long, as the queue does."
    assert plain.total.now.median_wait_seconds == 90.0
    assert learned.total.now.median_wait_seconds == 80.0
    assert "learned" not in " ".join(plain.notes)


def test_a_history_of_three_rows_says_so() -> None:
    assert "rests on 3 requests" in replayed_here(site(3), SiteChange(devices="+4")).notes[0]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (SiteChange(), "Nothing would change"),
        (SiteChange(devices="nan"), "Nodes cannot be 'nan'"),
        (SiteChange(devices="+25x1000"), "25,000 devices are too many"),
        (SiteChange(devices="+0"), "Nodes cannot be"),
        (SiteChange(devices="+4", days=float("nan")), "number of days"),
        (SiteChange(quotas=("physics=2",)), "There is no group physics"),
        (SiteChange(quotas=("lab=nan",)), "'lab=nan' is not accepted"),
        (SiteChange(quotas=("lab",)), "'lab' is not accepted"),
    ],
)
def test_a_change_that_is_not_accepted_is_explained(query: SiteChange, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        replays(site(1)).replay(ADMIN, query)


def test_without_a_history_there_is_nothing_to_replay() -> None:
    with pytest.raises(InvalidInput, match="there are no requests"):
        replays(new_store()).replay(ADMIN, SiteChange(devices="+4"))


def test_replays_are_for_administrators() -> None:
    with pytest.raises(Forbidden):
        replays(site(1)).replay(STUDENT1, SiteChange(devices="+4"))


def test_numbers_of_devices_are_nodes() -> None:
    assert [nodes_of(text) for text in ("+4", " +2x8 ", "6x8", "")] == [
        "+1x4",
        "+2x8",
        "6x8",
        None,
    ]
    assert parse_max_quotas(("cs101=8", "lab = 0")) == {"cs101": 8, "lab": 0}


def test_requests_before_the_period_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two are older by more than a day than the period: one is seen, and reading ends."""
    monkeypatch.setattr("carrel.hub.usage.what_if.site_history.PAGE", 1)
    store = site(4)
    pages: list[int] = []
    read = store.requests

    def counted(which: RequestFilter) -> Sequence[RequestRecord]:
        pages.append(which.limit)
        return read(which)

    monkeypatch.setattr(store, "requests", counted)
    days = 86_400.0
    since = 1015.0 + days
    with pytest.raises(InvalidInput):
        read_history(store, Selection(since=since), now=NOW + days)
    assert len(pages) == 3


def test_the_history_is_not_read_while_too_many_replays_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("carrel.hub.runtime.limited_process.WAIT_SECONDS", 0.0)
    found = replays(site(1))
    monkeypatch.setattr(type(found), "order", None)
    with found.process.slots, found.process.slots, pytest.raises(Unavailable):
        found.replay(ADMIN, SiteChange(devices="+1"))
