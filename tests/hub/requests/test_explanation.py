"""Explanations of queued requests for users."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.errors import NotFound
from carrel.hub.messages.explanation import ahead_sentences, why_sentences
from carrel.hub.requests.explanation import WaitExplanations
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.queries import RequestQueries
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.runtime.context import Context
from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.cycle.start_estimates import FIRST_PAGE
from carrel.hub.scheduling.explanation.explanation import (
    Explanation,
    Precedence,
    QuotaState,
    RequestsAhead,
)
from carrel.hub.scheduling.model.plan import Reason, Start, Wait
from carrel.hub.scheduling.model.snapshot import Group
from carrel.spawners.fake import FakeBackend

from ...stores import new_store
from ..doubles import STUDENT1, STUDENT2, TEACHER, Clock, FakeHub, build
from ..scheduling.values import pending
from .samples import job


@pytest.fixture
def hub() -> FakeHub:
    return FakeHub()


@pytest.fixture
def context(tmp_path: Path, hub: FakeHub) -> Context:
    return build(new_store(), FakeBackend(), hub, Clock(), tmp_path, devices=2)


def planned(context: Context) -> None:
    """Publish a plan, as a cycle of the loop does, without its actions."""
    context.plan_cache.publish(decide(context.store.snapshot(context.clock()), context.clock()))


def one_is_taken(context: Context) -> None:
    made = JobService(context).submit(STUDENT2, job(seconds=1800))
    start = Start(request_id=made.id, devices=("SIM-0",))
    context.store.grant([start], now=context.clock(), lease_seconds=30)


def test_a_followed_suggestion_starts_the_job(context: Context) -> None:
    one_is_taken(context)
    made = JobService(context).submit(STUDENT1, job(devices=2))
    planned(context)

    found = WaitExplanations(context).why(STUDENT1, made.id)

    assert found.wait is not None
    assert found.wait.reason == "no_free_device"
    assert found.sentences[1:] == ["It requests 2 devices; 1 of 2 devices is free now."]
    assert [each.sentence for each in found.suggestions] == [
        "With 1 device instead of 2 it starts now."
    ]
    RequestTermination(context).cancel(STUDENT1, made.id)
    again = JobService(context).submit(STUDENT1, job(devices=found.suggestions[0].devices))
    plan = decide(context.store.snapshot(context.clock()), context.clock())
    assert [start.request_id for start in plan.starts] == [again.id]


def test_free_devices_of_several_models_are_too_few_for_one_request(context: Context) -> None:
    first, second = context.store.devices()
    others = [replace(each, id=f"OTHER-{each.id}", model="MI300X") for each in (first, second)]
    context.store.sync_devices(first.node, (first, second, *others))
    for device in (first, others[0]):
        taken = JobService(context).submit(STUDENT2, job(seconds=1800))
        start = Start(request_id=taken.id, devices=(device.id,))
        context.store.grant([start], now=context.clock(), lease_seconds=30)
    made = JobService(context).submit(STUDENT1, job(devices=2))
    planned(context)
    assert WaitExplanations(context).why(STUDENT1, made.id).sentences[1:] == [
        "It requests 2 devices; 2 of 4 devices are free now. "
        "They are on several nodes, or of several models."
    ]


def test_another_group_of_the_owner_is_tried(context: Context, hub: FakeHub) -> None:
    context.store.put_group(Group(name="cs101", max_devices=1, max_devices_per_user=1))
    context.store.put_group(
        Group(name="math", max_devices=1, max_devices_per_user=1, max_seconds=8 * 3600)
    )
    hub.members["math"] = {"student1"}
    one_is_taken(context)
    made = JobService(context).submit(STUDENT1, job(devices=1, group="cs101"))
    planned(context)

    found = WaitExplanations(context).why(STUDENT1, made.id)

    assert found.quota is not None
    assert (found.quota.reason, found.quota.held, found.quota.most) == ("group_maximum", 1, 1)
    assert [each.sentence for each in found.suggestions] == ["In the group math it starts now."]

    hub.away = True
    assert WaitExplanations(context).why(STUDENT1, made.id).suggestions == []


def test_a_request_past_the_first_page_is_estimated_on_demand(context: Context) -> None:
    context.store.put_group(
        Group(name="cs101", max_devices=4, max_devices_per_user=4, max_seconds=8 * 3600)
    )
    running = JobService(context).submit(STUDENT2, job(devices=2, seconds=600))
    start = Start(request_id=running.id, devices=("SIM-0", "SIM-1"))
    context.store.grant([start], now=context.clock(), lease_seconds=30)
    for _ in range(FIRST_PAGE + 1):
        JobService(context).submit(STUDENT1, job(devices=2))
    planned(context)
    (behind,) = (each for each in context.plan_cache.waits.values() if each.place > FIRST_PAGE)

    found = WaitExplanations(context).why(STUDENT1, behind.request_id)

    assert behind.estimate is None
    expected = context.clock() + 600 * (FIRST_PAGE + 1)
    assert found.wait is not None
    assert (found.wait.expected_at, found.wait.latest_at) == (expected, expected)


def test_only_users_who_may_see_a_request_get_its_explanation(context: Context) -> None:
    one_is_taken(context)
    made = JobService(context).submit(STUDENT1, job(devices=2))
    planned(context)

    assert WaitExplanations(context).why(TEACHER, made.id).wait is not None
    with pytest.raises(NotFound):
        WaitExplanations(context).why(STUDENT2, made.id)


def test_queue_rows_have_reasons_only_for_users_who_may_see_them(
    context: Context,
) -> None:
    one_is_taken(context)
    JobService(context).submit(STUDENT1, job(devices=2))
    planned(context)
    why = "Not enough devices are free; it gets the next ones that are released."

    for who, sentence, reason in (
        (STUDENT1, f"Queued at position 1. {why}", why),
        (TEACHER, f"Queued at position 1. {why}", why),
        (STUDENT2, "Queued at position 1.", ""),
    ):
        (row,) = RequestQueries(context).queue(who).queue
        assert (row.sentence, row.why) == (sentence, reason)


def test_the_explanation_of_a_request_that_is_not_queued_is_its_state(context: Context) -> None:
    made = JobService(context).submit(STUDENT1, job())
    assert WaitExplanations(context).why(STUDENT1, made.id).sentences == [
        "Its position in the queue is being computed."
    ]
    RequestTermination(context).cancel(STUDENT1, made.id)
    assert WaitExplanations(context).why(STUDENT1, made.id).sentences == [
        "It is not queued: cancelled."
    ]


@pytest.mark.parametrize("rule", Precedence)
def test_every_rule_has_a_sentence_that_names_only_known_groups(rule: Precedence) -> None:
    ahead = (RequestsAhead(rule=rule, count=1, group="lab"), RequestsAhead(rule=rule, count=2))

    told = ahead_sentences(ahead, lambda group: True)
    hidden = ahead_sentences(ahead, lambda group: False)

    assert told[0].startswith("1 request of lab")
    assert "lab" not in "".join(hidden)
    assert all(sentence.endswith(".") for sentence in told + hidden)


def test_the_most_important_rules_are_named_and_the_rest_is_counted() -> None:
    ahead = tuple(
        RequestsAhead(rule=Precedence.LESS_USE, count=2, group=f"group{number}")
        for number in range(6)
    )

    assert ahead_sentences(ahead, lambda group: True)[-1] == "4 more requests by the same rules."


@pytest.mark.parametrize(
    "reason",
    [Reason.GROUP_MAXIMUM, Reason.USER_MAXIMUM, Reason.SESSIONS, Reason.BORROWING],
)
def test_every_quota_has_a_sentence_with_its_numbers(reason: Reason) -> None:
    found = Explanation(
        request=pending("r"),
        wait=Wait(request_id="r", place=1, reason=reason, detail="cs101"),
        quota=QuotaState(reason=reason, group="cs101", held=2.0, most=3.0, guaranteed=1),
    )

    said = why_sentences(found)[1]
    assert "2" in said
    assert "3" in said
    assert "cs101" in said
    yours = why_sentences(found, yours=True)
    assert "owner" not in "".join(yours), "who reads is the owner"
    assert ("You" in yours[1]) == (reason in (Reason.USER_MAXIMUM, Reason.SESSIONS))
