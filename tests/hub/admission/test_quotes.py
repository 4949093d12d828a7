"""Quotes: what a form shows before a request is submitted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.admission.quotes import Quotes
from carrel.hub.errors import Unavailable
from carrel.hub.records.requests import NewRequest
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.queries import RequestQueries
from carrel.hub.runtime.context import Context
from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.snapshot import Group, Kind
from carrel.hub.schemas import QuoteIn
from carrel.spawners.fake import FakeBackend

from ...stores import new_store
from ..doubles import STRANGER, STUDENT1, STUDENT2, Clock, FakeHub, build
from ..requests.samples import job

ONE = QuoteIn(devices=1, seconds=3600)


@pytest.fixture
def hub() -> FakeHub:
    return FakeHub()


@pytest.fixture
def context(tmp_path: Path, hub: FakeHub) -> Context:
    return build(new_store(), FakeBackend(), hub, Clock(), tmp_path, devices=1)


def granted(context: Context) -> None:
    made = JobService(context).submit(STUDENT2, job(seconds=1800))
    start = Start(request_id=made.id, devices=("SIM-0",))
    context.store.grant([start], now=context.clock(), lease_seconds=30)


def test_a_request_for_free_devices_starts_immediately(context: Context) -> None:
    (found,) = Quotes(context).quotes(STUDENT1, [ONE])
    assert (found.admitted, found.starts_now, found.sentence) == (
        True, True, "Starts immediately.",
    )  # fmt: skip  # grouped by meaning
    assert (found.group, found.device_seconds) == ("cs101", 3600)
    assert RequestQueries(context).queue(None).total == 0, "nothing was sent"


def test_a_job_is_quoted_as_it_would_be_submitted(context: Context) -> None:
    """All devices are guaranteed to others: a non-preemptible request could never start."""
    math = Group(name="math", max_devices=1, max_devices_per_user=1, guaranteed=1)
    context.store.put_group(math)
    preemptible = ONE.model_copy(update={"kind": "job"})
    lasting = preemptible.model_copy(update={"preemptible": False})

    found = Quotes(context).quotes(STUDENT1, [preemptible, lasting, ONE])

    assert [each.admitted for each in found] == [True, False, False]
    assert found[1].sentence == (
        "Because of the guaranteed quotas of other groups, cs101 can hold no device for work "
        "that cannot be preempted; you asked for 1. Ask for 0 (CPU only), or for a job that may be "
        "preempted."
    )


def test_a_quote_for_devices_in_use_has_a_wait(context: Context) -> None:
    granted(context)
    JobService(context).submit(STUDENT1, job(seconds=600))
    asked = [ONE.model_copy(update={"kind": "job"}), ONE, QuoteIn(devices=0)]
    wait, session, cpu = Quotes(context).quotes(STUDENT1, asked)
    assert (wait.place, wait.ahead, wait.starts_now) == (2, 1, False)
    assert wait.expected_at == context.clock() + 2400
    assert wait.sentence == (
        "Queued at position 2, starts in about 40 min. 1 request is ahead of it."
    )
    assert (session.place, session.ahead) == (1, 0), "a user waits for a session"
    assert (cpu.starts_now, cpu.device_seconds) == (True, 0)


def test_a_quote_names_the_maximum_per_member_that_holds_it(hub: FakeHub, tmp_path: Path) -> None:
    context = build(new_store(), FakeBackend(), hub, Clock(), tmp_path, devices=2)
    store = context.store
    store.put_group(replace(store.group("cs101"), max_devices_per_user=1))
    made = JobService(context).submit(STUDENT1, job(seconds=7200))
    start = Start(request_id=made.id, devices=("SIM-0",))
    store.grant([start], now=context.clock(), lease_seconds=30)

    (found,) = Quotes(context).quotes(STUDENT1, [ONE])

    assert found.sentence == (
        "Queued at position 1, starts in about 2 h. "
        "You already use your maximum of 1 device in cs101."
    )


def test_devices_to_reclaim_are_expected_at_the_end_of_the_grace_period(context: Context) -> None:
    """The time is not the end of the borrowers' time limits."""
    store = context.store
    store.put_group(replace(store.group("cs101"), guaranteed=1))
    store.put_group(Group(name="math", max_devices=1, max_devices_per_user=1))
    new = NewRequest(
        id="j-borrows",
        kind=Kind.JOB,
        owner="student3",
        group="math",
        devices=1,
        seconds=3600,
        preemptible=True,
        idempotency_key="borrows",
    )
    store.submit(new, context.clock())
    start = Start(request_id="j-borrows", devices=("SIM-0",))
    store.grant([start], now=context.clock(), lease_seconds=30)

    (found,) = Quotes(context).quotes(STUDENT1, [ONE])

    assert found.expected_at == context.clock() + context.grace_seconds
    assert found.sentence == (
        "Queued at position 1, starts in about 2 min. Borrowed devices would be preempted "
        "for it, after a notice to their users."
    )


def test_a_refusal_is_part_of_the_quote(context: Context) -> None:
    too_many, elsewhere, fine = Quotes(context).quotes(
        STUDENT1, [QuoteIn(devices=99), QuoteIn(group="math"), ONE]
    )
    assert not too_many.admitted
    assert too_many.message.startswith("cs101 may hold at most 4 devices")
    assert too_many.accepted == "Ask for 0 to 1."
    assert too_many.sentence == f"{too_many.message} {too_many.accepted}"
    assert (elsewhere.admitted, elsewhere.message) == (False, "There is no group 'math'.")
    assert fine.admitted


def test_a_user_without_a_group_is_told_whom_to_ask(context: Context) -> None:
    (found,) = Quotes(context).quotes(STRANGER, [ONE])
    assert not found.admitted
    assert "ask your teacher" in found.accepted


def test_without_jupyterhub_there_is_no_quote(context: Context, hub: FakeHub) -> None:
    hub.away = True
    with pytest.raises(Unavailable):
        Quotes(context).quotes(STUDENT1, [ONE])


def test_eight_choices_behind_1000_requests_cost_no_eight_decisions(tmp_path: Path) -> None:
    context = build(new_store(), FakeBackend(), FakeHub(), Clock(), tmp_path, devices=8)
    for number in range(1000):
        context.store.submit(
            NewRequest(
                id=f"j-{number}",
                kind=Kind.JOB,
                owner=f"student{number % 90}",
                group="cs101",
                devices=1 + number % 2,
                seconds=3600,
                idempotency_key=str(number),
            ),
            context.clock(),
        )
    asked = [
        QuoteIn(kind="job", devices=devices, seconds=3600 * hours)
        for devices in (0, 1)
        for hours in (1, 2, 4, 8)
    ]
    found = Quotes(context).quotes(STUDENT1, asked)
    quoted = _least(lambda: Quotes(context).quotes(STUDENT1, asked))
    decided = _least(lambda: decide(context.store.snapshot(context.clock()), context.clock()))
    assert quoted < 4 * decided
    assert found[-1].ahead == 1000 // 90, "those of its owner, whose own maximum holds it"


def _least(work: Callable[[], object]) -> float:
    """Return the least of three tries, because one may include a garbage collection.

    It is CPU time, which does not depend on other load of the machine.
    """
    took = []
    for _ in range(3):
        began = time.thread_time()
        work()
        took.append(time.thread_time() - began)
    return min(took)
