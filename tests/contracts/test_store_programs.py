"""Contract of the store: programs, their budgets and jobs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.errors import Conflict, Forbidden, NotFound, OverMaximum
from carrel.hub.interfaces.store import Store
from carrel.hub.records.identity import Program, ProgramCharge, ProgramUsage
from carrel.hub.records.requests import JobSpec, RequestFilter
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.states import State
from carrel.hub.transitions import lifecycle

from .store_kit import CANCELLED, furnish, job

TUNER = Program(
    id="p-1", name="tuner", owner="ada", device_seconds=100.0, created_at=1.0, expires_at=50.0
)


def submit(store: Store, name: str, cost: float, *, now: float = 2.0, waits: bool = False) -> None:
    spec = JobSpec(notebook_name="", command=("true",), program="tuner")
    new = replace(job(name), owner="ada", devices=1, seconds=int(cost), job=spec)
    charge = ProgramCharge(program=TUNER, device_seconds=cost, needs_approval=waits)
    store.submit(new, now, charge=charge)


def usage(store: Store, now: float = 10.0) -> ProgramUsage:
    return store.program_usage(frozenset({"p-1"}), now)["p-1"]


@pytest.fixture(autouse=True)
def program(store: Store) -> None:
    furnish(store)
    store.add_program(TUNER, "hash", most=2)


def test_programs_are_found_by_token_and_owner(store: Store) -> None:
    assert store.program_of_token("hash") == store.program("p-1") == TUNER
    assert store.program_of_token("other") is None
    with pytest.raises(NotFound):
        store.program("p-9")
    second = replace(TUNER, id="p-2", name="other", created_at=2.0)
    store.add_program(second, "hash2", most=2)
    assert store.programs("ada") == store.programs(None) == (second, TUNER)
    assert store.programs("bob") == ()
    with pytest.raises(OverMaximum):
        store.add_program(replace(second, id="p-3", name="third"), "hash3", most=2)
    with pytest.raises(Conflict):
        store.add_program(replace(second, id="p-3"), "hash3", most=5)

    assert store.revoke_program("p-2", by="ada", now=3.0)
    assert not store.revoke_program("p-2", by="bob", now=4.0)
    assert store.program("p-2") == replace(second, revoked_at=3.0, revoked_by="ada")
    # A name that was used stays taken by the jobs of its program; a revoked one counts no more.
    with pytest.raises(Conflict, match="before"):
        store.add_program(replace(second, id="p-3"), "hash3", most=2)
    store.add_program(replace(second, id="p-3", name="third"), "hash3", most=2)


def test_the_budget_is_checked_where_the_job_is_stored(store: Store) -> None:
    submit(store, "a", 60)
    assert usage(store) == ProgramUsage(used=0.0, committed=60.0, jobs=1, live=1)
    with pytest.raises(OverMaximum):
        submit(store, "b", 41)
    assert [each.id for each in store.requests(RequestFilter())] == ["j-a"]
    submit(store, "b", 40)
    store.apply("j-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=4.0)
    assert usage(store) == ProgramUsage(used=0.0, committed=40.0, jobs=2, live=1)
    assert [each.request_id for each in store.program_jobs()] == ["j-b"]
    store.submit(job("c"), 5.0)
    assert [each.id for each in store.requests(RequestFilter(program="tuner"))] == ["j-b", "j-a"]
    with pytest.raises(Forbidden):
        submit(store, "d", 1, now=50.0)
    store.revoke_program("p-1", by="ada", now=6.0)
    with pytest.raises(Forbidden):
        submit(store, "d", 1, now=7.0)


def test_a_repeated_job_is_charged_once(store: Store) -> None:
    for _ in range(2):
        submit(store, "a", 60)
    assert usage(store).committed == 60.0


def test_a_job_is_approved_once(store: Store) -> None:
    submit(store, "a", 10, waits=True)
    submit(store, "b", 10)
    assert [each.waits for each in store.program_jobs()] == [True, False]
    assert store.approve_job("j-a", now=3.0)
    assert not store.approve_job("j-a", now=4.0)
    assert not store.approve_job("j-b", now=4.0)
    assert [each.waits for each in store.program_jobs()] == [False, False]


def test_a_running_job_counts_with_its_time_limit_and_an_ended_one_with_its_charge(
    store: Store,
) -> None:
    submit(store, "a", 60)
    start = Start(request_id="j-a", devices=(store.devices()[0].id,))
    assert [each.holds for each in store.program_jobs()] == [False]
    (lease,) = store.grant([start], now=3.0, lease_seconds=100.0)
    assert [each.holds for each in store.program_jobs()] == [True]
    assert usage(store, 13.0) == ProgramUsage(used=10.0, committed=60.0, jobs=1, live=1)
    store.renew({lease.id: 8.0}, until=100.0)
    store.charge([lease.id], now=8.0)
    assert store.charged(["j-a"]) == {"j-a": 5.0}
    assert usage(store, 13.0) == ProgramUsage(used=10.0, committed=60.0, jobs=1, live=1)
    assert store.programs_used(frozenset({"p-1"}), 13.0) == {"p-1": 10.0}
    submit(store, "b", 30)
    assert usage(store, 13.0) == ProgramUsage(used=10.0, committed=90.0, jobs=2, live=2)
