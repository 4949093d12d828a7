"""The services of courses: rights and effects."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from carrel.hub.errors import (
    CarrelError,
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    OverMaximum,
    TooLarge,
    Unavailable,
)
from carrel.hub.records.calendar import Term
from carrel.hub.records.identity import Identity
from carrel.hub.scheduling.model.snapshot import Budget, Group, Period
from carrel.hub.schemas.courses import CloneIn, CourseIn, ExtensionIn, OutageIn, ReleaseIn, SubmitIn

from ..hub.doubles import ADMIN, STRANGER, STUDENT1, STUDENT2, TEACHER
from ..hub.images import CATALOGUE, NEW
from ..odd_notebooks import ODD
from ..stores import TemporaryBlobs
from .course_site import DUE_AT, GRADER, START, CourseSite, build_site, files
from .notebook_samples import SOURCE, source

HOUR = 3600
ROSTER = "student,name,section,role\nstudent1,Ada L.,blue,\nzoe,,,\ngus,,,grader\n"


@pytest.fixture
def site(tmp_path: Path) -> CourseSite:
    return build_site(tmp_path)


@pytest.fixture
def course(site: CourseSite) -> CourseSite:
    """A course with one assignment."""
    site.create(students=ROSTER)
    site.release()
    return site


class TestMaking:
    def test_a_course_is_a_group_with_its_quota_teachers_and_students(
        self, site: CourseSite
    ) -> None:
        budget = {"device_seconds": 300.0 * HOUR, "period": "term"}
        site.create(
            name="ml",
            title="Machine learning",
            students=ROSTER,
            budget=budget,
            guaranteed=8,
            max_devices=20,
            max_devices_per_user=2,
        )
        store = site.services.access.context.store
        assert store.group("ml") == Group(
            name="ml",
            max_devices=20,
            max_devices_per_user=2,
            guaranteed=8,
            budget=Budget(device_seconds=300.0 * HOUR, period=Period.TERM),
        )
        assert store.teachers("ml") == ("teacher",)
        assert site.hub.members["ml"] == {"student1", "zoe"}
        assert "zoe" in site.hub.people
        shown = site.services.administration.show(TEACHER, "ml")
        assert (shown.title, shown.role, shown.image) == ("Machine learning", "teacher", "local")
        assert (shown.students, shown.teachers) == (2, ["teacher"])
        assert {line[1] for line in site.lines()} == {
            *("group set", "teachers set", "course set", "member add", "roster set")
        }

    def test_an_existing_group_becomes_a_course_and_keeps_its_quota(self, site: CourseSite) -> None:
        before = site.services.access.context.store.group("cs101")
        site.create(students="student\nzoe\n")
        assert site.services.access.context.store.group("cs101") == before
        found = site.services.roster.members(TEACHER, "cs101")
        assert [member.person for member in found.members] == ["student1", "student2", "zoe"]
        student = Identity(name="student2", groups=frozenset({"cs101"}))
        assert site.services.administration.show(student, "cs101").role == "student"

    def test_only_administrators_create_a_course_and_only_once(self, site: CourseSite) -> None:
        with pytest.raises(Forbidden):
            site.services.administration.create(TEACHER, CourseIn(name="ml"))
        site.create()
        with pytest.raises(Conflict):
            site.create()

    @pytest.mark.parametrize(
        ("more", "error"),
        [
            ({"name": "Not a name"}, InvalidInput),
            ({"students": "nobody\n"}, InvalidInput),
            ({"image": "datascience"}, InvalidInput),
            ({"guaranteed": 9, "max_devices": 3}, InvalidInput),
            ({"parent": "nowhere"}, InvalidInput),
        ],
    )
    def test_a_refused_course_leaves_nothing(
        self, site: CourseSite, more: dict[str, object], error: type[CarrelError]
    ) -> None:
        with pytest.raises(error):
            site.create(**{"name": "ml", **more})
        assert [group.name for group in site.services.access.context.store.groups()] == ["cs101"]
        assert site.services.administration.courses(ADMIN).courses == []
        assert site.lines() == []

    def test_no_course_is_created_while_the_hub_is_away(self, site: CourseSite) -> None:
        site.hub.away = True
        with pytest.raises(Unavailable):
            site.create(name="ml", students=ROSTER)
        assert site.lines() == []

    def test_without_images_there_is_only_the_local_one(self, site: CourseSite) -> None:
        site.create(name="ml", image="local")
        with pytest.raises(InvalidInput, match="no image 'datascience'"):
            site.create(name="nets", image="datascience")

    def test_the_image_of_a_course_is_pinned_to_the_end_of_the_term(self, site: CourseSite) -> None:
        site.backend.built = CATALOGUE
        store = site.services.access.context.store
        store.put_term(Term(name="winter", first=date(2026, 10, 12), last=date(2027, 2, 15)))
        site.create(name="ml", image="torch")
        (pin,) = store.pins()
        assert (pin.group, pin.digest, str(pin.until)) == ("ml", NEW, "2027-02-15")
        assert site.services.administration.show(ADMIN, "ml").image == "torch"
        with pytest.raises(InvalidInput, match="There is no image 'julia'"):
            site.create(name="nets", image="julia")


class TestRights:
    READS: tuple[Callable[[CourseSite, Identity], object], ...] = (
        lambda s, who: s.services.administration.show(who, "cs101"),
        lambda s, who: s.services.overview.assignments(who, "cs101"),
        lambda s, who: s.services.assignments.fetch(who, "cs101", "ps1"),
        lambda s, who: s.services.submissions.receipts(who, "cs101", "ps1"),
    )
    OF_TEACHERS: tuple[Callable[[CourseSite, Identity], object], ...] = (
        lambda s, who: s.services.roster.update(who, "cs101", ROSTER),
        lambda s, who: s.services.assignments.release(who, "cs101", "ps2", ReleaseIn()),
        lambda s, who: s.services.deadlines.extend(
            who, "cs101", "ps1", ExtensionIn(person="student1", seconds=1)
        ),
        lambda s, who: s.services.administration.archive(who, "cs101"),
    )
    OF_ADMINISTRATORS: tuple[Callable[[CourseSite, Identity], object], ...] = (
        lambda s, who: s.services.administration.clone(who, "cs101", CloneIn(name="cs102")),
        lambda s, who: s.services.deadlines.record_outage(
            who, OutageIn(starts_at=1.0, ends_at=2.0)
        ),
    )

    def test_a_course_does_not_exist_for_other_users(self, course: CourseSite) -> None:
        for call in (*self.READS, *self.OF_TEACHERS):
            with pytest.raises(NotFound):
                call(course, STRANGER)
        assert course.services.administration.courses(STRANGER).courses == []
        assert course.services.overview.own_assignments(STRANGER) is None

    @pytest.mark.parametrize("who", [STUDENT1, GRADER])
    def test_calls_for_teachers_are_forbidden_to_others(
        self, course: CourseSite, who: Identity
    ) -> None:
        before = course.lines()
        for call in (*self.OF_TEACHERS, *self.OF_ADMINISTRATORS):
            with pytest.raises(Forbidden):
                call(course, who)
        assert course.lines() == before

    def test_calls_for_administrators_are_forbidden_to_teachers(self, course: CourseSite) -> None:
        for call in self.OF_ADMINISTRATORS:
            with pytest.raises(Forbidden):
                call(course, TEACHER)

    def test_all_members_read_the_course(self, course: CourseSite) -> None:
        for call in self.READS:
            for who in (STUDENT1, GRADER, TEACHER, ADMIN):
                call(course, who)

    def test_students_see_their_own_work_and_graders_see_all(self, course: CourseSite) -> None:
        course.submit("mine")
        receipt = course.submit("theirs", who=Identity(name="zoe"))
        assert [
            r.person for r in course.services.submissions.receipts(GRADER, "cs101", "ps1").receipts
        ] == [*("student1", "zoe")]
        assert course.services.submissions.files(GRADER, receipt.id).person == "zoe"
        with pytest.raises(NotFound):
            course.services.submissions.files(STUDENT1, receipt.id)
        with pytest.raises(Forbidden):
            course.services.submissions.receipts(STUDENT1, "cs101", "ps1", person="zoe")
        with pytest.raises(Forbidden):
            course.services.roster.members(STUDENT1, "cs101")
        with pytest.raises(Forbidden):
            course.services.submissions.choose(GRADER, receipt.id, counts=True)

    @pytest.mark.parametrize("who", [TEACHER, GRADER, ADMIN])
    def test_only_students_submit(self, course: CourseSite, who: Identity) -> None:
        with pytest.raises(Forbidden, match="Its students submit"):
            course.submit("x", who=who)


class TestRoster:
    def test_a_roster_is_shown_before_it_is_applied(self, course: CourseSite) -> None:
        before = course.lines()
        shown = course.services.roster.update(TEACHER, "cs101", "student\nzoe\nyan\n", dry_run=True)
        assert shown.sentences == [
            "gus leaves; the submissions are kept.",
            "student1 (Ada L.) leaves; the submissions are kept.",
            "student2 leaves; the submissions are kept.",
            "yan is new.",
        ]
        assert (shown.saved, shown.changes) == (False, True)
        assert course.lines() == before

    def test_a_member_who_leaves_and_comes_back_finds_all_work_again(
        self, course: CourseSite
    ) -> None:
        receipt = course.submit("x")
        course.services.roster.update(TEACHER, "cs101", "student\nzoe\n")
        assert course.hub.members["cs101"] == {"teacher", "zoe"}
        with pytest.raises(NotFound):
            course.services.administration.show(STUDENT1, "cs101")
        (kept,) = course.services.submissions.receipts(TEACHER, "cs101", "ps1").receipts
        assert kept == receipt
        course.services.roster.update(TEACHER, "cs101", "student\nzoe\nstudent1\n")
        assert course.services.submissions.receipts(STUDENT1, "cs101", "ps1").receipts == [receipt]

    def test_a_former_member_is_out_even_with_an_old_sign_in(self, course: CourseSite) -> None:
        course.services.roster.update(TEACHER, "cs101", "student\nzoe\n")
        with pytest.raises(NotFound):
            course.services.administration.show(
                Identity(name="student1", groups=frozenset({"cs101"})), "cs101"
            )

    def test_the_same_roster_completes_an_interrupted_change(
        self, course: CourseSite, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: object, **__: object) -> None:
            raise Unavailable("The disk is full.")

        with monkeypatch.context() as patched:
            patched.setattr(type(course.services.access.store), "put_members", broken)
            with pytest.raises(Unavailable):
                course.services.roster.update(TEACHER, "cs101", "student\nyan\n")
        assert course.services.roster.update(TEACHER, "cs101", "student\nyan\n").changes
        assert not course.services.roster.update(TEACHER, "cs101", "student\nyan\n").changes
        assert course.hub.members["cs101"] == {"teacher", "yan"}

    def test_a_roster_can_name_teachers(self, course: CourseSite) -> None:
        course.services.roster.update(
            TEACHER, "cs101", "student,role\nzoe,student\nstudent2,teacher\n"
        )
        assert course.services.administration.show(STUDENT2, "cs101").role == "teacher"
        with pytest.raises(NotFound):
            course.services.administration.show(TEACHER, "cs101")


class TestReleasing:
    def test_students_get_a_release_without_solutions_and_hidden_tests(
        self, course: CourseSite
    ) -> None:
        found = course.services.assignments.fetch(STUDENT1, "cs101", "ps1")
        (file,) = found.files
        text = base64.b64decode(file.content).decode()
        assert (file.name, found.version) == ("ps1.ipynb", 1)
        assert "assert answer() > 0" in text
        assert "42" not in text
        (mine,) = course.services.overview.assignments(STUDENT1, "cs101").assignments
        assert (mine.state, mine.fetched_version, mine.due) == ("fetched", 1, DUE_AT)
        assert mine.late_rule.startswith("Up to 24h late costs 10 %")

    def test_an_unreleased_assignment_does_not_exist_for_students(self, course: CourseSite) -> None:
        for call in (
            lambda: course.services.assignments.fetch(STUDENT1, "cs101", "ps2"),
            lambda: course.submit("x", name="ps2"),
            lambda: course.services.assignments.release(TEACHER, "cs101", "ps2", ReleaseIn()),
        ):
            with pytest.raises(NotFound):
                call()

    def test_a_new_due_date_needs_no_files_and_the_same_files_are_not_a_new_version(
        self, course: CourseSite
    ) -> None:
        body = ReleaseIn(due="2027-01-21 18:00 Europe/Berlin")
        changed = course.services.assignments.release(TEACHER, "cs101", "ps1", body)
        assert (changed.version, changed.due) == (1, DUE_AT + 24 * HOUR)
        course.release()
        assert course.services.assignments.fetch(STUDENT1, "cs101", "ps1").version == 1
        course.release(files=files({"ps1.ipynb": source(43)}))
        assert course.services.assignments.fetch(STUDENT1, "cs101", "ps1").version == 2
        assert course.services.assignments.fetch(STUDENT1, "cs101", "ps1", version=1).version == 1
        never = course.services.assignments.release(TEACHER, "cs101", "ps1", ReleaseIn(due=""))
        assert never.due is None

    @pytest.mark.parametrize(
        ("more", "error"),
        [
            ({"due": "2027-01-14 18:00 Europe/Berlin"}, InvalidInput),
            ({"due": "soon"}, InvalidInput),
            ({"late": "some"}, InvalidInput),
            ({"devices": 5}, OverMaximum),
            ({"files": files({"ps2.ipynb": b"no notebook"})}, InvalidInput),
            ({"files": files({"../ps2.ipynb": SOURCE})}, InvalidInput),
            ({"files": files({"data.csv": b"1"})}, InvalidInput),
            ({"archive": "UEs="}, InvalidInput),
            ({"files": [], "archive": "not base64"}, InvalidInput),
        ],
    )
    def test_a_refused_release_changes_nothing(
        self, course: CourseSite, more: dict[str, object], error: type[CarrelError]
    ) -> None:
        with pytest.raises(error):
            course.release(name="ps2", **more)
        assert [
            a.name for a in course.services.overview.assignments(TEACHER, "cs101").assignments
        ] == ["ps1"]

    @pytest.mark.parametrize("name", ["../ps1", "a b", "", ".hidden", "x" * 65])
    def test_assignment_names_are_valid_folder_names(self, course: CourseSite, name: str) -> None:
        with pytest.raises(InvalidInput):
            course.release(name=name)


class TestSubmitting:
    def test_a_receipt_has_the_hash_and_the_time_of_the_server(self, course: CourseSite) -> None:
        course.clock.pass_(60)
        receipt = course.submit("mine")
        assert (receipt.number, receipt.at, receipt.standing) == (1, START + 60, "on time")
        assert (receipt.counts, receipt.missing) == (True, [])
        assert receipt.sentence == "On time; this one is graded."
        content = course.services.submissions.files(STUDENT1, receipt.id)
        assert base64.b64decode(content.files[0].content) == b"mine"
        assert content.sha256 == receipt.sha256

    def test_students_submit_repeatedly_and_the_same_files_are_the_same_submission(
        self, course: CourseSite
    ) -> None:
        first = course.submit("a")
        course.clock.pass_(60)
        assert course.submit("a") == first
        second = course.submit("b")
        receipts = course.services.submissions.receipts(STUDENT1, "cs101", "ps1").receipts
        assert [(r.number, r.counts) for r in receipts] == [(1, False), (2, True)]
        assert second.number == 2

    def test_the_last_submission_on_time_counts_beside_a_later_late_one(
        self, course: CourseSite
    ) -> None:
        course.submit("on time")
        course.clock.now = DUE_AT + HOUR
        late = course.submit("late")
        assert late.sentence == (
            "1 h late, which costs 10 % of the points; submission 1 is graded."
        )
        shown = course.services.submissions.choose(TEACHER, late.id, counts=True)
        assert shown.counts
        receipts = course.services.submissions.receipts(STUDENT1, "cs101", "ps1").receipts
        assert [r.counts for r in receipts] == [False, True]
        course.services.submissions.choose(TEACHER, late.id, counts=False)
        receipts = course.services.submissions.receipts(STUDENT1, "cs101", "ps1").receipts
        assert [r.counts for r in receipts] == [True, False]

    def test_a_submission_that_is_too_late_is_stored_and_the_teacher_may_let_it_count(
        self, course: CourseSite
    ) -> None:
        course.clock.now = DUE_AT + 25 * HOUR
        receipt = course.submit("x")
        assert (receipt.standing, receipt.counts) == ("too late to count", False)
        assert receipt.sentence.endswith("too late to count; your teacher may still accept it.")
        assert course.services.submissions.choose(TEACHER, receipt.id, counts=True).counts

    def test_notebooks_that_are_missing_are_named(self, course: CourseSite) -> None:
        body = SubmitIn(files=files({"other.ipynb": b"{}"}), incomplete=True)
        assert course.services.submissions.submit(STUDENT1, "cs101", "ps1", body).missing == [
            "ps1.ipynb"
        ]

    @pytest.mark.parametrize(
        ("sent", "problem"),
        [
            ({"other.ipynb": SOURCE}, "ps1.ipynb is missing"),
            ({"PS1.ipynb": SOURCE}, "ps1.ipynb is missing"),
            ({"ps1.ipynb": b"not JSON"}, "ps1.ipynb cannot be read as a notebook"),
            ({"ps1.ipynb": b"[]"}, "ps1.ipynb cannot be read as a notebook"),
        ],
        ids=["another", "other case", "damaged", "no notebook"],
    )
    def test_an_incomplete_submission_replaces_a_better_one_only_if_confirmed(
        self, course: CourseSite, sent: dict[str, bytes], problem: str
    ) -> None:
        submissions = course.services.submissions
        good = SubmitIn(files=files({"ps1.ipynb": SOURCE}))
        submissions.submit(STUDENT1, "cs101", "ps1", good)
        with pytest.raises(Conflict, match=problem) as refused:
            submissions.submit(STUDENT1, "cs101", "ps1", SubmitIn(files=files(sent)))
        assert refused.value.field == "incomplete"
        (kept,) = submissions.receipts(STUDENT1, "cs101", "ps1").receipts
        assert kept.counts
        body = SubmitIn(files=files(sent), incomplete=True)
        assert submissions.submit(STUDENT1, "cs101", "ps1", body).counts

    @pytest.mark.parametrize("case", ODD)
    def test_a_notebook_that_grading_repairs_is_complete(
        self, course: CourseSite, case: str
    ) -> None:
        """Item 30 of issue 28: submission and grading have one notion of a valid notebook."""
        body = SubmitIn(files=files({"ps1.ipynb": ODD[case][0].encode()}))
        assert course.services.submissions.submit(STUDENT1, "cs101", "ps1", body).counts

    @pytest.mark.parametrize(
        ("body", "error"),
        [
            (SubmitIn(), InvalidInput),
            (SubmitIn(files=files({"ok": b"x", "../../x": b"x"})), InvalidInput),
            (SubmitIn(files=files({"a": b"x", "A": b"x"})), InvalidInput),
            (SubmitIn(files=files({"big": bytes(33 << 20)})), TooLarge),
            (SubmitIn(files=files({"a": b""}), archive="UEs="), InvalidInput),
        ],
        ids=["nothing", "out of it", "alike", "large", "both"],
    )
    def test_nothing_of_an_invalid_bundle_is_stored(
        self, course: CourseSite, body: SubmitIn, error: type[CarrelError]
    ) -> None:
        blobs = course.services.assignments.blobs
        assert isinstance(blobs, TemporaryBlobs)
        before = blobs.digests()
        with pytest.raises(error):
            course.services.submissions.submit(STUDENT1, "cs101", "ps1", body)
        assert course.services.submissions.receipts(STUDENT1, "cs101", "ps1").receipts == []
        assert blobs.digests() == before

    def test_an_archived_course_can_only_be_read(self, course: CourseSite) -> None:
        receipt = course.submit("x")
        course.services.administration.archive(TEACHER, "cs101")
        for call in (
            lambda: course.submit("y"),
            course.release,
            lambda: course.services.roster.update(TEACHER, "cs101", ROSTER),
        ):
            with pytest.raises(Conflict, match="is archived"):
                call()
        assert course.services.submissions.receipts(STUDENT1, "cs101", "ps1").receipts == [receipt]
        assert course.services.overview.own_assignments(STUDENT1) is None
        course.services.administration.archive(TEACHER, "cs101", undo=True)
        course.submit("y")


class TestMoreTime:
    def test_a_student_or_a_section_gets_an_extension(self, course: CourseSite) -> None:
        said = course.services.deadlines.extend(
            TEACHER, "cs101", "ps1", ExtensionIn(person="student1", seconds=48 * HOUR, why="ill")
        )
        assert said.sentences == ["student1 has 2 d more for ps1."]
        course.services.deadlines.extend(
            TEACHER, "cs101", "ps1", ExtensionIn(section="blue", seconds=HOUR)
        )
        (mine,) = course.services.overview.own_assignments(STUDENT1) or []
        (zoes,) = course.services.overview.own_assignments(Identity(name="zoe")) or []
        assert (mine.due, mine.class_due) == (DUE_AT + 49 * HOUR, DUE_AT)
        assert mine.extension
        assert (zoes.due, zoes.extension) == (DUE_AT, "")
        course.clock.now = DUE_AT + 48 * HOUR
        assert course.submit("x").standing == "on time"

    @pytest.mark.parametrize(
        ("whom", "error"),
        [
            ({"person": "stranger"}, NotFound),
            ({"section": "red"}, InvalidInput),
            ({}, InvalidInput),
            ({"person": "zoe", "section": "blue"}, InvalidInput),
        ],
    )
    def test_an_extension_needs_a_student_or_section_of_the_course(
        self, course: CourseSite, whom: dict[str, str], error: type[CarrelError]
    ) -> None:
        with pytest.raises(error):
            course.services.deadlines.extend(
                TEACHER, "cs101", "ps1", ExtensionIn(seconds=1, **whom)
            )

    def test_withdrawing_an_extension_changes_the_lateness_of_submissions(
        self, course: CourseSite
    ) -> None:
        for hours in (1, 2):
            given = ExtensionIn(person="student1", seconds=hours * HOUR)
            course.services.deadlines.extend(TEACHER, "cs101", "ps1", given)
        course.clock.now = DUE_AT + 2 * HOUR
        assert course.submit("x").standing == "on time"
        said = course.services.deadlines.withdraw_extensions(
            TEACHER, "cs101", "ps1", person="student1"
        )
        assert said.sentences == ["student1 had 3 h more for ps1: taken back."]
        (receipt,) = course.services.submissions.receipts(STUDENT1, "cs101", "ps1").receipts
        assert receipt.standing == "late"
        assert course.services.deadlines.extensions(TEACHER, "cs101", "ps1").extensions == []
        assert course.lines()[-1] == ("teacher", "extend", "cs101/ps1")

    @pytest.mark.parametrize(
        ("whom", "error"),
        [
            ({"person": "student1"}, NotFound),
            ({"section": "red"}, NotFound),
            ({}, InvalidInput),
            ({"person": "zoe", "section": "blue"}, InvalidInput),
        ],
    )
    def test_withdrawing_without_an_extension_is_refused(
        self, course: CourseSite, whom: dict[str, str], error: type[CarrelError]
    ) -> None:
        with pytest.raises(error):
            course.services.deadlines.withdraw_extensions(TEACHER, "cs101", "ps1", **whom)

    def test_extensions_are_listed_by_assignment(self, course: CourseSite) -> None:
        course.release("ps2")
        given = ExtensionIn(person="student1", seconds=HOUR)
        course.services.deadlines.extend(TEACHER, "cs101", "ps2", given)
        assert course.services.deadlines.extensions(TEACHER, "cs101", "ps1").extensions == []
        (found,) = course.services.deadlines.extensions(TEACHER, "cs101").extensions
        assert (found.assignment, found.person, found.seconds) == ("ps2", "student1", HOUR)
        with pytest.raises(NotFound):
            course.services.deadlines.extensions(TEACHER, "cs101", "ps9")

    def test_an_outage_moves_the_due_dates_of_all_courses(self, course: CourseSite) -> None:
        course.clock.now = DUE_AT + 2 * HOUR
        late = course.submit("x")
        assert late.standing == "late"
        body = OutageIn(starts_at=DUE_AT - HOUR, ends_at=DUE_AT + 2 * HOUR, why="Power")
        assert course.services.deadlines.record_outage(ADMIN, body).sentences == [
            "ps1 of cs101 is due 3 h later."
        ]
        (receipt,) = course.services.submissions.receipts(STUDENT1, "cs101", "ps1").receipts
        assert receipt.standing == "on time"
        assert course.services.deadlines.outages(STUDENT1).outages[0].why == "Power"

    @pytest.mark.parametrize(("starts", "ends"), [(5.0, 5.0), (5.0, 4.0), (0.0, 32 * 86400.0)])
    def test_an_outage_has_an_end(self, course: CourseSite, starts: float, ends: float) -> None:
        with pytest.raises(InvalidInput):
            course.services.deadlines.record_outage(ADMIN, OutageIn(starts_at=starts, ends_at=ends))


class TestCloning:
    def test_a_clone_has_the_assignments_hidden_and_no_members(self, course: CourseSite) -> None:
        course.services.administration.clone(
            ADMIN, "cs101", CloneIn(name="cs102", teachers=["student2"])
        )
        shown = course.services.administration.show(STUDENT2, "cs102")
        assert (shown.role, shown.students, shown.assignments) == ("teacher", 0, 1)
        group = course.services.access.context.store.group("cs102")
        assert group.max_devices == course.services.access.context.store.group("cs101").max_devices
        course.services.roster.update(STUDENT2, "cs102", "student\nzoe\n")
        zoe = Identity(name="zoe")
        assert course.services.overview.assignments(zoe, "cs102").assignments == []
        with pytest.raises(NotFound):
            course.services.assignments.fetch(zoe, "cs102", "ps1")
        course.services.assignments.release(
            STUDENT2, "cs102", "ps1", ReleaseIn(due="2027-02-20 18:00 Europe/Berlin")
        )
        assert course.services.assignments.fetch(zoe, "cs102", "ps1").version == 1
        assert course.services.submissions.receipts(STUDENT2, "cs102", "ps1").receipts == []
