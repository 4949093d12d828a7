"""Rehearsals: who may start them, which requests they are, and what teachers read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.errors import Conflict, Forbidden, InvalidInput, NotFound
from carrel.hub.inventory.images import ImageCatalogue
from carrel.hub.records.images import Image
from carrel.hub.scheduling.model.snapshot import Kind, PriorityClass
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas.coursework.rehearsals import (
    REHEARSAL_RESULT,
    RehearsalFindingOut,
    RehearsalIn,
    RehearsalOut,
    RehearsalResultOut,
)
from carrel.hub.schemas.grading import GradingOrderOut
from carrel.hub.schemas.images import PinIn

from ...hub.doubles import STUDENT1, TEACHER
from .. import course_site
from ..checks import came_out
from ..course_site import GRADER, CourseSite

OLD = Image(
    name="base",
    digest="sha256:" + "a" * 64,
    title="Base",
    summary="",
    size_bytes=1,
    built_at=1.0,
    nodes=("node1",),
    default=True,
)
NEW = replace(OLD, digest="sha256:" + "b" * 64, built_at=2.0)
WORKS = RehearsalResultOut(findings=[], solution_points=2.0, max_points=2.0, seconds=1.0)


@pytest.fixture
def site(tmp_path: Path) -> CourseSite:
    made = course_site.build_site(tmp_path)
    made.create(students="student,role\nstudent1,student\ngus,grader\n")
    return made


def breaks(*cells: str) -> RehearsalResultOut:
    found = [
        RehearsalFindingOut(part="solution", notebook="ps1", cell=cell, error="NameError: x")
        for cell in cells
    ]
    return RehearsalResultOut(findings=found, max_points=2.0)


def start(site: CourseSite, **body: str) -> RehearsalOut:
    return site.services.rehearsals.start(TEACHER, "cs101", RehearsalIn(**body))


def newest(site: CourseSite) -> RehearsalOut:
    return site.services.rehearsals.recent(GRADER, "cs101").rehearsals[0]


def end(
    site: CourseSite,
    request: str,
    result: RehearsalResultOut | None,
    state: State = State.SUCCEEDED,
) -> None:
    came_out(site.services.access.context, request, result, state, name=REHEARSAL_RESULT)


def test_a_rehearsal_is_one_opportunistic_request_for_each_assignment(site: CourseSite) -> None:
    site.release("ps1")
    site.release("ps2")
    made = start(site)
    assert (made.sentence, made.ended, made.works) == ("0 of 2 assignments done.", False, None)
    requests = [request for each in made.assignments for request in each.requests]
    for request in requests:
        record = site.services.access.context.store.request(request)
        assert (record.kind, record.owner, record.group) == (Kind.GRADING, "teacher", "cs101")
        assert record.priority is PriorityClass.OPPORTUNISTIC
    assert start(site) == made  # also after a lost answer
    assert site.lines()[-1] == ("teacher", "rehearse", "cs101")
    for request in requests:
        end(site, request, WORKS)
    assert (newest(site).sentence, newest(site).works) == ("All 2 assignments work.", True)
    assert newest(site).assignments[0].solution_points == 2.0
    assert start(site).id != made.id
    assert site.services.grading.store.verdicts("cs101", "ps1") == ()


def test_a_crash_before_the_requests_are_queued_is_made_good(site: CourseSite) -> None:
    site.release()
    store = site.services.access.context.store
    queue = store.submit
    store.submit = None  # type: ignore[assignment,method-assign]  # the service stops here
    with pytest.raises(TypeError):
        start(site)
    store.submit = queue  # type: ignore[method-assign]
    assert newest(site).assignments[0].why.startswith("It is not queued")
    again = start(site)
    assert [again.id] == [
        each.id for each in site.services.rehearsals.recent(TEACHER, "cs101").rehearsals
    ]
    assert store.request(again.assignments[0].requests[0]).state is State.QUEUED


def test_the_same_key_starts_one_rehearsal(site: CourseSite) -> None:
    site.release()
    rehearsals = site.services.rehearsals

    def start_for(key: str) -> str:
        return rehearsals.start(TEACHER, "cs101", RehearsalIn(), key=key).id

    first = start_for("c-1@60")
    assert start_for("c-1@120") == first  # it has not ended
    (request,) = newest(site).assignments[0].requests
    end(site, request, WORKS)
    assert start_for("c-1@60") == first
    assert start_for("c-1@180") != first


def test_findings_are_compared_with_the_present_image(site: CourseSite) -> None:
    site.backend.built = (OLD,)
    site.services.administration.access.store.put_course(
        replace(site.services.access.store.course("cs101"), image="base")
    )
    site.release()
    context = site.services.access.context
    site.backend.built = (OLD, NEW)
    ImageCatalogue.of(context).pin(TEACHER, "cs101", "base", PinIn(digest=OLD.digest))
    made = start(site)
    assert (made.image, made.present_image) == (NEW.reference, OLD.reference)
    (one,) = made.assignments
    images = [
        GradingOrderOut.model_validate_json(context.files.input_path(each).read_bytes()).image
        for each in one.requests
    ]
    assert images == [NEW.digest, OLD.digest]
    end(site, one.requests[0], breaks("a", "b"))
    assert newest(site).assignments[0].state == "waiting"
    end(site, one.requests[1], breaks("b"))
    (one,) = newest(site).assignments
    assert [(each.cell, each.already) for each in one.findings] == [("a", False), ("b", True)]
    assert newest(site).sentence == "1 of 1 assignment broken: ps1."
    site.backend.built = (NEW,)
    without = start(site, image=NEW.digest, assignment="ps1")
    assert (without.present_image, len(without.assignments[0].requests)) == ("", 1)
    with pytest.raises(InvalidInput, match="There is no image 'nope'"):
        start(site, image="nope")
    with pytest.raises(InvalidInput, match="No engine has"):
        start(site, image=OLD.reference)


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (State.TIMED_OUT, "It took longer than 32 min."),
        (State.CANCELLED, "It was stopped."),
        (State.FAILED, "It did not come to its end: The engine is away."),
    ],
)
def test_an_assignment_without_a_result_is_not_tested(
    site: CourseSite, state: State, why: str
) -> None:
    site.release()
    end(site, start(site).assignments[0].requests[0], None, state)
    (one,) = newest(site).assignments
    assert (one.state, one.why) == ("not tested", why)
    assert (newest(site).works, newest(site).sentence) == (
        False,
        "1 of 1 assignment not tested: ps1.",
    )


def test_what_cannot_be_rehearsed_is_refused(site: CourseSite) -> None:
    with pytest.raises(Conflict, match="no released assignment"):
        start(site)
    with pytest.raises(NotFound):
        start(site, assignment="ps1")
    site.release()
    with pytest.raises(InvalidInput, match="not in images"):
        start(site, image="base")
    for who in (GRADER, STUDENT1):
        with pytest.raises(Forbidden):
            site.services.rehearsals.start(who, "cs101", RehearsalIn())
    with pytest.raises(Forbidden):
        site.services.rehearsals.recent(STUDENT1, "cs101")
    with pytest.raises(NotFound, match="no rehearsal 'h-x'"):
        site.services.rehearsals.one(TEACHER, "cs101", "h-x")
    site.services.administration.archive(TEACHER, "cs101")
    with pytest.raises(Conflict, match="archived"):
        start(site)
