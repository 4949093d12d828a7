"""The page of an assignment for its student, and its refusal to others."""

from __future__ import annotations

import io
import zipfile

import httpx
import pytest

from carrel.courses.feedback.delivery import GRADE
from carrel.courses.files.bundle import FileBundle
from carrel.hub.schemas.grading import CellScoreIn, CellScoreOut, GradeOut, VerdictIn
from carrel.hub.web import TokenHolder
from carrel.hub.web.dependencies.context import WebContext
from carrel.hub.web.html.downloads import attachment

from .....courses.checks import came_out
from .....courses.notebook_samples import SOURCE
from ....doubles import STUDENT1, STUDENT2, TEACHER
from ...course_samples import course, files
from ...fakes import ALL_SCOPES, API, PREFIX, Client
from ...page_checks import check_page
from ...site import Site, site

__all__ = ["course", "site"]

PS1 = f"{API}/courses/cs101/assignments/ps1"
PAGE = f"{PREFIX}course/cs101/assignment/ps1"
Sent = list[tuple[str, tuple[str, bytes]]]


def sent(**contents: bytes) -> Sent:
    return [("files", (name.replace("_", "."), content)) for name, content in contents.items()]


@pytest.fixture
def browser(course: Site) -> Client:
    return course.page(STUDENT1)


def other(course: Site) -> Client:
    people = course.world.sign_in.people
    people["student2-oauth"] = TokenHolder(identity=STUDENT2, scopes=ALL_SCOPES)
    return course.page(STUDENT2)


def receipts(course: Site) -> list[str]:
    found = course.api(STUDENT1).get(f"{PS1}/submissions").json()["receipts"]
    return [each["sha256"] for each in found]


def read(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    check_page(answer.text)
    return answer.text


def test_the_page_shows_the_state_of_the_assignment(course: Site, browser: Client) -> None:
    extension = {"person": "student1", "seconds": 3600}
    course.api(TEACHER).post(f"{PS1}/extensions", json=extension)
    page = read(browser.get(PAGE))
    for words in (
        '<time datetime="2027-02-01T18:00:00Z" data-show="date">',
        "You have 1 h more.",
        "Submitted now, it is on time; in 17 d 10 h it does not count any more.",
        "Your teacher has not released feedback yet.",
        "You have not submitted anything yet.",
        "You have no checks in the last day.",
        "%carrel fetch-assignment ps1 --course cs101",
    ):
        assert words in page
    assert PAGE in course.page(STUDENT1).get(PREFIX).text, "the desk leads there"


def test_the_hand_out_comes_as_a_zip(browser: Client) -> None:
    answer = browser.get(f"{PAGE}/hand-out")
    assert answer.headers["content-disposition"] == attachment("ps1.zip")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.namelist() == ["ps1/ps1.ipynb"]
        assert b"BEGIN SOLUTION" not in archive.read("ps1/ps1.ipynb")
    assert "which you have" in read(browser.get(PAGE))


def test_submitted_files_have_a_receipt(course: Site, browser: Client) -> None:
    answer = browser.post(f"{PAGE}/submit", files=sent(ps1_ipynb=SOURCE, data_csv=b"1,2"))
    assert (answer.status_code, answer.headers["location"]) == (303, f"{PAGE}#receipt-1")
    (sha256,) = receipts(course)
    for page in (read(browser.get(PAGE)), browser.get(f"{PAGE}/live/work").text):
        assert sha256 in page
        assert "On time; this one is graded." in page
    assert "submitted" in browser.get(f"{PAGE}/live").text


def test_a_zip_is_unpacked(course: Site, browser: Client) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("ps1/ps1.ipynb", SOURCE)
    browser.post(f"{PAGE}/submit", files=[("files", ("ps1.zip", packed.getvalue()))])
    found = course.api(STUDENT1).get(f"{PS1}/submissions").json()["receipts"]
    assert [file["name"] for each in found for file in each["files"]] == ["ps1.ipynb"]


def _zip_with_a_link() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        link = zipfile.ZipInfo("ps1.ipynb")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    return packed.getvalue()


@pytest.mark.parametrize(
    ("files", "status", "sentence"),
    [
        (sent(), 400, "there are no files"),
        ([("files", ("../ps1.ipynb", b"x"))], 400, "leads out of its folder"),
        ([("files", ("a.ipynb", b"x")), ("files", ("A.ipynb", b"x"))], 400, "are too alike"),
        ([("files", ("n" * 1200, b"x"))], 400, "is too long"),
        ([("files", ("ps1.zip", _zip_with_a_link()))], 400, "holds a link"),
        ([("files", ("ps1.zip", b"no zip"))], 400, "cannot be read"),
        ([("files", ("ps1.ipynb", b"x" * (33 << 20)))], 413, "32 MiB"),
    ],
    ids=["nothing", "out", "alike", "long", "link", "no zip", "large"],
)
def test_a_refused_release_says_why_and_stores_nothing(
    course: Site, browser: Client, files: Sent, status: int, sentence: str
) -> None:
    answer = browser.post(f"{PAGE}/submit", files=files, data={"x": ""})
    assert answer.status_code == status, answer.text
    check_page(answer.text)
    assert 'id="submit-problem"' in answer.text
    assert sentence in answer.text
    assert receipts(course) == []


def test_a_submission_without_the_notebook_is_confirmed_first(
    course: Site, browser: Client
) -> None:
    other_name = sent(ps1_copy_ipynb=SOURCE)
    answer = browser.post(f"{PAGE}/submit", files=other_name)
    assert answer.status_code == 409
    check_page(answer.text)
    assert "Nothing was submitted: ps1.ipynb is missing." in answer.text
    assert 'name="incomplete"' in answer.text
    assert receipts(course) == []
    answer = browser.post(f"{PAGE}/submit", files=other_name, data={"incomplete": "yes"})
    assert answer.status_code == 303
    assert "counts, incomplete" in read(browser.get(PAGE))


def test_a_form_of_another_site_submits_no_assignment(course: Site) -> None:
    stranger = course.world.browser("student1-oauth")
    for what in ("submit", "check"):
        answer = stranger.post(f"{PAGE}/{what}", files=sent(ps1_ipynb=b"x"))
        assert answer.status_code == 403
    assert receipts(course) == []


def test_a_check_shows_its_result_to_its_student(course: Site, browser: Client) -> None:
    refused = browser.post(f"{PAGE}/check", files=sent(), data={"x": ""})
    assert refused.status_code == 400
    assert "nothing to check" in refused.text
    answer = browser.post(f"{PAGE}/check", files=sent(ps1_ipynb=b"my work"))
    assert (answer.status_code, answer.headers["location"]) == (303, f"{PAGE}#check-title")
    assert "Waiting in the queue." in read(browser.get(PAGE))
    (check,) = browser.get(f"{PS1}/checks").json()["checks"]
    cell = CellScoreIn(
        notebook="ps1", cell="a", word="passed", sentence="All is well.", score=1.0, max_score=1.0
    )
    result = VerdictIn(submission=1, seconds=1.0, cells=[cell])
    came_out(course.context, check["request"], result)
    assert "The one test that you can see passes." in browser.get(f"{PAGE}/live/work").text
    page = read(browser.get(PAGE))
    assert "All is well." in page
    assert receipts(course) == []
    for stranger in (other(course), course.page(TEACHER)):
        assert "All is well." not in read(stranger.get(PAGE))


def test_a_check_has_its_title_in_the_list_of_requests(course: Site, browser: Client) -> None:
    browser.post(f"{PAGE}/check", files=sent(ps1_ipynb=b"my work"))
    (check,) = browser.get(f"{PS1}/checks").json()["checks"]
    request = f"{PREFIX}requests/{check['request']}"
    for page in (f"{PREFIX}requests?kind=grading", request):
        said = read(browser.get(page))
        assert "Check of ps1" in said
        assert "carrel.courses.grading_runs.check_worker" not in said
        assert "sha256" not in said
    assert "Check of ps1" in read(course.page(TEACHER).get(f"{PREFIX}course/cs101"))
    assert f'href="{PAGE}"' in browser.get(request).text
    assert "Run again" not in browser.get(request).text
    refused = browser.post(f"{request}/again", data={"csrf": ""})
    assert refused.status_code == 404
    assert "start it again from its course" in refused.text


def test_points_and_feedback_appear_when_they_are_released(course: Site, browser: Client) -> None:
    sent = {"files": files(ps1_ipynb=SOURCE)}
    receipt = browser.post(f"{PS1}/submissions", json=sent).json()
    assert browser.get(f"{PS1}/my-grade").json()["grade"] is None
    cell = CellScoreOut(
        notebook="ps1", cell="squares", word="failed", sentence="A check failed.",
        score=1.0, max_score=2.0,
    )  # fmt: skip  # one value
    grade = GradeOut(
        person="student1", submission=receipt["id"], number=1, score=0.9, max_score=2.0,
        penalty=0.1, cells=[cell], provisional=2,
    )  # fmt: skip  # one value
    pages = {
        "ps1.html": b"<script>alert(1)</script>Well done.",
        GRADE: grade.model_dump_json().encode(),
    }
    web: WebContext = course.world.app.state.web
    services = web.courses
    services.delivery.deliver(
        TEACHER, services.access.store.submission(receipt["id"]), FileBundle.of(pages.items())
    )

    mine = browser.get(f"{PS1}/my-grade").json()
    assert (mine["grade"]["score"], mine["pages"], mine["sentence"]) == (0.9, ["ps1.html"], "")
    page = read(browser.get(PAGE))
    for words in ("0.9 of 2 points", "10% late penalty", "squares", "A check failed."):
        assert words in page
    assert "0.9 of 2 points" in read(browser.get(PREFIX))
    assert [
        f["name"]
        for f in browser.get(f"{API}/submissions/{receipt['id']}/feedback").json()["files"]
    ] == ["ps1.html"]

    address = f"{PAGE}/feedback/{receipt['id']}/ps1.html"
    assert address in page
    framed = read(browser.get(address))
    assert f'<iframe class="frame notebook-frame" sandbox="" src="{address}/content"' in framed
    content = browser.get(f"{address}/content")
    assert content.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert "Well done." in content.text
    hidden = browser.get(f"{PAGE}/feedback/{receipt['id']}/{GRADE}")
    assert hidden.status_code == 404
    stranger = other(course)
    assert stranger.get(f"{address}/content").status_code == 404
    assert stranger.get(f"{PS1}/my-grade").json()["grade"] is None


def test_non_members_find_nothing_and_teachers_get_a_link(course: Site) -> None:
    page = read(course.page(TEACHER).get(PAGE))
    assert f"{PREFIX}course/cs101/grading/ps1" in page
    assert 'id="submit"' not in page
    assert course.api(TEACHER).get(f"{PS1}/my-grade").status_code == 403
    course.api(TEACHER).put(f"{API}/courses/cs101/roster", json={"students": "student\nstudent2\n"})
    for path in ("", "/live", "/live/work", "/hand-out"):
        assert course.page(STUDENT1).get(f"{PAGE}{path}").status_code == 404


def test_the_text_is_read_before_fetching(course: Site, browser: Client) -> None:
    assert f'href="{PAGE}/text/ps1.ipynb"' in read(browser.get(PAGE))
    assert f'src="{PAGE}/content/ps1.ipynb"' in read(browser.get(f"{PAGE}/text/ps1.ipynb"))
    shown = browser.get(f"{PAGE}/content/ps1.ipynb")
    assert ">answer</span>" in shown.text
    assert "42" not in shown.text.partition("</style>")[2]
    assert "sandbox;" in shown.headers["content-security-policy"]
    assert browser.get(f"{PAGE}/content/other.ipynb").status_code == 404
    (mine,) = course.api(STUDENT1).get(f"{API}/courses/cs101/assignments").json()["assignments"]
    assert (mine["state"], mine["fetched_version"]) == ("open", 0)


def test_students_download_their_own_submissions(course: Site, browser: Client) -> None:
    body = {"files": files(ps1_ipynb=SOURCE)}
    made = course.api(STUDENT1).post(f"{PS1}/submissions", json=body).json()
    address = f"{PAGE}/submission/{made['id']}"
    assert f'href="{address}"' in read(browser.get(PAGE))
    answer = browser.get(address)
    assert answer.headers["content-disposition"] == attachment("ps1-submission-1.zip")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.read("ps1/ps1.ipynb") == SOURCE
    assert other(course).get(address).status_code == 404
