"""Contract of the store: decayed past usage, and preemptibility of requests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.interfaces.store import Store
from carrel.hub.records.events import NewEvent
from carrel.hub.records.ledger import LedgerKind
from carrel.hub.records.requests import Cause, CauseCode
from carrel.hub.scheduling.model.snapshot import DecayedUsage, PriorityClass
from carrel.hub.scheduling.model.states import State
from carrel.hub.transitions import lifecycle

from .conftest import NewStore
from .store_kit import LAB, furnish, granted, job, running, session

HALF_LIFE = 3600.0
STEP = 0.5


@pytest.fixture
def fading(make_store: NewStore) -> Store:
    """A store in which past usage decays within hours."""
    made = make_store(half_life=HALF_LIFE)
    furnish(made)
    return made


def naive(store: Store, at: float) -> dict[tuple[str, str], float]:
    """Return the decayed sum of the ledger, second by second."""
    found: dict[tuple[str, str], float] = {}
    for line in store.ledger():
        rate = line.device_seconds / (line.ends_at - line.starts_at)
        steps = round((line.ends_at - line.starts_at) / STEP)
        counts = sum(
            rate * STEP * 0.5 ** ((at - (line.starts_at + (i + 0.5) * STEP)) / HALF_LIFE)
            for i in range(steps)
        )
        key = line.group, line.owner
        found[key] = found.get(key, 0.0) + counts
    return found


def shown(store: Store, now: float) -> dict[tuple[str, str], float]:
    return {(use.group, use.owner): use.device_seconds for use in store.snapshot(now).use}


class TestUse:
    def test_decayed_usage_equals_the_naive_sum_over_the_ledger(self, fading: Store) -> None:
        fading.put_group(replace(LAB, name="cs"))
        lease = running(fading, job("a", devices=2), "D0", "D1", at=0)
        for now in (60.0, 120.0, 1000.0):
            fading.renew({lease.id: now}, until=now + 30)
            fading.charge([lease.id], now=now)
        fading.apply_to_lease(lease.id, lifecycle.lose, LOST, now=1300, charge_until=1300)
        other = running(fading, replace(job("b", owner="bob"), group="cs"), "D0", at=1300)
        fading.apply_to_lease(other.id, lifecycle.lose, LOST, now=5000, charge_until=5000)
        # Read repeatedly: older sums decay, and new entries are added.
        for now in (5010.0, 5050.0, 9000.0):
            assert shown(fading, now) == pytest.approx(naive(fading, (now // 60 + 1) * 60))
        again = running(fading, job("c"), "D0", at=9000)
        fading.apply_to_lease(again.id, lifecycle.lose, LOST, now=9100, charge_until=9100)
        assert shown(fading, 9110) == pytest.approx(naive(fading, 9120))
        assert shown(fading, 30_000) == pytest.approx(naive(fading, 30_060), rel=2e-3)

    def test_decayed_usage_is_constant_within_a_minute(self, fading: Store) -> None:
        lease = running(fading, job("a"), "D0", at=0)
        fading.apply_to_lease(lease.id, lifecycle.lose, LOST, now=30, charge_until=30)
        assert fading.snapshot(61).use == fading.snapshot(119).use
        assert fading.snapshot(61).use != fading.snapshot(121).use

    def test_a_credit_removes_the_usage(self, fading: Store) -> None:
        lease = running(fading, job("a"), "D0", at=0)
        for now in (60.0, 120.0):
            fading.renew({lease.id: now}, until=now + 30)
            fading.charge([lease.id], now=now)
        assert fading.snapshot(130).use != ()
        fading.apply(
            "j-a", lifecycle.halt, Cause(code=CauseCode.DEVICE_FAULT, message="It failed."), now=130
        )
        fading.apply_to_lease(lease.id, lifecycle.finish, now=131, charge_until=131)
        assert [line.kind for line in fading.ledger()][-1] is LedgerKind.CREDIT
        assert fading.snapshot(140).use == ()

    def test_old_usage_no_longer_counts(self, fading: Store) -> None:
        lease = running(fading, job("a"), "D0", at=0)
        fading.apply_to_lease(lease.id, lifecycle.lose, LOST, now=600, charge_until=600)
        assert shown(fading, 600 + 40 * HALF_LIFE) == {} or shown(
            fading, 600 + 40 * HALF_LIFE
        ) == pytest.approx({("lab", "ada"): 0.0}, abs=1e-3)

    def test_usage_is_kept_by_owner_and_group(self, store: Store) -> None:
        for name in ("a", "b"):
            lease = running(store, job(name), "D0", at=0)
            store.apply_to_lease(lease.id, lifecycle.lose, LOST, now=60, charge_until=60)
        (use,) = store.snapshot(60).use
        assert use == DecayedUsage(
            group="lab", owner="ada", device_seconds=pytest.approx(120, rel=1e-3)
        )


LOST = Cause(code=CauseCode.LOST, message="Gone.")


class TestPreemptibility:
    def test_a_request_is_stored_with_its_preemptibility(self, store: Store) -> None:
        asked = replace(
            job("a"),
            priority=PriorityClass.OPPORTUNISTIC,
            preemptible=True,
            deadline=900.0,
            expected=120.0,
        )
        made = store.submit(asked, 100)
        assert (made.preemptible, made.deadline, made.expected) == (True, 900.0, 120.0)
        assert store.request("j-a") == made
        (waiting,) = store.snapshot(100).pending
        assert (waiting.priority, waiting.preemptible) == (PriorityClass.OPPORTUNISTIC, True)
        assert (waiting.deadline, waiting.expected) == (900.0, 120.0)

    def test_an_allocation_has_the_kind_and_preemptibility_of_its_request(
        self, store: Store
    ) -> None:
        asked = replace(job("a"), preemptible=True, expected=120.0, priority=PriorityClass.URGENT)
        lease = running(store, asked, "D0", at=100)
        granted(store, session("b"), "D1", at=101)
        first, second = store.snapshot(102).allocations
        assert (first.kind, first.priority, first.preemptible) == (
            asked.kind,
            PriorityClass.URGENT,
            True,
        )
        assert (first.expected, first.saved_at, first.leaving) == (120.0, None, False)
        assert (second.kind, second.preemptible) == (session("b").kind, False)
        store.add_events(lease.id, [NewEvent(seq=1, at=110, kind="saved")])
        assert store.snapshot(120).allocations[0].saved_at == 110
        store.apply("j-a", lifecycle.stop, State.FAILED, LOST, now=130)
        assert store.snapshot(130).allocations[0].leaving
