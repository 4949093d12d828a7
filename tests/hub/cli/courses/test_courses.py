"""``carrel course …`` against the real service in this process."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from carrel.courses.feedback.delivery import GRADE
from carrel.courses.files.bundle import FileBundle
from carrel.hub.cli import cli
from carrel.hub.records.identity import Identity
from carrel.hub.records.requests import RequestFilter
from carrel.hub.schemas.coursework.leaderboards import (
    LEADERBOARD_RESULT,
    EntryScoreOut,
    LeaderboardResultOut,
)
from carrel.hub.schemas.coursework.official_checks import OFFICIAL_RESULT, OfficialVerdictOut
from carrel.hub.schemas.coursework.rehearsals import (
    REHEARSAL_RESULT,
    RehearsalFindingOut,
    RehearsalResultOut,
)
from carrel.hub.schemas.grading import CellScoreIn, CellScoreOut, GradeOut, VerdictIn
from carrel.hub.web.app import Server
from carrel.hub.web.dependencies.context import WebContext

from ....courses.checks import came_out
from ....courses.leaderboards.weights_samples import PERFECT, TEACHERS, a_pickle, linear
from ....courses.notebook_samples import SOURCE, source
from ....fake_service import eventually
from ....ports import free_port
from ...doubles import ADMIN, STUDENT1, TEACHER
from ...web.site import Site, site

__all__ = ["site"]

Carrel = Callable[..., Result]
ROSTER = "student,name,section\nstudent1,Ada L.,blue\nstudent2,,\n"


@pytest.fixture
def address(site: Site) -> Iterator[str]:
    site.clock.now = 1_800_000_000.0
    server = Server.of(site.world.app, port=(port := free_port()))
    thread = threading.Thread(target=server.run)
    thread.start()
    eventually(lambda: server.started)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


@pytest.fixture
def carrel(address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Carrel:
    """Return a function that runs a command as a user, in a folder with a roster and ps1."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CARREL_URL", address)
    monkeypatch.setenv("TZ", "UTC")
    (tmp_path / "roster.csv").write_text(ROSTER)
    (tmp_path / "source" / "ps1").mkdir(parents=True)
    (tmp_path / "source" / "ps1" / "ps1.ipynb").write_bytes(SOURCE)

    def run(who: Identity, *arguments: str, input: str | None = None) -> Result:
        return CliRunner().invoke(
            cli, ["course", *arguments], input=input, env={"CARREL_TOKEN": who.name}
        )

    return run


@pytest.fixture
def course(carrel: Carrel) -> Carrel:
    made = carrel(
        ADMIN, "create", "cs101", "--teacher", "teacher", "--students", "roster.csv",
        "--image", "local", "--guaranteed", "1", "--max", "4", "--budget", "300h/term",
    )  # fmt: skip  # grouped by meaning
    assert made.output == (
        "Created the course cs101: 2 students, taught by teacher, image local.\n"
        "Warning: There is no current term: requests of cs101 wait for the next one.\n"
        "Warning: 2 users have no account yet: student1, student2.\n"
    ), made.output
    due = ("--due", "2027-02-01 18:00 Europe/Berlin", "--late", "24h:-10%", "--time", "10m")
    released = carrel(TEACHER, "release", "ps1", *due, "--devices", "0")
    assert released.output == (
        "Released ps1 of cs101, version 1.\nFiles: ps1.ipynb.\n"
        "Due: 1 Feb 2027 17:00 (UTC), which is 1 Feb 18:00 in Europe/Berlin. "
        "Up to 24h late costs 10 % of the points; later does not count.\n"
        "It was not tried in the grading sandbox before it was released.\n"
    )
    return carrel


def test_members_missing_from_the_roster_of_a_new_course_are_listed_and_stay(
    carrel: Carrel, tmp_path: Path
) -> None:
    (tmp_path / "roster.csv").write_text("student\nstudent1\n")
    made = carrel(ADMIN, "create", "cs101", "--students", "roster.csv")
    assert "Created the course cs101: 2 students" in made.stdout
    assert "In the group already, and not on the roster: student2. They stay" in made.stderr
    assert "student2 leaves" in carrel(TEACHER, "roster", "cs101", "roster.csv").output


def test_a_preview_of_a_course_creates_nothing(carrel: Carrel) -> None:
    asked = ("create", "cs101", "--teacher", "grce", "--students", "roster.csv", "--dry-run")
    assert carrel(ADMIN, *asked).output == (
        "cs101 becomes the group of a course, with at most 4 devices.\n"
        "grce teaches it.\n"
        "JupyterHub does not know grce yet: is the name right?\n"
        "2 users have no account yet: student1, student2.\n"
        "student1 (Ada L.) was in the group already, section blue.\n"
        "student2 was in the group already.\n"
        "Nothing was created.\n"
    )
    assert json.loads(carrel(ADMIN, *asked, "--json").output)["saved"] is False
    assert "Administrators create one: carrel course create NAME" in carrel(ADMIN, "list").output
    assert "There is a course" not in carrel(ADMIN, *asked[:-1]).output


def test_empty_lists_are_sentences(carrel: Carrel) -> None:
    assert "Administrators create one: carrel course create NAME" in carrel(ADMIN, "list").output
    carrel(ADMIN, "create", "cs102", "--teacher", "teacher")
    assert carrel(TEACHER, "assignments").output == "cs102 has no assignment yet.\n"
    assert carrel(TEACHER, "gradebook").output == "No assignment of cs102 is released yet.\n"
    assert carrel(TEACHER, "roster", "cs102").output == (
        "cs102 has no students yet. Add them: carrel course roster cs102 FILE\nTeachers: teacher.\n"
    )
    assert carrel(TEACHER, "release", "ps1", "--devices", "0").exit_code == 0
    assert carrel(TEACHER, "gradebook").output == "cs102 has no students yet.\n"
    assert carrel(TEACHER, "assignments", "--json").output.count("\n") == 1


def test_a_student_fetches_works_and_submits(course: Carrel, tmp_path: Path) -> None:
    (tmp_path / "source").rename(tmp_path / "the teacher's")
    assert course(STUDENT1, "fetch", "ps1").output == (
        "Fetched ps1 of cs101, version 1, into ps1.\n"
    )
    notebook = tmp_path / "ps1" / "ps1.ipynb"
    assert "### BEGIN" not in notebook.read_text()
    notebook.write_text(notebook.read_text().replace("answer():", "answer():  # mine"))
    done = course(STUDENT1, "submit", "ps1", "--json")
    receipt = json.loads(done.output)
    assert (receipt["number"], receipt["counts"], receipt["missing"]) == (1, True, [])
    again = course(STUDENT1, "submit", "ps1")
    assert "Submitted ps1 of cs101, number 1." in again.output
    assert "On time; this one is graded." in again.output
    assert receipt["sha256"] in again.output
    assert receipt["sha256"] in course(STUDENT1, "receipts", "ps1").output
    assert "submitted" in course(STUDENT1, "assignments").output


def test_a_submission_without_the_notebook_needs_an_option(course: Carrel, tmp_path: Path) -> None:
    course(STUDENT1, "fetch", "ps1")
    (tmp_path / "ps1" / "ps1.ipynb").rename(tmp_path / "ps1" / "mine.ipynb")
    refused = course(STUDENT1, "submit", "ps1")
    assert refused.exit_code != 0
    assert "ps1.ipynb is missing" in refused.stderr
    assert "--incomplete" in refused.stderr
    done = course(STUDENT1, "submit", "ps1", "--incomplete", "--json")
    assert json.loads(done.output)["missing"] == ["ps1.ipynb"]


def test_a_students_check_does_not_count(course: Carrel, site: Site) -> None:
    course(STUDENT1, "fetch", "ps1")
    assert "You have no check of ps1" in course(STUDENT1, "check", "ps1", "--last").stderr
    asked = course(STUDENT1, "check", "ps1", "--course", "cs101")
    assert "Waiting in the queue." in asked.output, asked.stderr
    assert "carrel course check ps1 --last" in asked.output
    (request,) = site.context.store.requests(RequestFilter(labels={"check": "yes"}))
    cells = [
        CellScoreIn(notebook="ps1", cell=cell, word=word, sentence=said, score=1.0, max_score=1.0)
        for cell, word, said in [("first", "passed", "All\nis well."), ("second", "failed", "No.")]
    ]
    result = VerdictIn(submission=1, seconds=1.0, cells=cells, notes=["Cell 3 was stopped."])
    came_out(site.context, request.id, result)
    assert course(STUDENT1, "check", "ps1", "--last").output == (
        f"Check of ps1 ({request.id}): 1 of 2 tests that you can see passes.\n"
        "CELL    RESULT  WHY\n"
        "first   passed  All is well.\n"
        "second  failed  No.\n"
        "Cell 3 was stopped.\n"
        "This result does not count. Grading may have hidden tests.\n"
    )
    assert course(STUDENT1, "check", "ps1", "--last", "--watch").exit_code == 1
    assert "There are no submissions of ps1." in course(STUDENT1, "receipts", "ps1").output


def test_official_checks_are_allowed_run_and_listed(course: Carrel, site: Site) -> None:
    course(STUDENT1, "fetch", "ps1")
    refused = course(STUDENT1, "check", "ps1", "--official")
    assert "Official checks of ps1 are not allowed." in refused.stderr
    for number in ("0", "1000000"):
        assert course(TEACHER, "official-checks", "ps1", "--per-day", number).exit_code == 2
    allowed = course(TEACHER, "official-checks", "ps1", "--per-day", "2")
    assert allowed.output == (
        "ps1: 2 official checks a day for each student. The result does not name tests.\n"
    ), allowed.stderr
    asked = course(STUDENT1, "check", "ps1", "--official")
    assert "Waiting in the queue." in asked.output, asked.stderr
    assert "Official checks left today: 1 of 2." in asked.output
    (request,) = site.context.store.requests(RequestFilter(labels={"official": "yes"}))
    verdict = OfficialVerdictOut(passed=False, points=1.0, max_points=2.0, cells=[])
    came_out(site.context, request.id, verdict, name=OFFICIAL_RESULT)
    site.clock.now += 60
    ended = course(STUDENT1, "check", "ps1", "--official", "--last", "--watch")
    assert ended.exit_code == 1
    assert "Not all tests pass: 1 of 2 points." in ended.output
    log = course(TEACHER, "official-checks", "ps1").output
    assert re.search(r"student1 +1 +not passed +1 of 2", log), log
    off = course(TEACHER, "official-checks", "ps1", "--off").output
    assert off.startswith("Official checks of ps1 are not allowed.\n")


def test_a_leaderboard_is_opened_and_weights_are_submitted(
    course: Carrel, site: Site, tmp_path: Path
) -> None:
    folder, good, bad = (tmp_path / name for name in ("board", "good", "bad"))
    folder.mkdir()
    (folder / "leaderboard.py").write_bytes(TEACHERS)
    good.write_bytes(linear(*PERFECT))
    bad.write_bytes(a_pickle())
    assert course(TEACHER, "leaderboard", "ps1").output == "ps1 has no leaderboard.\n"
    assert "needs --per-day" in course(TEACHER, "leaderboard", "ps1", "--metric", "mae").stderr
    opened = course(TEACHER, "leaderboard", "ps1", "--per-day", "5", "--from", str(folder))
    assert opened.output == (
        "ps1: accuracy, higher is better; 5 submissions a day for each student; the best one "
        "counts. 50 % of the hidden examples are public; the private score is for teachers only.\n"
    ), opened.stderr
    kept = course(TEACHER, "leaderboard", "ps1", "--counts", "last")
    assert "5 submissions a day for each student; the last one counts" in kept.output, kept.stderr
    refused = course(STUDENT1, "submit-weights", "ps1", str(bad), "--watch")
    assert (refused.exit_code, "The file is a pickle" in refused.output) == (1, True)
    sent = course(STUDENT1, "submit-weights", "ps1", str(good))
    assert "Waiting in the queue." in sent.output, sent.stderr
    (request,) = site.context.store.requests(RequestFilter(labels={"leaderboard": "yes"}))
    entry = sent.output.partition(":")[0]
    fault = EntryScoreOut(entry=entry, problem="The files failed.", fault=True)
    failed = LeaderboardResultOut(scores=[fault], failure="OSError: hidden.pt")
    came_out(site.context, request.id, failed, name=LEADERBOARD_RESULT)
    told = course(TEACHER, "leaderboard", "ps1").output
    assert "A fault left 1 submission without score: OSError: hidden.pt" in told
    again = course(TEACHER, "leaderboard", "ps1", "--again", "--json")
    assert json.loads(again.output)["unscored"] == 0, again.stderr
    (entry,) = (e["id"] for e in json.loads(again.output)["entries"] if not e["outcome"])
    request = site.context.store.requests(RequestFilter(labels={"leaderboard": "yes"}))[0]
    score = EntryScoreOut(entry=entry, public=0.5, private=0.25)
    result = LeaderboardResultOut(scores=[score])
    came_out(site.context, request.id, result, name=LEADERBOARD_RESULT)
    mine = course(STUDENT1, "leaderboard", "ps1").output
    assert re.search(r"1\* +\w+-\w{5} +0.5 +1", mine), mine
    assert "Left today: 4 of 5." in mine
    assert mine.count("The same file was submitted again since.") == 1
    log = course(TEACHER, "leaderboard", "ps1").output
    assert re.search(r"student1 +0.5 +0.25 +1", log), log
    assert re.search(r"student1 +refused +The file is a pickle", log), log
    off = course(TEACHER, "leaderboard", "ps1", "--off").output
    assert "no further submissions" in off
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(10 << 30)
    huge = course(STUDENT1, "submit-weights", "ps1", file.name)
    assert "Weights of up to 32 MiB." in huge.stderr


def test_a_rehearsal_says_what_breaks_and_its_exit_status_too(course: Carrel, site: Site) -> None:
    assert "has not been rehearsed" in course(TEACHER, "rehearse", "cs101", "--last").stderr
    begun = course(TEACHER, "rehearse", "cs101")
    assert "0 of 1 assignment done." in begun.output, begun.stderr
    (request,) = site.context.store.requests(RequestFilter(labels={"assignment": "ps1"}))
    cell = RehearsalFindingOut(part="solution", notebook="ps1", cell="a", error="NameError: x")
    result = RehearsalResultOut(findings=[cell], max_points=2.0)
    came_out(site.context, request.id, result, name=REHEARSAL_RESULT)
    ended = course(TEACHER, "rehearse", "cs101", "--last", "--wait")
    assert ended.exit_code == 1
    assert ended.output.splitlines()[1:] == [
        "ASSIGNMENT  STATE   PART      CELL    ERROR         PRESENT IMAGE",
        "ps1         breaks  solution  ps1: a  NameError: x",
    ]
    found = json.loads(course(TEACHER, "rehearse", "cs101", "--last", "--json").output)
    assert (found["works"], found["sentence"]) == (False, "1 of 1 assignment broken: ps1.")
    refused = course(TEACHER, "rehearse", "cs101", "--assignment", "ps9")
    assert "has no assignment ps9" in refused.stderr
    made = course(TEACHER, "rehearse", "cs101", "--cron", "0 3 * * *", "--zone", "Europe/Berlin")
    assert made.output.startswith("Created the schedule c-"), made.stderr
    listed = course(TEACHER, "rehearse", "cs101", "--schedules").output.splitlines()
    assert re.search(r"Rehearsal of cs101 +teacher +0 3 \* \* \* Europe/Berlin", listed[1])
    assert (
        "omit --wait" in course(TEACHER, "rehearse", "cs101", "--cron", "@daily", "--wait").stderr
    )


def test_a_student_has_own_grades_once_feedback_is_released(course: Carrel, site: Site) -> None:
    assert "not released feedback yet" in course(STUDENT1, "grades", "ps1").output
    assert "no feedback yet" in course(STUDENT1, "grades").output
    assert "The assignment is missing." in course(TEACHER, "grades").stderr
    course(STUDENT1, "fetch", "ps1")
    sent = json.loads(course(STUDENT1, "submit", "ps1", "--json").output)
    cell = CellScoreOut(
        notebook="ps1", cell="squares", word="failed", sentence="No.", score=1.0, max_score=2.0
    )
    grade = GradeOut(
        person="student1", submission=sent["id"], number=1, score=1.0, max_score=2.0, cells=[cell]
    )
    web: WebContext = site.world.app.state.web
    pages = {"ps1.html": b"Well done.", GRADE: grade.model_dump_json().encode()}
    submission = web.courses.access.store.submission(sent["id"])
    web.courses.delivery.deliver(TEACHER, submission, FileBundle.of(pages.items()))
    assert course(STUDENT1, "grades", "ps1").output == (
        "ps1 of cs101, submission 1: 1 of 2 points.\n"
        "CELL     RESULT  SCORE  OF  WHY\n"
        "squares  failed      1   2  No.\n"
        "Pages with comments: carrel course feedback ps1\n"
    )
    assert re.search(r"graded +1 +2", course(STUDENT1, "grades").output)
    a_student_asks_and_the_teacher_answers(course)


def a_student_asks_and_the_teacher_answers(course: Carrel) -> None:
    assert course(TEACHER, "regrades").output == "There are no open regrade requests.\n"
    why = ("--why", "I did.")
    asked = course(STUDENT1, "regrades", "--ask", "ps1", "--cell", "squares", *why)
    assert asked.output.startswith("Request 1 of student1 about squares of ps1, to answer.\n")
    assert re.search(
        r"1 +student1 +ps1 +squares +to answer .* I did\.", course(TEACHER, "regrades").output
    )
    answered = course(TEACHER, "regrades", "1", "--answer", "True: 2 points.", "--close")
    assert "about squares of ps1, closed." in answered.output
    assert "  True: 2 points.\n" in course(STUDENT1, "regrades", "1").output
    assert "need the number of a request" in course(TEACHER, "regrades", "--close").stderr
    assert "There is no regrade request 9" in course(TEACHER, "regrades", "9").stderr
    table = course(TEACHER, "gradebook", "--csv").output
    assert table.startswith(
        "student,name,section,ps1,total,max_total\nstudent1,Ada L.,blue,,0.0,0.0\n"
    )
    assert re.search(r"student1 +not graded +0", course(TEACHER, "gradebook").output)
    off = "The prefix of ps1 is off.\n"
    assert [course(TEACHER, "prefix", "ps1", *more).output for more in ((), ("off",))] == [off, off]
    assert "can run once for all members" in course(TEACHER, "prefix", "ps1", "on").stderr
    assert course(TEACHER, "withdraw", "ps1").output == "Students no longer see ps1 of cs101.\n"
    assert "has no assignment ps1" in course(STUDENT1, "fetch", "ps1", "--course", "cs101").stderr


def test_a_new_version_is_merged_into_the_folder(course: Carrel, tmp_path: Path) -> None:
    course(STUDENT1, "fetch", "ps1")
    notebook = tmp_path / "ps1" / "ps1.ipynb"
    notebook.write_text(notebook.read_text().replace("answer():", "answer():  # mine"))
    better = source().replace(b"assert answer() > 0", b"assert answer() > 1")
    (tmp_path / "source" / "ps1" / "ps1.ipynb").write_bytes(better)
    assert "version 2" in course(TEACHER, "release", "ps1").output
    assert "a newer version is available" in course(STUDENT1, "assignments").output
    assert "version 2" in course(STUDENT1, "fetch", "ps1").output
    text = notebook.read_text()
    assert "# mine" in text
    assert "answer() > 1" in text


def test_an_extended_session_shows_its_new_end(course: Carrel) -> None:
    given = course(TEACHER, "extend", "ps1", "student1", "48h", "--why", "ill")
    assert given.output == "student1 has 2 d more for ps1.\n"
    assert "3 Feb 2027 17:00" in course(STUDENT1, "assignments").output
    section = course(TEACHER, "extend", "ps1", "blue", "1h", "--section")
    assert section.output == "Section blue has 1 h more for ps1.\n"
    hours = ("2027-02-01 15:00 Europe/Berlin", "2027-02-01 18:00 Europe/Berlin")
    assert course(ADMIN, "outage", *hours).output == "ps1 of cs101 is due 3 h later.\n"
    assert "administrator rights" in course(TEACHER, "outage", *hours).stderr


def test_extensions_are_listed_and_revoked(course: Carrel) -> None:
    assert course(TEACHER, "extend", "ps1").output == "There are no extensions for ps1.\n"
    course(TEACHER, "extend", "ps1", "student1", "48h", "--why", "ill")
    course(TEACHER, "extend", "ps1", "blue", "90m", "--section")
    heading, *rows = course(TEACHER, "extend", "ps1").output.splitlines()
    assert heading.split() == ["FOR", "EXTENSION", "GRANTED", "(UTC)", "BY", "WHY"]
    assert rows[0].split() == ["student1", "2", "d", *rows[0].split()[3:-2], "teacher", "ill"]
    assert rows[1].startswith("section blue  1 h 30 min")
    first = json.loads(course(TEACHER, "extend", "ps1", "--json").output.splitlines()[0])
    assert (first["person"], first["seconds"], first["why"]) == ("student1", 172_800, "ill")
    back = course(TEACHER, "extend", "ps1", "student1", "--undo")
    assert back.output == "student1 had 2 d more for ps1: taken back.\n"
    assert "no extension" in course(TEACHER, "extend", "ps1", "student1", "--undo").stderr
    assert "1 Feb 2027 18:30" in course(STUDENT1, "assignments").output
    assert course(TEACHER, "extend", "ps1", "blue", "--section", "--undo").exit_code == 0
    assert "1 Feb 2027 17:00" in course(STUDENT1, "assignments").output
    assert "You do not teach or grade a course." in course(STUDENT1, "extend", "ps1").stderr


@pytest.mark.parametrize(
    "arguments",
    [("student1",), ("student1", "1h", "--undo"), ("--undo",), ("--section",), ("--why", "ill")],
)
def test_an_extension_needs_a_student_and_either_a_duration_or_undo(
    carrel: Carrel, arguments: tuple[str, ...]
) -> None:
    refused = carrel(TEACHER, "extend", "ps1", *arguments)
    assert refused.exit_code == 2
    named = arguments[0] == "student1"
    wanted = "revoke it with --undo." if named else "Name a student or section:"
    assert wanted in refused.stderr


def test_outages_are_listed(course: Carrel) -> None:
    assert course(TEACHER, "outage").output == "No outage is recorded.\n"
    hours = ("2027-02-01 15:00 Europe/Berlin", "2027-02-01 18:00 Europe/Berlin")
    course(ADMIN, "outage", *hours, "--why", "Power")
    assert course(TEACHER, "outage").output == (
        "FROM (UTC)        TO (UTC)          COURSE  BY     WHY\n"
        "1 Feb 2027 14:00  1 Feb 2027 17:00  all     admin  Power\n"
    )
    (listed,) = map(json.loads, course(STUDENT1, "outage", "--json").output.splitlines())
    assert listed["why"] == "Power"
    assert "Give the end of the outage" in course(ADMIN, "outage", hours[0]).stderr
    assert (
        "Give the start and the end of the outage"
        in course(ADMIN, "outage", "--why", "Power").stderr
    )


def test_a_roster_is_applied_after_the_preview(course: Carrel, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("student\nstudent1\nzoe\n")
    refused = course(TEACHER, "roster", "cs101", "new.csv", input="n\n")
    assert refused.exit_code == 1
    assert "student2 leaves; the submissions are kept.\nzoe is new.\n" in refused.output
    assert "left" not in course(TEACHER, "roster", "cs101").output
    assert (
        "Nothing was changed." in course(TEACHER, "roster", "cs101", "new.csv", "--dry-run").output
    )
    done = course(TEACHER, "roster", "cs101", "new.csv", "--yes")
    assert done.output.endswith("The roster is applied.\n")
    shown = course(TEACHER, "roster", "cs101").output
    assert "Teachers: teacher." in shown
    assert shown.count("left") == 1


def test_missing_accounts_are_listed_and_created(course: Carrel, site: Site) -> None:
    assert course(TEACHER, "accounts", "cs101").output == "student1\nstudent2\nteacher\n"
    lines = course(TEACHER, "accounts", "cs101", "--create").stdout.splitlines()
    made = dict(line.split(",") for line in lines)
    assert sorted(made) == ["student1", "student2", "teacher"]
    assert site.accounts.sign_in("student2", made["student2"]) is not None
    again = course(TEACHER, "accounts", "cs101", "--create")
    assert (again.stdout, again.stderr) == ("", "Every member of cs101 has an account.\n")
    assert json.loads(course(TEACHER, "accounts", "cs101", "--json").output) == []


def test_courses_are_listed_cloned_and_archived(course: Carrel) -> None:
    assert "cs102: 0 students" in course(ADMIN, "clone", "cs101", "cs102").output
    assert [line.split()[0] for line in course(ADMIN, "list").output.splitlines()] == [
        *("COURSE", "cs101", "cs102")
    ]
    assert "Students:    2" in course(TEACHER, "show", "cs101").output
    assert course(TEACHER, "archive", "cs101").exit_code == 0
    assert "is archived" in course(TEACHER, "release", "ps1", "--course", "cs101").stderr
    assert course(TEACHER, "archive", "cs101", "--undo").output == "cs101 is restored.\n"


def test_a_teacher_lets_a_late_submission_count(course: Carrel, site: Site) -> None:
    course(STUDENT1, "fetch", "ps1")
    site.clock.now += 30 * 86400
    late = json.loads(course(STUDENT1, "submit", "ps1", "--json").output)
    assert late["standing"] == "too late to count"
    taken = course(TEACHER, "count", str(late["id"]))
    assert "this one is graded" in taken.output
    assert "still accept it" in course(TEACHER, "count", str(late["id"]), "--undo").output


def test_a_grader_need_not_name_the_course_either(course: Carrel, tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_text("student,role\nstudent2,\nstudent1,grader\n")
    course(TEACHER, "roster", "cs101", "roster.csv", "--yes")
    (tmp_path / "small.csv").write_text("student\nstudent1\n")
    assert course(ADMIN, "create", "cs102", "--students", "small.csv").exit_code == 0
    assert "No submission for ps1 counts" in course(STUDENT1, "grade", "ps1").stderr
    shown = course(STUDENT1, "grades", "ps1").output
    assert re.search(r"^student2 +no submission counts$", shown, re.MULTILINE)
    assert course(STUDENT1, "feedback", "ps1", "--release").exit_code == 0
    assert course(STUDENT1, "extend", "ps1").output == "There are no extensions for ps1.\n"
    refused = course(STUDENT1, "extend", "ps1", "student2", "1h")
    assert "You are a grader of cs101. This is for its teachers." in refused.stderr


def test_an_assignment_of_one_course_names_the_course(course: Carrel, tmp_path: Path) -> None:
    (tmp_path / "small.csv").write_text("student\nstudent1\n")
    course(ADMIN, "create", "cs102", "--teacher", "teacher", "--students", "small.csv")
    assert "of cs101, version 1" in course(STUDENT1, "fetch", "ps1").output
    assert "Submitted ps1 of cs101" in course(STUDENT1, "submit", "ps1").output
    assert "student1" in course(TEACHER, "extend", "ps1", "student1", "1h").output
    assert "You are in several courses." in course(STUDENT1, "fetch", "ps9").stderr
    several = course(TEACHER, "release", "ps1")
    assert several.stderr == (
        "carrel: You teach several courses. Name one with --course: cs101, cs102.\n"
    )


def test_refusals_are_sentences(course: Carrel) -> None:
    refusals: list[tuple[Identity, tuple[str, ...], str]] = [
        (TEACHER, ("create", "x"), "This needs administrator rights."),
        (ADMIN, ("create", "x", "--image", "datascience"), "there is no image 'datascience'"),
        (STUDENT1, ("fetch", "ps9"), "has no assignment ps9"),
        (STUDENT1, ("submit", "ps1"), "ps1 is not a folder"),
        (STUDENT1, ("release", "ps1"), "You do not teach a course."),
        (TEACHER, ("release", "ps1", "--due", "soon"), "'soon' is not a due date."),
        (TEACHER, ("release", "ps9"), "has no assignment ps9"),
        (STUDENT1, ("show", "cs999"), "There is no course cs999."),
        (
            TEACHER,
            ("extend", "ps1", "student1", "9999d"),
            "The field 'seconds' is 8639",
        ),
        (
            ADMIN,
            ("create", "x", "--title", "x" * 300),
            "The field 'title' is text of 300 characters.",
        ),
    ]
    for who, arguments, said in refusals:
        refused = course(who, *arguments)
        assert refused.exit_code == 1
        assert said in refused.stderr
