"""Official checks: the rule, the runs of a day, what a student learns, and the receipt."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from carrel.hub.errors import Conflict, Forbidden, InvalidInput, NotFound
from carrel.hub.provenance.official_check import verify_check
from carrel.hub.scheduling.model.snapshot import PriorityClass
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas.courses import ExtensionIn, SubmitIn
from carrel.hub.schemas.coursework.official_checks import (
    OFFICIAL_RESULT,
    OfficialCellOut,
    OfficialCheckOut,
    OfficialCheckRuleIn,
    OfficialVerdictOut,
)

from ...hub.doubles import ADMIN, STUDENT1, STUDENT2, TEACHER
from .. import course_site
from ..checks import came_out
from ..course_site import CourseSite, files
from ..notebook_samples import SOURCE

VERDICT = OfficialVerdictOut(
    passed=False,
    points=1.5,
    max_points=2.0,
    cells=[OfficialCellOut(notebook="ps1", cell="secret-name", passed=False)],
)


@pytest.fixture
def site(tmp_path: Path) -> CourseSite:
    made = course_site.build_site(tmp_path)
    made.create(students="student\nstudent1\nstudent2\n")
    made.release()
    allow(made)
    return made


def allow(site: CourseSite, per_day: int = 2, *, names_cells: bool = False) -> None:
    body = OfficialCheckRuleIn(per_day=per_day, names_cells=names_cells)
    site.services.official_checks.allow(TEACHER, "cs101", "ps1", body)


def work(text: str = "mine") -> SubmitIn:
    read = json.loads(SOURCE)
    read["metadata"]["work"] = text
    return SubmitIn(files=files({"ps1.ipynb": json.dumps(read).encode()}))


def start(site: CourseSite, text: str = "mine") -> OfficialCheckOut:
    return site.services.official_checks.start(STUDENT1, "cs101", "ps1", work(text))


def end(
    site: CourseSite,
    check: OfficialCheckOut,
    result: OfficialVerdictOut | None = VERDICT,
    state: State = State.SUCCEEDED,
) -> OfficialCheckOut:
    """The check as its student reads it a minute later."""
    came_out(site.services.access.context, check.id, result, state, name=OFFICIAL_RESULT)
    site.clock.now += 60
    return mine(site)[0]


def mine(site: CourseSite) -> list[OfficialCheckOut]:
    return site.services.official_checks.mine(STUDENT1, "cs101", "ps1").checks


def left(site: CourseSite) -> int:
    return site.services.official_checks.mine(STUDENT1, "cs101", "ps1").left


def test_a_check_is_an_opportunistic_request_of_the_teacher(site: CourseSite) -> None:
    asked = start(site)
    record = site.services.access.context.store.request(asked.id)
    assert (record.owner, record.group) == ("teacher", "cs101")
    assert record.priority is PriorityClass.OPPORTUNISTIC
    assert "student1" not in record.labels.values()
    assert (asked.ended, asked.outcome, asked.sentence) == (False, "", "Waiting in the queue.")
    assert start(site) == asked
    assert len(mine(site)) == 1
    assert left(site) == 1
    with pytest.raises(Conflict, match="under way"):
        start(site, "other")


def test_a_check_belongs_to_a_present_teacher(site: CourseSite) -> None:
    store = site.services.access.context.store

    def owner(text: str) -> str:
        asked = start(site, text)
        end(site, asked)
        return store.request(asked.id).owner

    allow(site, per_day=5)
    store.set_teachers("cs101", ["another", "teacher"])
    assert owner("one") == "teacher"
    store.set_teachers("cs101", ["another"])
    assert owner("two") == "another"
    store.set_teachers("cs101", [])
    body = OfficialCheckRuleIn(per_day=5)
    site.services.official_checks.allow(ADMIN, "cs101", "ps1", body)
    assert owner("three") == "admin"
    store.set_teachers("cs101", ["teacher"])
    allow(site, per_day=5)
    store.set_teachers("cs101", [])
    assert owner("four") == "admin"  # who created the course
    site.hub.people.discard("admin")
    with pytest.raises(Conflict, match="cs101 has no teacher") as refused:
        start(site, "five")
    assert refused.value.accepted.startswith("Ask an administrator")
    assert (len(mine(site)), left(site)) == (4, 1)


def test_concurrent_calls_count_once(site: CourseSite) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = {each.id for each in pool.map(lambda _: start(site), range(4))}
    assert len(found) == 1
    assert left(site) == 1


def test_a_student_learns_a_verdict_and_points_alone_at_a_full_minute(site: CourseSite) -> None:
    asked = start(site)
    came_out(site.services.access.context, asked.id, VERDICT, name=OFFICIAL_RESULT)
    site.clock.now += 59
    (before,) = mine(site)
    assert (before.ended, before.outcome, before.points, before.receipt) == (False, "", None, "")
    site.clock.now += 1
    (shown,) = mine(site)
    assert (shown.outcome, shown.points, shown.max_points) == ("not passed", 1.5, 2.0)
    assert shown.sentence == "Not all tests pass: 1.5 of 2 points."
    assert "secret-name" not in shown.model_dump_json()
    (seen,) = site.services.official_checks.log(TEACHER, "cs101", "ps1").checks
    assert (seen.person, seen.cells[0].cell) == ("student1", "secret-name")
    allow(site, names_cells=True)  # a later rule does not name cells of earlier checks
    assert mine(site)[0].cells == []
    named = end(site, start(site, "next"))
    assert [(each.cell, each.passed) for each in named.cells] == [("secret-name", False)]
    assert site.services.official_checks.mine(STUDENT2, "cs101", "ps1").checks == []
    with pytest.raises(Forbidden):
        site.services.official_checks.log(STUDENT1, "cs101", "ps1")


def test_the_receipt_is_signed_by_the_site(site: CourseSite) -> None:
    shown = end(site, start(site))
    key = site.services.access.context.signing_key.public
    checked = verify_check(shown.receipt.encode(), key)
    made = site.services.access.store.released_version("cs101", "ps1")
    assert checked.files_sha256 == shown.sha256
    assert checked.tests_sha256 == made.source.sha256
    assert (checked.person, checked.version, checked.points) == ("student1", 1, 1.5)


def test_a_day_is_that_of_the_time_zone_of_the_assignment(site: CourseSite) -> None:
    # 09:00 in Berlin
    for text in ("one", "two"):
        end(site, start(site, text))
    with pytest.raises(Conflict) as refused:
        start(site, "three")
    assert refused.value.message == "You have used your 2 official checks of today."
    assert refused.value.accepted == ("The next is possible from 2027-01-16 00:00 Europe/Berlin.")
    found = site.services.official_checks.mine(STUDENT1, "cs101", "ps1")
    site.clock.now = found.next_at - 1
    assert left(site) == 0
    site.clock.now = found.next_at
    assert left(site) == 2
    assert start(site, "three").ended is False


@pytest.mark.parametrize(
    ("state", "outcome", "runs"),
    [
        (State.FAILED, "fault", 2),
        (State.CANCELLED, "fault", 2),
        (State.TIMED_OUT, "timed out", 1),
    ],
)
def test_a_fault_of_the_system_costs_no_run(
    site: CourseSite, state: State, outcome: str, runs: int
) -> None:
    shown = end(site, start(site), None, state)
    assert (shown.outcome, shown.points, left(site)) == (outcome, None, runs)


def test_a_crash_before_the_request_is_queued_costs_no_run(site: CourseSite) -> None:
    store = site.services.access.context.store
    queue = store.submit
    store.submit = None  # type: ignore[assignment,method-assign]  # the service stops here
    with pytest.raises(TypeError):
        start(site)
    store.submit = queue  # type: ignore[method-assign]
    assert left(site) == 2
    assert start(site).sentence == "Waiting in the queue."


def test_what_cannot_be_checked_is_refused_and_costs_no_run(site: CourseSite) -> None:
    services = site.services.official_checks
    for files_sent, said in (
        ({"notes.txt": b"x"}, "ps1.ipynb is missing"),
        ({"ps1.ipynb": b"no notebook"}, "ps1.ipynb"),
    ):
        with pytest.raises(InvalidInput, match=said):
            services.start(STUDENT1, "cs101", "ps1", SubmitIn(files=files(files_sent)))
    with pytest.raises(InvalidInput, match="nothing to check"):
        services.start(STUDENT1, "cs101", "ps1", SubmitIn())
    with pytest.raises(NotFound):
        services.start(STUDENT1, "cs101", "ps2", work())
    with pytest.raises(Forbidden):
        services.allow(STUDENT1, "cs101", "ps1", OfficialCheckRuleIn(per_day=1))
    with pytest.raises(NotFound):
        services.allow(TEACHER, "cs101", "ps2", OfficialCheckRuleIn(per_day=1))
    assert left(site) == 2
    site.clock.now += 7 * 86400  # due after 5 days, and late until a day after that
    with pytest.raises(Conflict, match="does not count any more"):
        start(site)
    more = ExtensionIn(person="student1", seconds=2 * 86400)
    site.services.deadlines.extend(TEACHER, "cs101", "ps1", more)
    assert start(site).ended is False
    services.forbid(TEACHER, "cs101", "ps1")
    with pytest.raises(Forbidden, match="not allowed"):
        start(site)
    assert len(services.log(TEACHER, "cs101", "ps1").checks) == 1
    site.services.administration.archive(TEACHER, "cs101")
    with pytest.raises(Conflict, match="archived"):
        start(site)
    with pytest.raises(Conflict, match="archived"):
        allow(site)
