"""Contract of the course store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from carrel.courses.model.interfaces import CourseStore
from carrel.courses.model.records import (
    Assignment,
    CellScore,
    Course,
    CourseRole,
    Extension,
    Feedback,
    Fetched,
    FileRef,
    Folder,
    GradingRun,
    LateRule,
    LateStep,
    Member,
    NewSubmission,
    Outage,
    RegradeMessage,
    RegradeRequest,
    ReleasedVersion,
    SubmissionVerdict,
    TrialResult,
)
from carrel.courses.store import SqlCourseStore
from carrel.hub.errors import CarrelError, Conflict, NotFound
from carrel.hub.interfaces.store import Store
from carrel.hub.records.audit import AuditAction, AuditEntry, ChangeFilter
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.store import open_store

from .conftest import NewStore

COURSE = Course(name="cs101", title="Nets", created_at=1.0, created_by="admin")
ADA = Member(course="cs101", person="ada", full_name="Ada L.", section="blue")
PS1 = Assignment(
    course="cs101",
    name="ps1",
    due=100.0,
    zone="Europe/Berlin",
    late=LateRule(steps=(LateStep(seconds=3600, penalty=0.1),)),
    seconds=60,
)


@dataclass
class Site:
    store: Store
    courses: CourseStore

    def lines(self) -> list[tuple[str, str]]:
        found = self.store.changes(ChangeFilter())
        return [(str(line.action), line.target) for line in reversed(found)]


@pytest.fixture
def site(make_store: NewStore) -> Site:
    store = make_store()
    made = Site(store, SqlCourseStore(store.transactions))
    for name in ("cs101", "cs102", "cs-1"):
        made.store.put_group(Group(name=name))
    made.courses.put_course(COURSE)
    made.courses.put_assignment(PS1)
    return made


def change(action: AuditAction, target: str = "cs101") -> AuditEntry:
    return AuditEntry(at=1.0, who="teacher", action=action, target=target)


def folder(content: str) -> Folder:
    file = FileRef(name="ps1.ipynb", sha256=content * 64, size=3)
    return Folder(sha256=content * 64, files=(file,))


def sent(content: str, *, person: str = "ada", at: float = 5.0) -> NewSubmission:
    return NewSubmission(
        course="cs101", assignment="ps1", person=person, at=at, files=folder(content), version=1
    )


def hand_out(content: str, *, at: float = 2.0) -> ReleasedVersion:
    return ReleasedVersion(
        course="cs101",
        assignment="ps1",
        version=0,
        files=folder(content),
        source=folder("f"),
        released_at=at,
        released_by="teacher",
    )


class TestCourses:
    def test_courses_are_stored_and_changes_are_audited(self, site: Site) -> None:
        other = replace(COURSE, name="cs-1")
        site.courses.put_course(other, change=change(AuditAction.COURSE_SET, "cs-1"))
        archived = replace(COURSE, archived_at=9.0, image="torch")
        site.courses.put_course(archived)
        assert site.courses.courses() == (other, archived)
        assert site.courses.course("cs101") == archived
        assert site.lines() == [("course set", "cs-1")]

    def test_a_course_is_a_group(self, site: Site) -> None:
        with pytest.raises(NotFound):
            site.courses.put_course(
                replace(COURSE, name="cs999"), change=change(AuditAction.COURSE_SET)
            )
        assert site.lines() == []

    def test_members_are_replaced_one_by_one(self, site: Site) -> None:
        ben = Member(course="cs101", person="ben", role=CourseRole.GRADER)
        line = change(AuditAction.ROSTER_SET)
        site.courses.put_members("cs101", [ben, ADA], change=line)
        site.courses.put_members("cs101", [replace(ADA, left_at=7.0)])
        assert site.courses.members("cs101") == (replace(ADA, left_at=7.0), ben)
        assert site.courses.members("cs102") == ()
        assert site.lines() == [("roster set", "cs101")]

    def test_a_user_may_be_in_several_courses(self, site: Site) -> None:
        site.courses.put_course(replace(COURSE, name="cs102"))
        other = replace(ADA, course="cs102", section="")
        site.courses.put_members("cs102", [other])
        site.courses.put_members("cs101", [ADA])
        assert site.courses.memberships("ada") == (ADA, other)

    def test_unknown_records_are_not_found_and_nothing_is_written(self, site: Site) -> None:
        line = change(AuditAction.COURSE_SET)
        calls = [
            lambda: site.courses.course("cs999"),
            lambda: site.courses.put_members("cs102", [replace(ADA, course="cs102")], change=line),
            lambda: site.courses.assignment("cs101", "ps9"),
            lambda: site.courses.put_assignment(replace(PS1, course="cs102"), change=line),
            lambda: site.courses.released_version("cs101", "ps1"),
            lambda: site.courses.released_version("cs101", "ps9"),
            lambda: site.courses.submission(4711),
            lambda: site.courses.submit(replace(sent("a"), assignment="ps9")),
        ]
        for call in calls:
            with pytest.raises(NotFound):
                call()
        assert site.lines() == []
        assert site.courses.members("cs102") == ()


class TestAssignments:
    def test_assignments_are_stored_and_changed(self, site: Site) -> None:
        never = Assignment(course="cs101", name="a-1", hidden=True)
        site.courses.put_assignment(never, change=change(AuditAction.ASSIGNMENT_SET))
        site.courses.put_assignment(replace(PS1, due=None, version=99))
        assert site.courses.assignments("cs101") == (never, replace(PS1, due=None))
        assert site.courses.assignments("cs102") == ()

    def test_versions_are_numbered_and_equal_files_make_no_new_one(self, site: Site) -> None:
        later = replace(PS1, due=200.0)
        first = site.courses.release(
            PS1, hand_out("a"), change=change(AuditAction.ASSIGNMENT_RELEASE)
        )
        again = site.courses.release(later, hand_out("a", at=3.0))
        second = site.courses.release(later, hand_out("b", at=4.0))
        assert first == again == replace(hand_out("a"), version=1)
        assert second == replace(hand_out("b", at=4.0), version=2)
        assert site.courses.released_version("cs101", "ps1") == second
        assert site.courses.released_version("cs101", "ps1", 1) == first
        assert site.courses.assignment("cs101", "ps1") == replace(later, version=2)
        site.courses.put_assignment(PS1)
        assert site.courses.assignment("cs101", "ps1").version == 2
        for missing in (0, 3):
            with pytest.raises(NotFound):
                site.courses.released_version("cs101", "ps1", missing)

    def test_a_release_creates_a_missing_assignment(self, site: Site) -> None:
        made = replace(hand_out("a"), assignment="ps2")
        site.courses.release(replace(PS1, name="ps2"), made)
        assert site.courses.assignment("cs101", "ps2").version == 1

    def test_fetched_versions_are_stored_by_student(self, site: Site) -> None:
        def fetched(person: str, version: int) -> Fetched:
            return Fetched(course="cs101", assignment="ps1", person=person, version=version, at=3.0)

        for person, version in (("ben", 1), ("ada", 1), ("ada", 2)):
            site.courses.put_fetched(fetched(person, version))
        assert site.courses.fetched("cs101", "ps1") == (fetched("ada", 2), fetched("ben", 1))
        assert site.courses.fetched("cs101", "ps1", "ben") == (fetched("ben", 1),)
        assert site.courses.fetched("cs101", "ps1", "cy") == ()
        assert site.courses.fetched("cs101", person="ada") == (fetched("ada", 2),)
        assert site.courses.fetched("cs101", "ps2") == ()


class TestSubmissions:
    def test_submissions_are_numbered_and_permanent(self, site: Site) -> None:
        made = [site.courses.submit(sent(content)) for content in "abc"]
        other = site.courses.submit(sent("a", person="ben"))
        assert [each.number for each in made] == [1, 2, 3]
        assert other.number == 1
        assert site.courses.submissions("cs101", "ps1", "ada") == tuple(made)
        assert site.courses.submissions("cs101") == (*made, other)
        assert site.courses.submission(made[1].id) == made[1]
        assert made[1].files == folder("b")
        assert site.courses.submissions("cs102") == ()

    def test_equal_files_are_one_submission_unless_others_came_between(self, site: Site) -> None:
        first = site.courses.submit(sent("a", at=5.0))
        assert site.courses.submit(sent("a", at=9.0)) == first
        site.courses.submit(sent("b"))
        assert site.courses.submit(sent("a", at=9.0)).number == 3

    def test_simultaneous_submissions_are_all_stored(self, site: Site) -> None:
        new = [sent(content, person=f"s{n}") for n in range(6) for content in "abcd"]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(site.courses.submit, new))
        found = site.courses.submissions("cs101", "ps1")
        numbers = [(each.person, each.number) for each in found]
        assert numbers == [(f"s{n}", number) for n in range(6) for number in (1, 2, 3, 4)]

    def test_a_teacher_selects_a_submission_and_resets_it(self, site: Site) -> None:
        first, second = (site.courses.submit(sent(content)) for content in "ab")
        site.courses.choose(first, counts=True, change=change(AuditAction.SUBMISSION_CHOOSE))
        site.courses.choose(second, counts=True)
        assert site.courses.chosen("cs101", "ps1") == {"ada": 2}
        site.courses.choose(second, counts=False)
        assert site.courses.chosen("cs101", "ps1") == {}
        assert site.lines() == [("submission choose", "cs101")]


class TestMoreTime:
    def test_extensions_add_up_in_order(self, site: Site) -> None:
        given = [
            Extension(
                course="cs101",
                assignment="ps1",
                seconds=seconds,
                given_at=1.0,
                given_by="teacher",
                why="ill",
                **whom,
            )
            for seconds, whom in ((60, {"person": "ada"}), (30, {"section": "blue"}))
        ]
        for each in given:
            site.courses.extend(each, change=change(AuditAction.EXTEND))
        assert site.courses.extensions("cs101") == tuple(given)
        assert site.courses.extensions("cs102") == ()
        with pytest.raises(CarrelError):
            site.courses.extend(replace(given[0], assignment="ps9"))
        assert site.lines() == [("extend", "cs101")] * 2

    def test_an_extension_is_removed_for_one_member_only(self, site: Site) -> None:
        site.courses.put_assignment(replace(PS1, name="ps2"))
        given = [
            Extension(
                course="cs101",
                assignment=assignment,
                seconds=60,
                given_at=1.0,
                given_by="teacher",
                **whom,
            )
            for assignment, whom in (
                ("ps1", {"person": "ada"}),
                ("ps1", {"section": "ada"}),
                ("ps1", {"person": "ada"}),
                ("ps2", {"person": "ada"}),
            )
        ]
        for each in given:
            site.courses.extend(each)
        site.courses.remove_extensions(
            "cs101", "ps1", person="ada", change=change(AuditAction.EXTEND)
        )
        assert site.courses.extensions("cs101") == (given[1], given[3])
        site.courses.remove_extensions("cs101", "ps1", section="ada")
        assert site.courses.extensions("cs101") == (given[3],)
        assert site.lines() == [("extend", "cs101")]

    def test_outages_are_stored_for_one_course_or_for_all(self, site: Site) -> None:
        everywhere = Outage(starts_at=1.0, ends_at=9.0, recorded_at=9.0, recorded_by="admin")
        one = replace(everywhere, course="cs101", why="The lab was closed.")
        for each in (everywhere, one):
            site.courses.add_outage(each, change=change(AuditAction.OUTAGE))
        assert site.courses.outages() == (everywhere, one)
        assert [action for action, _ in site.lines()] == ["outage", "outage"]


class TestFeedback:
    def test_the_newest_feedback_on_a_submission_is_kept(self, site: Site) -> None:
        first, other = site.courses.submit(sent("a")), site.courses.submit(sent("b"))
        given = Feedback(
            submission=first.id, files=folder("c"), released_at=3.0, released_by="teacher"
        )
        assert site.courses.feedback("cs101", "ps1") == {}
        for each in (replace(given, files=folder("d")), given):
            site.courses.put_feedback(each, change=change(AuditAction.FEEDBACK_RELEASE))
        assert site.courses.feedback("cs101", "ps1") == {first.id: given}
        site.courses.put_feedback(replace(given, submission=other.id))
        assert set(site.courses.feedback("cs101", "ps1")) == {first.id, other.id}
        assert site.courses.feedback("cs101", "ps2") == {}
        assert set(site.courses.feedback("cs101")) == {first.id, other.id}
        assert site.courses.feedback("cs101", person=first.person) == site.courses.feedback("cs101")
        assert site.courses.feedback("cs101", "ps1", "another person") == {}
        with pytest.raises(NotFound):
            site.courses.put_feedback(replace(given, submission=99))
        assert site.lines() == [("feedback release", "cs101")] * 2


class TestGrading:
    def test_a_run_has_one_verdict_for_each_submission(self, site: Site) -> None:
        ada, bob = site.courses.submit(sent("a")), site.courses.submit(sent("b", person="bob"))
        first, second = run("g-1", ada.id, bob.id), replace(run("g-2", bob.id), question="q1")
        for each in (first, second):
            site.courses.add_run(each, change=change(AuditAction.GRADE))
        assert site.courses.runs("cs101", "ps1") == (first, second)
        assert site.courses.run("g-2") == second
        given = verdict("g-1", ada.id)
        assert site.courses.add_verdict(verdict("g-2", bob.id))
        assert site.courses.add_verdict(given)
        assert not site.courses.add_verdict(replace(given, cells=(), at=9.0))
        assert site.courses.verdicts("cs101", "ps1") == (given, verdict("g-2", bob.id))
        assert site.lines() == [("grade", "cs101")] * 2

    def test_no_verdict_on_what_a_run_does_not_grade(self, site: Site) -> None:
        ada = site.courses.submit(sent("a"))
        site.courses.add_run(run("g-1"))
        for each in (verdict("g-1", ada.id), verdict("g-2", ada.id)):
            with pytest.raises(NotFound):
                site.courses.add_verdict(each)
        with pytest.raises(NotFound):
            site.courses.add_run(replace(run("g-3"), assignment="ps2"))
        assert site.courses.verdicts("cs101", "ps1") == ()

    def test_the_result_of_the_release_check_is_stored(self, site: Site) -> None:
        tried = TrialResult(seconds=1.5, apart={"p1": ("q1", "q2")})
        made = site.courses.release(PS1, replace(hand_out("a"), tried=tried))
        assert site.courses.released_version("cs101", "ps1") == made
        assert made.tried == tried

    def test_a_repeated_release_has_the_last_check_result(self, site: Site) -> None:
        untried = site.courses.release(PS1, hand_out("a"))
        tried = TrialResult(seconds=1.5, apart={"p1": ("q1", "q2")})
        again = site.courses.release(PS1, replace(hand_out("a"), tried=tried))
        assert again == replace(untried, tried=tried)
        assert site.courses.release(PS1, hand_out("a")) == again
        assert site.courses.released_version("cs101", "ps1") == again


class TestRegrades:
    def test_an_open_request_is_not_opened_twice(self, site: Site) -> None:
        first = site.courses.open_regrade(regrade())
        assert first == replace(regrade(), id=first.id)
        assert site.courses.open_regrade(replace(regrade(), opened_at=9.0)) == first
        other = site.courses.open_regrade(regrade(cell="q2"))
        assert site.courses.regrades("cs101") == (first, other)
        assert site.courses.regrades("cs101", "ps1", "ben") == ()
        with pytest.raises(NotFound):
            site.courses.open_regrade(replace(regrade(), assignment="ps9"))

    def test_a_thread_grows_until_it_is_closed(self, site: Site) -> None:
        first = site.courses.open_regrade(regrade())
        answer = RegradeMessage(author="teacher", at=6.0, text="I see.")
        end = replace(first, messages=(*first.messages, answer), closed_at=6.0, closed_by="teacher")
        closed = site.courses.update_regrade(first.id, lambda found: end)
        assert closed == end
        assert site.courses.regrade(first.id) == closed
        again = site.courses.open_regrade(regrade())
        assert again.id > first.id
        with pytest.raises(NotFound):
            site.courses.update_regrade(99, lambda found: found)

    def test_a_change_that_is_refused_leaves_the_thread_as_it_is(self, site: Site) -> None:
        first = site.courses.open_regrade(regrade())

        def refuse(found: RegradeRequest) -> RegradeRequest:
            raise Conflict(f"{found.cell} is closed.")

        with pytest.raises(Conflict):
            site.courses.update_regrade(first.id, refuse)
        assert site.courses.regrade(first.id) == first


def regrade(cell: str = "q1") -> RegradeRequest:
    return RegradeRequest(
        id=0,
        course="cs101",
        assignment="ps1",
        person="ada",
        notebook="p1",
        cell=cell,
        opened_at=5.0,
        messages=(RegradeMessage(author="ada", at=5.0, text="Why?"),),
    )


def run(request: str, *submissions: int) -> GradingRun:
    return GradingRun(
        request=request,
        course="cs101",
        assignment="ps1",
        version=1,
        submissions=submissions,
        asked_at=3.0,
        asked_by="teacher",
        expected=2.5,
    )


def verdict(request: str, submission: int) -> SubmissionVerdict:
    cell = CellScore(
        notebook="p1", cell="q1", word="passed", sentence="Good.", score=1.0, max_score=2.0
    )
    by_hand = replace(cell, cell="q2", score=None, review=True)
    return SubmissionVerdict(
        request=request,
        submission=submission,
        at=4.0,
        seconds=0.5,
        cells=(cell, by_hand),
        notes=("The cell 'q1' was changed.",),
    )


def test_all_data_survives_a_restart(tmp_path: Path) -> None:
    first = open_store(tmp_path / "c.db")
    first.put_group(Group(name="cs101"))
    courses = SqlCourseStore(first.transactions)
    courses.put_course(COURSE)
    courses.release(PS1, hand_out("a"))
    made = courses.submit(sent("a"))
    first.close()
    again = open_store(tmp_path / "c.db")
    assert SqlCourseStore(again.transactions).submission(made.id) == made
    again.close()
