"""Leaderboards on the pages of a teacher and of students."""

from __future__ import annotations

import base64
import re

from carrel.hub.records.requests import RequestFilter
from carrel.hub.schemas.courses import FileIn
from carrel.hub.schemas.coursework.leaderboards import (
    LEADERBOARD_RESULT,
    EntryScoreOut,
    LeaderboardResultOut,
    WeightsIn,
)

from .....courses.checks import came_out
from .....courses.leaderboards.weights_samples import PERFECT, TEACHERS, a_pickle, linear
from ....doubles import STUDENT1, STUDENT2, TEACHER
from ...course_samples import PS1, course
from ...fakes import PREFIX
from ...site import Site, site
from .teacher_page import send, shown

__all__ = ["course", "site"]

ASSIGNMENT = f"{PREFIX}course/cs101/assignment/ps1"
PAGE = f"{ASSIGNMENT}/leaderboard"
RULE = {"metric": "accuracy", "per_day": "2", "public_percent": "50", "counts": "best"}
_TYPE = "application/octet-stream"


def weights(content: bytes) -> list[tuple[str, bytes, str]]:
    return [("weights.safetensors", content, _TYPE)]


def opened(course: Site) -> None:
    program = [("leaderboard.py", TEACHERS, "text/x-python")]
    answer = send(course, f"{PAGE}/rule", files=program, private_after_due="yes", **RULE)
    assert answer.headers["location"] == f"{PAGE}#rule-title", answer.text


def test_a_teacher_opens_a_leaderboard_and_reads_what_is_wrong(course: Site) -> None:
    assert 'id="to-leaderboard"' not in course.page(STUDENT1).get(ASSIGNMENT).text
    release = course.page(TEACHER).get(f"{PREFIX}course/cs101/release?assignment=ps1").text
    assert f'href="{PAGE}"' in release
    assert "has no leaderboard" in shown(course.page(STUDENT1).get(PAGE))
    missing = shown(send(course, f"{PAGE}/rule", **RULE), 400)
    assert "There are no files for the leaderboard." in missing
    for field, text in (("per_day", "0"), ("per_day", "x"), ("public_percent", "100")):
        wrong = shown(send(course, f"{PAGE}/rule", **RULE | {field: text}), 400)
        assert f"{text} is not accepted." in wrong
    opened(course)
    assert f'href="{PAGE}"' in course.page(STUDENT1).get(ASSIGNMENT).text
    assert send(course, f"{PAGE}/rule", STUDENT1, **RULE).status_code == 403
    closed = send(course, f"{PAGE}/rule", do="off")
    assert closed.headers["location"] == f"{PAGE}#rule-title"
    assert "takes no further submissions" in shown(course.page(STUDENT1).get(PAGE))
    assert "It takes no further submissions." in shown(course.page(STUDENT1).get(ASSIGNMENT))


def test_a_teacher_reads_why_the_files_failed_and_scores_again(course: Site) -> None:
    opened(course)
    sent = send(course, f"{PAGE}/submit", STUDENT1, files=weights(linear(*PERFECT)))
    assert sent.headers.get("location") == f"{PAGE}#mine-title", sent.text
    (entry,) = course.api(TEACHER).get(f"{PS1}/leaderboard/log").json()["entries"]
    (request,) = (each.id for each in course.context.store.requests(RequestFilter()))
    fault = EntryScoreOut(entry=entry["id"], problem="The files failed.", fault=True)
    result = LeaderboardResultOut(scores=[fault], failure="OSError: hidden.pt")
    came_out(course.context, request, result, name=LEADERBOARD_RESULT)
    teacher = shown(course.page(TEACHER).get(PAGE))
    assert "A fault left 1 submission without score: OSError: hidden.pt" in teacher
    assert 'id="score-again"' in teacher
    assert "hidden.pt" not in course.page(STUDENT1).get(PAGE).text
    assert send(course, f"{PAGE}/again", STUDENT1).status_code == 403
    for _ in "12":
        again = send(course, f"{PAGE}/again")
        assert again.headers.get("location") == f"{PAGE}#mine-title", again.text
    assert len(course.context.store.requests(RequestFilter())) == 2
    assert "without score:" not in shown(course.page(TEACHER).get(PAGE))
    own = shown(course.page(STUDENT1).get(PAGE))
    assert own.count("The same file was submitted again since.") == 1
    answer = course.api(TEACHER).post(f"{PS1}/leaderboard/again")
    assert (answer.status_code, answer.json()["unscored"]) == (200, 0)


def test_each_submission_has_a_verdict_and_students_see_pseudonyms(course: Site) -> None:
    opened(course)
    nothing = shown(send(course, f"{PAGE}/submit", STUDENT1), 400)
    assert "No files were selected." in nothing
    two = shown(send(course, f"{PAGE}/submit", STUDENT1, files=weights(b"1") * 2), 400)
    assert "2 files were selected. One safetensors file." in two
    large = shown(send(course, f"{PAGE}/submit", STUDENT1, files=weights(bytes(33 << 20))), 413)
    assert "The file has 34,603,008 bytes. Weights of up to 32 MiB." in large
    archive = [("weights.zip", b"PK\x03\x04" + bytes(50), _TYPE)]
    assert send(course, f"{PAGE}/submit", STUDENT1, files=archive).status_code == 303
    text = base64.b64encode(linear(1, 2, 3, 4)).decode()
    other = WeightsIn(file=FileIn(name="weights.safetensors", content=text))
    course.world.web.courses.leaderboard_submissions.submit(STUDENT2, "cs101", "ps1", other)
    for content in (linear(*PERFECT), a_pickle()):
        sent = send(course, f"{PAGE}/submit", STUDENT1, files=weights(content))
        assert sent.headers.get("location") == f"{PAGE}#mine-title", sent.text
    live = course.page(STUDENT1).get(f"{PAGE}/live").text
    assert "The file is a pickle" in live
    assert "Left today: 1 of 2." in live
    second = send(course, f"{PAGE}/submit", STUDENT1, files=weights(linear(5, 6, 7, 8)))
    assert second.headers.get("location") == f"{PAGE}#mine-title", second.text
    used = shown(send(course, f"{PAGE}/submit", STUDENT1, files=weights(linear(9, 6, 7, 8))), 409)
    assert "You have used your 2 submissions of today" in used
    # The button stays usable: a submission that is refused later makes place for another.
    (button,) = re.findall('<button[^>]* id="submit-weights"[^>]*>', used)
    assert "disabled" not in button
    log = course.api(TEACHER).get(f"{PS1}/leaderboard/log").json()
    waiting = [each["id"] for each in log["entries"] if not each["outcome"]]
    (request,) = (each.id for each in course.context.store.requests(RequestFilter()))
    # The request is the teacher's: its log and its times are not for students.
    assert course.page(STUDENT1).get(f"{PREFIX}requests/{request}").status_code == 404
    scores = [
        EntryScoreOut(entry=each, public=0.5 + place / 4, private=0.125)
        for place, each in enumerate(waiting)
    ]
    came_out(course.context, request, LeaderboardResultOut(scores=scores), name=LEADERBOARD_RESULT)
    page = shown(course.page(STUDENT1).get(PAGE))
    assert 'id="own-row"' in page
    assert "0.7500" in page
    # A page asks for what it does not show yet.
    (seen,) = set(re.findall(r'/live\?seen=(\w+)"', page))
    assert course.page(STUDENT1).get(f"{PAGE}/live?seen={seen}").status_code == 204
    assert "0.7500" in course.page(TEACHER).get(f"{PAGE}/live?seen={seen}").text
    assert "0.1250" not in page
    assert "student2" not in page
    teacher = shown(course.page(TEACHER).get(PAGE))
    for text in ("student1", "student2", "0.1250", "The file is a pickle", "refused"):
        assert text in teacher
    course.clock.now += 365 * 86400
    assert "0.1250" in course.page(STUDENT1).get(f"{PAGE}/live?seen={seen}").text
    late = shown(course.page(STUDENT1).get(PAGE))
    assert "ps1 was due: the leaderboard takes no further submissions of yours." in late
    assert 'id="submit-weights"' not in late
    assert "Left today" not in late
    refused = send(course, f"{PAGE}/submit", STUDENT1, files=weights(linear(2, 2, 2, 2)))
    assert refused.status_code == 409
    assert "what you submit now does not count any more" in shown(refused, 409)
