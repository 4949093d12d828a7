"""The pages of a course for its teachers and graders."""

from __future__ import annotations

import io
import json
import re
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape

from carrel.courses.files.bundle import FileBundle
from carrel.courses.files.transfer import store_bundle
from carrel.courses.model.prefixes import PrefixOffer
from carrel.courses.model.records import NewSubmission
from carrel.hub.attempts.compile_cache_side import COURSE
from carrel.hub.errors import OverMaximum
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.web import TokenHolder
from carrel.hub.web.security.hub_oauth import ACCESS_SCOPE

from .....courses.notebook_samples import SOURCE
from ....doubles import ADMIN, STUDENT1, TEACHER
from ...course_samples import PS1, course, files
from ...fakes import API, PREFIX
from ...site import Site, site
from .teacher_page import GUS, send, shown

__all__ = ["course", "site"]

COURSES = f"{PREFIX}courses"
TEACH = f"{PREFIX}course/cs101/teach"
PEOPLE = f"{PREFIX}course/cs101/people"
RELEASE = f"{PREFIX}course/cs101/release"
ROSTER = b"student,name,section\nstudent1,Ada Lovelace,blue\nzoe,Zoe,red\n"


def roster(content: bytes = ROSTER) -> list[tuple[str, bytes]]:
    return [("roster.csv", content)]


def grader(site: Site) -> None:
    """gus grades cs101."""
    scopes = frozenset({ACCESS_SCOPE})
    site.world.sign_in.people["gus-oauth"] = TokenHolder(identity=GUS, scopes=scopes)
    table = {"students": "student,section,role\nstudent1,blue,\nstudent2,,\ngus,,grader\n"}
    assert site.api(TEACHER).put(f"{API}/courses/cs101/roster", json=table).status_code == 200


# -- the list ---------------------------------------------------------------------------------


def test_an_empty_list_says_how_to_create_a_course(site: Site) -> None:
    assert "Create the first one below" in shown(site.page().get(COURSES))
    page = shown(site.page(TEACHER).get(COURSES))
    assert "You do not teach a course." in page
    assert "carrel course create cs101 --teacher teacher" in page
    assert "Create a course" not in page
    # Their group without a course is still shown.
    assert f'href="{PREFIX}course/cs101"' in page


def test_those_who_teach_or_grade_find_their_course_in_the_navigation(course: Site) -> None:
    grader(course)
    way = f'href="{COURSES}"'
    for who in (ADMIN, TEACHER, GUS):
        assert way in course.page(who).get(PREFIX).text, who
        assert f'href="{TEACH}"' in shown(course.page(who).get(COURSES)), who
    assert way not in course.page(STUDENT1).get(PREFIX).text
    assert f'href="{TEACH}"' not in course.page(STUDENT1).get(COURSES).text


def test_a_course_has_a_preview_before_it_is_created(site: Site) -> None:
    asked = {"name": "cs102", "teachers": "teacher, nobody", "guaranteed": "1", "max_devices": "3"}
    page = shown(send(site, COURSES, ADMIN, do="preview", **asked, roster=roster()))
    for words in (
        "cs102 is made, group and course, with at most 3 devices.",
        "JupyterHub does not know nobody yet: is the name right?",
        "student1 (Ada Lovelace) is new, section blue.",
        "zoe (Zoe) is new, section red.",
    ):
        assert words in page
    assert not site.context.store.teachers("cs102")
    # The page contains the table, so that the file need not be selected again.
    made = shown(send(site, COURSES, ADMIN, do="create", **asked, students=ROSTER.decode()))
    assert f'Created <a href="{PREFIX}course/cs102/teach">cs102</a>, with 2 students.' in made
    assert "JupyterHub does not know nobody yet" in made
    found = site.api().get(f"{API}/courses/cs102").json()
    assert (found["students"], found["teachers"]) == (2, ["nobody", "teacher"])
    assert site.context.store.group("cs102").guaranteed == 1
    more = asked | {"name": "cs104", "guaranteed": "90", "max_devices": "99"}
    assert "these cannot all be met at once" in shown(
        send(site, COURSES, ADMIN, do="preview", **more)
    )
    plain = send(site, COURSES, ADMIN, do="create", name="cs103", teachers="teacher")
    assert (plain.status_code, plain.headers["location"]) == (
        303,
        f"{PREFIX}course/cs103/teach#main",
    )


def test_members_missing_from_the_roster_are_listed_and_stay(site: Site) -> None:
    said = "In the group already, and not on the roster: student2."
    page = shown(send(site, COURSES, ADMIN, do="preview", name="cs101", roster=roster()))
    assert "cs101 becomes the group of a course" in page
    assert said in page
    made = shown(send(site, COURSES, ADMIN, do="create", name="cs101", students=ROSTER.decode()))
    assert said in made
    assert site.api().get(f"{API}/courses/cs101").json()["students"] == 3


@pytest.mark.parametrize(
    ("wrong", "sentence", "field"),
    [
        ({"name": ""}, "The name of the course is missing.", "new-name"),
        ({"max_devices": "many"}, "Invalid number of devices: &#39;many&#39;.", "new-max_devices"),
        ({"budget": "300"}, "Invalid budget: &#39;300&#39;.", "new-budget"),
        ({"students": "person\nAda"}, "names no column &#39;student&#39;", "roster"),
        ({"guaranteed": "5"}, "5 devices are guaranteed, and 2 are the most.", "new-guaranteed"),
    ],
    ids=["no name", "devices", "budget", "roster", "guarantee"],
)
def test_errors_are_shown_beside_their_fields(
    site: Site, wrong: dict[str, str], sentence: str, field: str
) -> None:
    asked = {"name": "cs102", "title": "Kept", "max_devices": "2", "do": "create"} | wrong
    page = shown(send(site, COURSES, ADMIN, **asked), 400)
    assert sentence in page
    assert f'id="{field}-wrong"' in page
    assert 'value="Kept"' in page


def test_only_administrators_make_courses(site: Site) -> None:
    assert send(site, COURSES, TEACHER, do="create", name="cs102").status_code == 403
    assert site.api().get(f"{API}/courses").json()["courses"] == []


# -- one course -------------------------------------------------------------------------------


def test_the_overview_has_counts_and_links(course: Site) -> None:
    course.api(STUDENT1).get(f"{PS1}/hand-out")
    course.api(STUDENT1).post(f"{PS1}/submissions", json={"files": files(ps1_ipynb=SOURCE)})
    page = shown(course.page(TEACHER).get(TEACH))
    assert f'href="{PREFIX}course/cs101/grading/ps1"' in page
    assert f'href="{RELEASE}?assignment=ps1"' in page
    assert f'href="{PREFIX}course/cs101"' in page
    version, fetched, handed_in, graded = "1", "1", "1 of 2", "0"
    numbers = re.findall(r'<td class="number">(.*?)</td>', page)
    assert numbers == [version, fetched, handed_in, graded]
    assert '<time datetime="2027-02-01T17:00:00Z" data-show="day">' in page


def test_a_grader_sees_the_course_and_changes_nothing(course: Site) -> None:
    grader(course)
    for address in (TEACH, PEOPLE, RELEASE, f"{RELEASE}?assignment=ps1"):
        page = shown(course.page(GUS).get(address))
        assert "<form" not in page.partition("<main")[2], address
    extend = {"assignment": "ps1", "whom": "student1", "span": "1h"}
    for do in ("extend", "archive"):
        assert send(course, TEACH, GUS, do=do, **extend).status_code == 403
    assert send(course, PEOPLE, GUS, do="apply", students="student\n").status_code == 403
    assert send(course, RELEASE, GUS, assignment="ps1", time="1m").status_code == 403


def test_students_and_strangers_do_not_get_in(course: Site) -> None:
    for address in (TEACH, PEOPLE, RELEASE):
        assert course.page(STUDENT1).get(address).status_code == 403
    course.world.sign_in.people["gus-oauth"] = TokenHolder(
        identity=GUS, scopes=frozenset({ACCESS_SCOPE})
    )
    for address in (TEACH, PEOPLE, RELEASE):
        assert course.page(GUS).get(address).status_code == 404


def test_extensions_are_granted_and_listed(course: Site) -> None:
    asked = {"do": "extend", "assignment": "ps1", "why": "ill"}
    page = shown(send(course, TEACH, whom="student1", span="48h", **asked))
    assert "student1 has 2 d more for ps1." in page
    page = shown(send(course, TEACH, whom="section:blue", span="1h", **asked))
    assert "section blue</th><td>ps1</td><td>1 h</td><td>teacher</td>" in page
    wrong = shown(send(course, TEACH, whom="student1", span="long", **asked), 400)
    assert 'id="extend-span-wrong"' in wrong
    assert "No student or section is selected." in shown(
        send(course, TEACH, whom="", span="1h", **asked), 400
    )


def test_extensions_are_revoked(course: Site) -> None:
    shown(send(course, TEACH, do="extend", assignment="ps1", whom="section:blue", span="1h"))
    taken = {"do": "take-back", "assignment": "ps1"}
    page = shown(send(course, TEACH, whom="section:blue", **taken))
    assert "Section blue had 1 h more for ps1: taken back." in page
    assert "There are no extensions." in page
    assert "no extension" in shown(send(course, TEACH, whom="student1", **taken), 404)
    assert "No student or section is selected." in shown(send(course, TEACH, whom="", **taken), 400)


def test_an_outage_moves_what_is_due(course: Site) -> None:
    times = {"starts_at": "2027-02-01T15:00", "ends_at": "2027-02-01T18:00"}
    asked = {"do": "outage", "zone": "Europe/Berlin", "why": "Power", **times}
    assert send(course, TEACH, TEACHER, **asked).status_code == 403
    page = shown(send(course, TEACH, ADMIN, **asked))
    assert "ps1 of cs101 is due 3 h later." in page
    assert "(moved by an outage)" in page
    wrong = shown(send(course, TEACH, ADMIN, **(asked | {"ends_at": ""})), 400)
    assert 'id="outage-ends_at-wrong"' in wrong


def test_a_course_is_archived_and_restored(course: Site) -> None:
    assert send(course, TEACH, do="archive").status_code == 303
    page = shown(course.page(TEACHER).get(TEACH))
    assert "</time> and read-only" in page
    assert 'id="extend"' not in page
    assert "you cannot release assignments" in shown(course.page(TEACHER).get(RELEASE))
    assert send(course, TEACH, do="bring-back").status_code == 303
    assert 'id="archived"' not in course.page(TEACHER).get(TEACH).text


def test_a_clone_has_the_assignments_hidden(course: Site) -> None:
    assert send(course, TEACH, TEACHER, do="clone", name="cs102").status_code == 403
    made = send(course, TEACH, ADMIN, do="clone", name="CS102", teachers="teacher")
    assert made.headers["location"] == f"{PREFIX}course/cs102/teach#main"
    page = shown(course.page(TEACHER).get(f"{PREFIX}course/cs102/teach"))
    assert "<td>not released</td>" in page


# -- the roster -------------------------------------------------------------------------------


def test_a_roster_is_shown_with_what_it_changes_and_then_applied(course: Site) -> None:
    page = shown(send(course, PEOPLE, do="preview", roster=roster()))
    assert "student2 leaves; the submissions are kept." in page
    assert "zoe (Zoe) is new, section red." in page
    assert 'id="apply-roster"' in page
    assert len(course.api(TEACHER).get(f"{API}/courses/cs101/members").json()["members"]) == 2
    assert send(course, PEOPLE, do="apply", students=ROSTER.decode()).status_code == 303
    page = shown(course.page(TEACHER).get(PEOPLE))
    for words in ("Section blue (1)", "Section red (1)", "Left (1)", "Ada Lovelace"):
        assert words in page
    again = shown(send(course, PEOPLE, do="preview", roster=roster()))
    assert "Nothing changes." in again
    assert 'id="apply-roster"' not in again


def test_a_newly_selected_file_is_previewed_again(course: Site) -> None:
    page = send(course, PEOPLE, do="apply", students=ROSTER.decode(), roster=roster(b"student\n"))
    assert "student1 leaves" in shown(page)
    found = course.api(TEACHER).get(f"{API}/courses/cs101/members").json()["members"]
    assert all(member["left_at"] is None for member in found)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (b"student\n-bad-\n", "line 2: &#39;-bad-&#39; is not a valid user name"),
        (b"student\n\xff\n", "roster.csv is not UTF-8 text."),
        (b"", "No roster is selected."),
    ],
    ids=["a bad line", "no text", "no file"],
)
def test_a_bad_roster_changes_nothing(course: Site, table: bytes, sentence: str) -> None:
    sent = roster(table) if table else [("", b"")]
    assert sentence in shown(send(course, PEOPLE, do="preview", roster=sent), 400)


# -- releasing --------------------------------------------------------------------------------


def notebook(name: str = "ps2.ipynb", content: bytes = SOURCE) -> tuple[str, bytes]:
    return name, content


def zipped(**contents: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), content)
    return made.getvalue()


KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
FORM = {
    "assignment": "ps2",
    "due": "2027-02-08T18:00",
    "zone": "Europe/Berlin",
    "late_span_1": "24",
    "late_unit_1": "h",
    "late_part_1": "10",
    "devices": "0",
    "time": "5",
    "time_unit": "m",
}


def released(site: Site, name: str = "ps2") -> dict[str, Any]:
    found = site.api(TEACHER).get(f"{API}/courses/cs101/assignments").json()["assignments"]
    return dict(next(each for each in found if each["name"] == name))


def test_a_teacher_releases_and_reads_how_it_is_graded(course: Site) -> None:
    page = shown(send(course, RELEASE, **FORM, files=[notebook(), ("data.csv", b"1,2\n")]))
    assert "Released ps2, version 1" in page
    assert "Up to 24h late costs 10 % of the points" in page
    assert "ps2.ipynb (" in page
    assert "data.csv (4 bytes)" in page
    assert "It was not tried in the grading sandbox" in page
    made = released(course)
    assert (made["zone"], made["late"], made["seconds"]) == ("Europe/Berlin", "24h:-10%", 300)
    assert made["due"] == 1_802_106_000.0
    again = shown(course.page(TEACHER).get(f"{RELEASE}?assignment=ps2"))
    assert "Current version: 1" in again
    assert 'value="2027-02-08T18:00"' in again


def test_a_folder_is_uploaded_as_one_archive(course: Site) -> None:
    archive = ("ps2.zip", zipped(ps2__ps2_ipynb=SOURCE, ps2__data__x_csv=b"1"))
    page = shown(send(course, RELEASE, **FORM, files=[archive]))
    assert "ps2.ipynb (" in page
    assert "data/x.csv (1 bytes)" in page or "data/x.csv (1 byte)" in page


def test_a_due_date_changes_without_a_new_version(course: Site) -> None:
    changed = FORM | {"assignment": "ps1", "due": "", "late_span_1": "", "late_part_1": ""}
    shown(send(course, RELEASE, **changed, files=[("", b"")]))
    made = released(course, "ps1")
    assert (made["due"], made["version"], made["late"]) == (None, 1, "none")


@pytest.mark.parametrize(
    ("wrong", "sentence", "field"),
    [
        ({"due": "2020-01-01T10:00"}, "is over.", "release-due"),
        ({"zone": "Berlin"}, "There is no time zone", "release-zone"),
        ({"late_span_1": "soon"}, "Step 1 of the late rule has the time", "release-late"),
        ({"late_part_1": "101"}, "at most 100 %", "release-late"),
        ({"devices": "-1"}, "Invalid number of devices:", "release-devices"),
        ({"time": "8", "time_unit": "d"}, "691200", "release-time"),
        ({"time": "brief"}, "Invalid duration", "release-time"),
        ({"assignment": "a b"}, "is not a name that an assignment can have.", "release-assignment"),
    ],
    ids=["over", "zone", "late", "part", "devices", "time", "brief", "name"],
)
def test_a_refused_release_keeps_the_entered_values(
    course: Site, wrong: dict[str, str], sentence: str, field: str
) -> None:
    answer = send(course, RELEASE, **(FORM | wrong), files=[notebook()])
    page = shown(answer, 400)
    assert sentence in page
    assert f'id="{field}-wrong"' in page
    assert "Nothing was released" in page
    assert 'value="Europe/Berlin"' in page or wrong.get("zone")


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ([], "ps2 has no files yet."),
        ([("x.txt", b"no notebook")], "has no notebook"),
        ([("../ps2.ipynb", SOURCE)], "leads out of its folder"),
        ([("ps2.zip", b"no zip")], "The archive cannot be read"),
        ([("ps2.zip", zipped(ps2_ipynb=SOURCE, PS2_ipynb=SOURCE))], "are too alike"),
    ],
    ids=["none", "no notebook", "out", "no zip", "alike"],
)
def test_bad_files_are_refused_and_nothing_is_stored(
    course: Site, sent: list[tuple[str, bytes]], sentence: str
) -> None:
    page = shown(send(course, RELEASE, **FORM, files=sent or [("", b"")]), 400)
    assert sentence in page
    found = course.api(TEACHER).get(f"{API}/courses/cs101/assignments").json()["assignments"]
    assert [each["name"] for each in found] == ["ps1"]


def test_forms_with_files_need_the_form_token(course: Site) -> None:
    browser = course.world.browser("teacher-oauth")
    for address in (PEOPLE, RELEASE, COURSES):
        answer = browser.post(address, data={"do": "apply"}, files={"roster": roster()[0]})
        assert answer.status_code == 403


def test_a_group_without_a_course_has_no_course_pages(site: Site) -> None:
    site.context.store.put_group(Group(name="lab"))
    site.context.store.set_teachers("lab", ["teacher"])
    assert site.page(TEACHER).get(f"{PREFIX}course/lab/teach").status_code == 404
    assert site.page(TEACHER).get(f"{PREFIX}course/lab").status_code == 200


def test_accounts_of_a_class_are_created_and_their_passwords_shown_once(course: Site) -> None:
    assert "3 members cannot sign in yet: student1, student2, teacher." in shown(
        course.page(TEACHER).get(PEOPLE)
    )
    created = shown(send(course, f"{PEOPLE}/accounts"))
    (password,) = re.findall(r"^student2,(\S+)$", created, re.MULTILINE)
    assert course.accounts.sign_in("student2", password) is not None
    page = shown(course.page(TEACHER).get(PEOPLE))
    assert password not in page
    assert "cannot sign in" not in page
    assert send(course, f"{PEOPLE}/accounts", STUDENT1).status_code == 403


# -- names of other sign-in systems -----------------------------------------------------------

NAMES = ["a+b@x.edu", "o'brien", "_x", "ünal", "ada lovelace"]


def test_names_of_other_sign_in_systems_are_students_and_teachers(course: Site) -> None:
    """In a roster, in the group form, in an extension, and in addresses."""
    table = "student,role\n" + "".join(f"{name},\n" for name in NAMES) + "o'hara,teacher\n"
    applied = send(course, PEOPLE, do="apply", students=table)
    assert applied.status_code == 303, applied.text
    page = shown(course.page(ADMIN).get(PEOPLE))
    for name in NAMES:
        assert f'<th scope="row">{escape(name)}</th>' in page
    assert course.context.store.teachers("cs101") == ("o'hara",)
    groups = f"{PREFIX}admin/groups"
    group = {"name": "cs101", "max_devices": "1", "max_devices_per_user": "1", "idle": "0"}
    group |= {"do": "save", "max_time": "1h"}
    saved = send(course, groups, ADMIN, **group, teachers=", ".join(["teacher", *NAMES]))
    assert saved.status_code == 303, saved.text
    assert course.context.store.teachers("cs101") == tuple(sorted(["teacher", *NAMES]))
    hidden = shown(send(course, groups, ADMIN, **group, teachers="teacher, x\u202ey"), 400)
    assert "is not a valid username" in hidden
    courses = course.world.web.courses
    for name in NAMES:
        extension = {"do": "extend", "assignment": "ps1", "whom": name, "span": "48h"}
        assert f"{escape(name)} has" in shown(send(course, TEACH, **extension))
        files = store_bundle(courses.submissions.blobs, FileBundle.of([("ps1.ipynb", b"x")]))
        courses.access.store.submit(
            NewSubmission(course="cs101", assignment="ps1", person=name, at=1.0, files=files)
        )
    grading = f"{PREFIX}course/cs101/grading/ps1"
    links = re.findall(r'href="([^"]*/student/[^"]+)"', course.page(TEACHER).get(grading).text)
    assert len(links) == len(NAMES)
    for link in links:
        assert course.page(TEACHER).get(link).status_code == 200, link


def test_an_assignment_that_is_never_due_has_no_late_rule(course: Site) -> None:
    steps = {name: "" for name in FORM if name.startswith("late_")}
    page = shown(send(course, RELEASE, **{**FORM, **steps, "due": ""}, files=[notebook()]))
    assert "Released ps2, version 1; it is never due." in page
    row = re.search(r"<th [^>]*>ps2\b.*?</tr>", shown(course.page(TEACHER).get(TEACH)), re.DOTALL)
    assert row is not None
    assert "never" in row[0]
    assert "late does not count" not in row[0] + page


def test_a_release_without_points_is_confirmed(course: Site) -> None:
    cells = [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": "Read this."}]
    plain = {"nbformat": 4, "nbformat_minor": 5, "metadata": KERNEL, "cells": cells}
    given = {**FORM, "files": [notebook(content=json.dumps(plain).encode())]}
    page = shown(send(course, RELEASE, **given), 409)
    assert "No cell of ps2 has points: there would be nothing to grade." in page
    assert 'name="ungraded"' in page
    assert "Released ps2, version 1" in shown(send(course, RELEASE, **given, ungraded="yes"))


def test_a_release_is_withdrawn_and_shown_again(course: Site) -> None:
    fields = {**FORM, "assignment": "ps1"}
    assert 'id="withdraw"' in shown(course.page(TEACHER).get(f"{RELEASE}?assignment=ps1"))
    for _ in range(2):
        done = send(course, f"{RELEASE}/withdraw", **fields)
        assert (done.status_code, done.headers["location"]) == (
            *(303, f"{RELEASE}?assignment=ps1#main"),
        )
    page = shown(course.page(TEACHER).get(done.headers["location"]))
    assert "Students do not see it until it is released: press Save." in page
    mine = f"{PREFIX}course/cs101/assignment/ps1"
    assert course.page(STUDENT1).get(mine).status_code == 404
    assert "Released ps1, version 1" in shown(send(course, RELEASE, **fields))
    assert course.page(STUDENT1).get(mine).status_code == 200
    assert course.api(TEACHER).delete(f"{PS1}/release").status_code == 204
    assert course.page(STUDENT1).get(mine).status_code == 404
    assert course.api(TEACHER).delete(f"{PS1}9/release").status_code == 404


def test_a_prefix_is_switched_on_and_the_course_shows_what_it_has_saved(course: Site) -> None:
    given = {
        "cells": [
            {"cell_type": "code", "id": "a", "metadata": {}, "source": "x = 1", "outputs": []}
            | {"execution_count": None}
        ],
        "metadata": KERNEL,
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    files = [notebook(content=json.dumps(given).encode())]
    shown(send(course, RELEASE, **FORM, files=files, ungraded="yes"))
    page = f"{RELEASE}?assignment=ps2"
    assert 'id="prefix-on"' in shown(course.page(TEACHER).get(page))
    fields = {"assignment": "ps2", "on": "yes", "devices": "99"}
    refused = shown(send(course, f"{RELEASE}/prefix", **fields), OverMaximum.http_status)
    assert "cs101 never has 99 devices" in refused
    done = send(course, f"{RELEASE}/prefix", **{**fields, "devices": "1"})
    assert (done.status_code, done.headers["location"]) == (303, f"{page}#prefix-title")
    found = shown(course.page(TEACHER).get(page))
    assert "is computed by" in found
    assert 'id="prefix-off"' in found
    assert "has saved nothing yet" in shown(course.page(TEACHER).get(TEACH))

    courses = course.world.web.courses
    offer = PrefixOffer(
        request="j-1",
        epoch=1,
        prefix="j-0",
        course="cs101",
        assignment="ps2",
        seconds=3600.0,
        devices=2,
        offered_at=0.0,
    )
    courses.access.store.prefixes.add_offer(offer)
    courses.prefixes.used("j-1", 1)
    text = re.sub("<[^>]*>", "", shown(course.page(TEACHER).get(TEACH)))
    assert "Device-hours saved by the prefix of ps2: 2.0, 1 job." in text
    shared = course.api(TEACHER).get(f"{API}/courses/cs101/assignments/ps2/prefix").json()
    assert (shared["on"], shared["jobs"], shared["device_seconds"]) == (True, 1, 7200.0)
    compiled = shared_code(course, 3 << 20)
    found = shown(course.page(TEACHER).get(page))
    assert "with 3.0 MiB of compiled code" in re.sub(r"\s+", " ", re.sub("<[^>]*>", "", found))
    assert 'id="prefix-clear-cache"' in found
    fields = {"assignment": "ps2", "do": "clear-cache"}
    assert send(course, f"{RELEASE}/prefix", **fields).status_code == 303
    assert not compiled.exists()
    assert 'id="prefix-clear-cache"' not in shown(course.page(TEACHER).get(page))
    compiled = shared_code(course, 1)
    cache = f"{API}/courses/cs101/assignments/ps2/prefix/compile-cache"
    assert course.api(STUDENT1).delete(cache).status_code == 403
    (kept,) = course.api(TEACHER).delete(cache).json()["notebooks"]
    assert (kept["state"], kept["compiled_bytes"], compiled.exists()) == ("ready", 0, False)

    off = {"assignment": "ps2"}
    assert send(course, f"{RELEASE}/prefix", **off).status_code == 303
    assert 'id="prefix-on"' in shown(course.page(TEACHER).get(page))


def shared_code(course: Site, size: int) -> Path:
    """Let the prefix of ps2 be computed, with compiled code of a size; return its file."""
    prefixes = course.world.web.courses.prefixes
    (prefix,) = prefixes.store.prefixes("cs101", "ps2")
    prefixes.store.put(replace(prefix, kept=True, seconds=60.0))
    assert prefixes.root is not None
    path = prefixes.root / "cs101" / prefix.request / COURSE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    return path
