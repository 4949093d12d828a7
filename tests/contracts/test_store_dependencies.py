"""Requests that wait for others, and jobs that resume others, are found in every store."""

from __future__ import annotations

from dataclasses import replace

from carrel.hub.interfaces.store import Store
from carrel.hub.records.dependencies import FoundResult, ResultParameter
from carrel.hub.records.requests import JobSpec, NewRequest, RequestFilter
from carrel.hub.scheduling.model.snapshot import UNTIL_RELEASED, Kind
from carrel.hub.scheduling.model.states import State
from carrel.hub.transitions import lifecycle, owner_changes

from .store_kit import CANCELLED, furnish, job


def waits(name: str, *after: str) -> NewRequest:
    spec = JobSpec(notebook_name="train.ipynb", after=after)
    return replace(job(name), job=spec, not_before=UNTIL_RELEASED)


def held(store: Store) -> list[str]:
    return [record.id for record in store.requests(RequestFilter(held=True))]


def test_requests_are_held_until_they_are_released_or_end(store: Store) -> None:
    furnish(store)
    store.submit(job("a"), 1.0)
    for name in ("b", "c"):
        store.submit(waits(name, "j-a:any"), 2.0)
    assert held(store) == ["j-c", "j-b"]
    pending = {each.id: each.is_held for each in store.snapshot(3.0).pending}
    assert pending == {"j-a": False, "j-b": True, "j-c": True}
    record = store.request("j-b")
    assert record.job is not None
    assert record.job.after == ("j-a:any",)

    for _ in range(2):  # repeating it changes nothing
        store.apply("j-b", owner_changes.release, now=4.0)
    assert held(store) == ["j-c"]
    assert not any(each.is_held for each in store.snapshot(5.0).pending if each.id != "j-c")
    store.apply("j-c", lifecycle.stop, State.CANCELLED, CANCELLED, now=6.0)
    assert held(store) == []


def test_values_of_other_jobs_are_stored_once_when_a_request_is_released(store: Store) -> None:
    furnish(store)
    store.submit(job("a"), 1.0)
    wanted = ResultParameter(name="lr", job="j-a", value="best.lr")
    spec = JobSpec(
        notebook_name="eval.ipynb", parameters={"n": 1}, after=("j-a",), results=(wanted,)
    )
    store.submit(replace(job("b"), job=spec, not_before=UNTIL_RELEASED), 2.0)
    before = store.request("j-b")
    assert before.job == spec

    found = {"lr": FoundResult(value=0.1, source="j-a2")}
    store.apply("j-b", owner_changes.release, found, now=3.0)
    later = {"lr": FoundResult(value=0.2, source="j-a3")}
    store.apply("j-b", owner_changes.release, later, now=4.0)
    after = store.request("j-b")
    released = replace(
        spec, parameters={"n": 1, "lr": 0.1}, results=(replace(wanted, source="j-a2"),)
    )
    assert after == replace(before, job=released, not_before=None)


def test_jobs_that_wait_for_others_are_found_however_far_they_are(store: Store) -> None:
    furnish(store)
    store.submit(job("a"), 1.0)
    for number, (name, *after) in enumerate(
        [("b", "j-a"), ("c", "j-a:any", "j-b"), ("d", "j-b"), ("e", "j-aa", "j-%")]
    ):
        store.submit(waits(name, *after), 2.0 + number)
    store.apply("j-b", owner_changes.release, now=9.0)
    for ids, since, expected in [
        ({"j-a"}, None, ["j-c", "j-b"]),
        ({"j-a", "j-b", "j-x"}, None, ["j-d", "j-c", "j-b"]),
        ({"j-a"}, 2.5, ["j-c"]),
        ({"j-"}, None, []),
        ({"%"}, None, []),
        (set[str](), None, []),
    ]:
        which = RequestFilter(
            owner=job("a").owner, kind=Kind.JOB, after=frozenset(ids), since=since
        )
        assert [record.id for record in store.requests(which)] == expected
    held_ones = store.requests(RequestFilter(held=True, after=frozenset({"j-a"})))
    assert [record.id for record in held_ones] == ["j-c"]


def test_jobs_that_resume_others_are_found_by_owner(store: Store) -> None:
    furnish(store)
    store.submit(job("a"), 1.0)
    spec = JobSpec(notebook_name="train.ipynb", resumes="j-a")
    store.submit(replace(job("b"), job=spec), 2.0)
    for ids, expected in (({"j-a", "j-b"}, ["j-b"]), ({"j-b"}, []), (set[str](), [])):
        which = RequestFilter(owner=job("a").owner, kind=Kind.JOB, resumes=frozenset(ids))
        assert [record.id for record in store.requests(which)] == expected
