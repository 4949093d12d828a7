"""Two users edit the same thing: a form older than the last change saves nothing and shows it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from fastapi.routing import iter_route_contexts

from carrel.courses.files.bundle import FileBundle
from carrel.courses.manual_grading.service import blind_numbers
from carrel.hub import web
from carrel.hub.records.identity import Identity
from carrel.spawners.fake import FakeBackend

from ....courses.manual_grading_samples import made_gradebook
from ...doubles import ADMIN, TEACHER
from ...images import CATALOGUE, NEW, OLD
from ..classes import fill
from ..course_samples import course
from ..fakes import API, PREFIX
from ..page_checks import text_of
from ..site import GROUP, Site, site
from .courses.teacher_page import send, shown

__all__ = ["course", "site"]

TEMPLATES = Path(web.__file__).parent / "templates"
NEW_ACCOUNTS = {
    f"{PREFIX}course/{{course}}/people/accounts",
    f"{PREFIX}admin/people/import",
    f"{PREFIX}admin/doctor",
    f"{PREFIX}admin/backup",
}
"""They change nothing that exists."""
OF_STUDENTS = {
    f"{PREFIX}course/{{course}}/assignment/{{assignment}}/{action}"
    for action in ("submit", "check", "official-check", "leaderboard/submit")
}
TEACH, PEOPLE = f"{PREFIX}course/cs101/teach", f"{PREFIX}course/cs101/people"
RELEASE, GRADING = f"{PREFIX}course/cs101/release", f"{PREFIX}course/cs101/grading/ps1"
LEADERBOARD = f"{PREFIX}course/cs101/assignment/ps1/leaderboard"
NUMBER = blind_numbers("cs101", "ps1", ["person005"])["person005"]
"""Of person005 on the page of grading by hand."""
CALENDAR = f"{PREFIX}admin/calendar"
ROSTER = "student,section\nstudent1,blue\nstudent2,\nben,\n"
DUE = "2027-03-01 18:00 Europe/Berlin"
EXTENSION = {"person": "student1", "seconds": 3600}
RESERVATION = {"group": "cs101", "devices": 1, "when": "2027-01-20 10:00-12:00 UTC"}
TYPED_RESERVATION = {
    "group": "cs101",
    "devices": "1",
    "first": "2027-01-20",
    "begins": "10:00",
    "ends": "12:00",
    "zone": "UTC",
}
OUTAGE = {"starts_at": 1_800_000_000.0, "ends_at": 1_800_003_600.0, "course": "cs101"}

Change = Callable[[Site], object]


def put(path: str, who: Identity = ADMIN, **body: object) -> Change:
    return lambda site: changed(site.api(who).put(f"{API}/{path}", json=body or None))


def post(path: str, who: Identity = ADMIN, **body: object) -> Change:
    return lambda site: changed(site.api(who).post(f"{API}/{path}", json=body or None))


def delete(path: str, who: Identity = ADMIN) -> Change:
    return lambda site: changed(site.api(who).delete(f"{API}/{path}"))


def changed(answer: httpx.Response) -> httpx.Response:
    assert answer.is_success, answer.text
    return answer


def change_reservation(site: Site) -> None:
    (found,) = site.context.store.reservations()
    body = {**RESERVATION, "devices": 2}
    changed(site.api().put(f"{API}/reservations/{found.id}", json=body))


def unreserve(site: Site) -> None:
    (found,) = site.context.store.reservations()
    changed(site.api().delete(f"{API}/reservations/{found.id}"))


def counts(site: Site) -> None:
    number = submission(site)
    changed(site.api(TEACHER).put(f"{API}/submissions/{number}/counts"))


def unannounce(site: Site) -> None:
    changed(site.api().delete(f"{API}/announcements/{announcement(site)}"))


def announcement(site: Site) -> str:
    (found,) = site.context.store.announcements(ended_after=0.0)
    return found.id


def submission(site: Site) -> int:
    (late,) = site.world.web.courses.access.store.submissions("cs101", "ps1", "person001")
    return late.id


def feedback(site: Site) -> None:
    """Record a release of feedback, without nbgrader."""
    who, courses = TEACHER, site.world.web.courses
    (sent,) = courses.access.store.submissions("cs101", "ps1", "person005")
    courses.delivery.deliver(who, sent, FileBundle.of([("ps1.html", b"good")]))


def gradebook(site: Site) -> None:
    """Make nbgrader's gradebook with the graded work of person005."""
    root = site.world.web.courses.manual_grading.root
    assert root is not None
    made_gradebook(root / "cs101", ["person005"])


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One form, and a change that another user makes while it is open.

    Attributes:
        page: where the form is.
        route: its declared address, below the prefix.
        before: what has to exist.
        theirs: the change of the other user.
        says: part of what the page then shows about that change.
    """

    route: str
    page: str
    fields: dict[str, str]
    theirs: Change
    says: str
    before: Change = field(default=lambda _: None)
    to: str = ""
    who: Identity = ADMIN

    @property
    def id(self) -> str:
        return f"{self.route} {self.fields.get('do', '')} {self.fields.get('name', '')}".strip()


def teach(do: str, theirs: Change, says: str, before: Change = lambda _: None, **more: str) -> Edit:
    return Edit(
        route="course/{course}/teach",
        page=TEACH,
        fields={"do": do, **more},
        theirs=theirs,
        says=says,
        before=before,
    )


def pool(do: str, theirs: Change, says: str, before: Change = lambda _: None) -> Edit:
    return Edit(
        route="admin/pool",
        page=f"{PREFIX}admin/pool?target=SIM-0",
        to=f"{PREFIX}admin/pool",
        fields={"do": do, "target": "SIM-0", "why": "mine"},
        theirs=theirs,
        says=says,
        before=before,
    )


def calendar(
    do: str, theirs: Change, says: str, before: Change = lambda _: None, **more: str
) -> Edit:
    return Edit(
        route="admin/calendar",
        page=CALENDAR,
        fields={"do": do, **more},
        theirs=theirs,
        says=says,
        before=before,
    )


def group(do: str) -> Edit:
    return Edit(
        route="admin/groups",
        page=f"{PREFIX}admin?edit=cs101",
        to=f"{PREFIX}admin/groups",
        fields={
            "do": do,
            "name": "cs101",
            "max_devices": "2",
            "max_devices_per_user": "1",
            "max_time": "3h",
            "idle": "30m",
        },
        theirs=put("groups/cs101", **{**GROUP, "max_devices": 2, "guaranteed": 2}),
        says="guaranteed: 0 → 2",
    )


def person(do: str, theirs: Change, says: str) -> Edit:
    return Edit(
        route="admin/person/{name}",
        page=f"{PREFIX}admin/person/zoe",
        fields={"do": do, "member": "cs101", "account": "yes"},
        theirs=theirs,
        says=says,
        before=post("people", name="zoe"),
    )


def grading(do: str, theirs: Change, says: str, before: Change = lambda _: None) -> Edit:
    return Edit(
        route="course/{course}/grading/{assignment}",
        page=f"{GRADING}/student/person001" if do.endswith("count") else GRADING,
        to=GRADING,
        fields={"do": do},
        theirs=theirs,
        says=says,
        before=before,
        who=TEACHER,
    )


EDITS = [
    group("preview"),
    group("save"),
    Edit(
        route="admin/groups/remove",
        page=f"{PREFIX}admin?edit=cs101",
        to=f"{PREFIX}admin/groups/remove",
        fields={"name": "cs101"},
        theirs=put("groups/cs101", **{**GROUP, "teachers": ["grace"]}),
        says="teachers: teacher → grace",
    ),
    Edit(
        route="admin/people",
        page=f"{PREFIX}admin/people",
        fields={"name": "zoe"},
        theirs=post("people", name="zoe"),
        says="account add of zoe by admin",
    ),
    person("preview", put("people/zoe", groups=["cs101"]), "member add of zoe by admin"),
    person("save", put("people/zoe", admin=True), "administrator: no → yes"),
    person("save", put("people/zoe", teaches=["cs101"]), "teachers: teacher → teacher, zoe"),
    person("password", post("people/zoe/password"), "new password of zoe by admin"),
    person("link", post("people/zoe/link"), "password link of zoe by admin"),
    person("remove", post("people/zoe/password"), "new password of zoe by admin"),
    Edit(
        route="admin/announcements",
        page=f"{PREFIX}admin/announcements",
        fields={"do": "remove", "name": "ANNOUNCEMENT"},
        theirs=unannounce,
        says="unannounce of a-",
        before=post("announcements", text="Hello.", ends_at=1_900_000_000.0),
    ),
    pool("preview", put("pool/SIM-0/quarantine", why="theirs"), "(theirs)"),
    pool("drain", put("pool/SIM-0/drain", why="theirs"), "(theirs)"),
    pool(
        "undrain",
        delete("pool/SIM-0/drain"),
        "undrain of SIM-0 by admin",
        put("pool/SIM-0/drain", why="x"),
    ),
    pool("quarantine", put("pool/SIM-0/drain", why="theirs"), "(theirs)"),
    pool(
        "release",
        delete("pool/SIM-0/quarantine"),
        "release of SIM-0 by admin",
        put("pool/SIM-0/quarantine", why="x"),
    ),
    calendar(
        "term",
        put("terms/winter", first="2026-10-12", last="2027-02-15"),
        "term set of winter by admin",
        name="winter",
        first="2026-10-19",
        last="2027-02-22",
    ),
    calendar(
        "remove-term",
        put("terms/winter", first="2026-10-12", last="2027-02-22"),
        "last: 2027-02-15 → 2027-02-22",
        put("terms/winter", first="2026-10-12", last="2027-02-15"),
        name="winter",
    ),
    *(
        calendar(
            do,
            post("reservations", **RESERVATION),
            "reserve of cs101 by admin",
            **TYPED_RESERVATION,
        )
        for do in ("preview", "reserve")
    ),
    calendar(
        "reserve",
        change_reservation,
        "devices: 1 → 2",
        post("reservations", **RESERVATION),
        name="RESERVATION",
        **TYPED_RESERVATION,
    ),
    calendar(
        *("unreserve", unreserve, "unreserve of cs101 by admin"),
        post("reservations", **RESERVATION),
        name="RESERVATION",
    ),
    *(
        Edit(
            route="images",
            page=f"{PREFIX}images",
            fields={"do": do, "group": "cs101", "image": image},
            theirs=put("groups/cs101/pins/torch", digest=OLD),
            says="pin of cs101 by admin",
            before=put("groups/cs101/pins/torch", digest=NEW),
            who=TEACHER,
        )
        for do, image in (("pin", f"torch@{NEW}"), ("unpin", "torch"))
    ),
    *(
        Edit(
            route="courses",
            page=f"{PREFIX}courses",
            fields={"do": do, "name": "cs102", "max_devices": "1"},
            theirs=put("groups/cs102", **{**GROUP, "guaranteed": 1}),
            says="group set of cs102 by admin",
        )
        for do in ("preview", "create")
    ),
    teach(
        "extend",
        post("courses/cs101/assignments/ps1/extensions", TEACHER, **EXTENSION),
        "for: student1 extension: 1 h",
        assignment="ps1",
        whom="student1",
        span="48h",
    ),
    teach(
        "take-back",
        delete("courses/cs101/assignments/ps1/extensions?person=student1", TEACHER),
        "extend of cs101/ps1 by teacher",
        post("courses/cs101/assignments/ps1/extensions", TEACHER, **EXTENSION),
        assignment="ps1",
        whom="student1",
    ),
    teach(
        "outage",
        post("outages", **OUTAGE),
        "outage of cs101 by admin",
        starts_at="2027-01-15T08:00",
        ends_at="2027-01-15T09:00",
        zone="UTC",
    ),
    teach("archive", put("courses/cs101/archive", TEACHER), "course set of cs101 by teacher"),
    teach(
        "bring-back",
        delete("courses/cs101/archive", TEACHER),
        "course set of cs101 by teacher",
        put("courses/cs101/archive", TEACHER),
    ),
    teach("clone", put("courses/cs101/archive", TEACHER), "by teacher", name="cs103"),
    Edit(
        route="course/{course}/release/withdraw",
        page=f"{RELEASE}?assignment=ps1",
        to=f"{RELEASE}/withdraw",
        fields={"assignment": "ps1"},
        theirs=post("courses/cs101/assignments/ps1/release", TEACHER, due=DUE, files=[]),
        says="assignment release of cs101/ps1 by teacher",
        who=TEACHER,
    ),
    *(
        Edit(
            route="course/{course}/release/prefix",
            page=f"{RELEASE}?assignment=ps1",
            to=f"{RELEASE}/prefix",
            fields={"assignment": "ps1", **fields},
            theirs=post("courses/cs101/assignments/ps1/release", TEACHER, due=DUE, files=[]),
            says="assignment release of cs101/ps1 by teacher",
            who=TEACHER,
        )
        for fields in ({"on": "yes", "devices": "0"}, {"do": "clear-cache"})
    ),
    Edit(
        route="course/{course}/release/official-checks",
        page=f"{RELEASE}?assignment=ps1",
        to=f"{RELEASE}/official-checks",
        fields={"assignment": "ps1", "per_day": "3"},
        theirs=post("courses/cs101/assignments/ps1/release", TEACHER, due=DUE, files=[]),
        says="assignment release of cs101/ps1 by teacher",
        who=TEACHER,
    ),
    Edit(
        route="course/{course}/assignment/{assignment}/leaderboard/rule",
        page=LEADERBOARD,
        to=f"{LEADERBOARD}/rule",
        fields={
            "metric": "accuracy",
            "per_day": "3",
            "public_percent": "50",
            "counts": "best",
        },
        theirs=post("courses/cs101/assignments/ps1/release", TEACHER, due=DUE, files=[]),
        says="assignment release of cs101/ps1 by teacher",
        who=TEACHER,
    ),
    Edit(
        route="course/{course}/grading/{assignment}/manual/{number}",
        page=f"{GRADING}/manual/{NUMBER}",
        fields={"notebook": "ps1", "cell": "test-answer", "points": "0"},
        theirs=put(
            "courses/cs101/assignments/ps1/points",
            TEACHER,
            person="person005",
            notebook="ps1",
            cell="test-answer",
            points=1,
        ),
        says="points set of cs101/ps1 by teacher",
        before=gradebook,
        who=TEACHER,
    ),
    *(
        Edit(
            route="course/{course}/people",
            page=PEOPLE,
            fields={"do": do, "students": ROSTER},
            theirs=put("courses/cs101/roster", TEACHER, students=f"{ROSTER}zoe,\n"),
            says="roster set of cs101 by teacher",
            who=TEACHER,
        )
        for do in ("preview", "apply")
    ),
    Edit(
        route="course/{course}/release",
        page=f"{RELEASE}?assignment=ps1",
        to=RELEASE,
        fields={
            "assignment": "ps1",
            "due": "2027-02-01T18:00",
            "zone": "Europe/Berlin",
            "devices": "0",
            "time": "20",
            "time_unit": "m",
        },
        theirs=post("courses/cs101/assignments/ps1/release", TEACHER, due=DUE, files=[]),
        says="assignment release of cs101/ps1 by teacher",
        who=TEACHER,
    ),
    grading(
        "grade",
        post("courses/cs101/assignments/ps1/grading", TEACHER, question="test-answer"),
        "grade of cs101/ps1 by teacher",
    ),
    grading("count", counts, "submission choose of cs101/ps1 by teacher"),
    grading("uncount", counts, "submission choose of cs101/ps1 by teacher", counts),
    Edit(
        route="course/{course}/grading/{assignment}/feedback",
        page=f"{GRADING}/student/person005",
        to=f"{GRADING}/feedback",
        fields={"person": "person005"},
        theirs=feedback,
        says="feedback release of cs101/ps1 by teacher",
        who=TEACHER,
    ),
]


NOTHING_TO_EDIT = frozenset(
    {
        "assignment.html",
        "leaderboard_again.html",
        "leaderboard_submit.html",
        "own_regrades.html",
        "regrade_thread.html",
        "rehearsal.html",
    }
)
MESSAGES = frozenset(
    {
        f"{PREFIX}course/{{course}}/regrades/{{regrade}}",
        f"{PREFIX}course/{{course}}/assignment/{{assignment}}/regrades",
        f"{PREFIX}course/{{course}}/assignment/{{assignment}}/regrades/{{regrade}}",
        f"{PREFIX}course/{{course}}/assignment/{{assignment}}/leaderboard/again",
        f"{PREFIX}course/{{course}}/rehearsal",
        f"{PREFIX}course/{{course}}/rehearsal/schedules",
    }
)
"""Forms that add a message to a thread, or start, pause or end rehearsals or evaluations: they
write over nothing that the page has in a field."""


def form_routes(site: Site) -> set[str]:
    """Return the forms with which administrators and teachers edit."""
    found = {
        str(route.path)
        for route in iter_route_contexts(site.world.app.routes)
        if "POST" in (route.methods or ())
    }
    edited = ("admin", "images", "course")
    ours = tuple(f"{PREFIX}{name}" for name in edited)
    left = found - NEW_ACCOUNTS - OF_STUDENTS - MESSAGES
    return {path for path in left if path.startswith(ours)}


def test_every_form_has_a_case_here(site: Site) -> None:
    """A new form of administration or teaching has a version and a case in ``EDITS``."""
    assert form_routes(site) == {f"{PREFIX}{edit.route}" for edit in EDITS}


def test_every_form_of_a_page_has_a_version() -> None:
    pages = [*TEMPLATES.glob("admin/*.html"), *TEMPLATES.glob("courses/*.html")]
    forms = [
        (path.name, form)
        for path in pages
        # Forms of students, messages to a thread, and a form that starts something.
        if path.name not in NOTHING_TO_EDIT
        for form in re.findall(r'<form method="post".*?</form>', path.read_text(), re.DOTALL)
    ]
    assert len(forms) > len({edit.route for edit in EDITS})
    assert [name for name, form in forms if 'name="version"' not in form] == []


@pytest.fixture
def pooled(site: Site) -> Site:
    """A group with images and a pool."""
    backend = site.context.backend
    assert isinstance(backend, FakeBackend)
    backend.built = CATALOGUE
    site.clock.now = 1_800_000_000.0
    changed(site.api().put(f"{API}/groups/cs101", json={**GROUP, "max_devices": 2}))
    return site


@pytest.fixture
def filled(course: Site) -> Site:
    """A course with a class whose grading has ended."""
    changed(course.api().put(f"{API}/groups/cs101", json={**GROUP, "max_devices": 2}))
    run = fill(course.world.web.courses, TEACHER, 8)
    changed(course.api().delete(f"{API}/requests/{run}"))
    return course


def version_of(page: str) -> str:
    (version,) = set(re.findall(r'name="version" value="(\d+)"', page))
    return version


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.id)
def test_an_old_form_shows_what_changed_and_saves_nothing(
    request: pytest.FixtureRequest, edit: Edit
) -> None:
    site: Site = request.getfixturevalue("filled" if "{course}" in edit.route else "pooled")
    edit.before(site)
    version = version_of(shown(site.page(edit.who).get(edit.page)))
    fields = dict(edit.fields)
    if fields.get("name") == "RESERVATION":
        fields["name"] = site.context.store.reservations()[0].id
    if fields.get("name") == "ANNOUNCEMENT":
        fields["name"] = announcement(site)
    if "count" in fields.get("do", ""):
        fields["submission"] = str(submission(site))
    edit.theirs(site)
    before = audit(site)
    answer = send(site, edit.to or edit.page, edit.who, version=version, **fields)
    text = shown(answer, 412)
    assert "It has changed since you read it: " in text
    assert edit.says in text_of(text)
    assert audit(site) == before
    # The form is now based on the change that it shows, so that it can be saved deliberately.
    if 'name="version"' in text:
        assert int(version_of(text)) > int(version)


def audit(site: Site) -> object:
    return site.api().get(f"{API}/audit").json()


def test_the_other_fields_of_a_form_get_the_current_values(pooled: Site) -> None:
    address = f"{PREFIX}admin/groups"
    version = version_of(pooled.page().get(f"{PREFIX}admin?edit=cs101").text)
    fields = {**group("save").fields, "teachers": "teacher"}
    put("groups/cs101", **{**GROUP, "max_devices": 2, "guaranteed": 2})(pooled)
    text = shown(send(pooled, address, ADMIN, version=version, **fields), 412)
    values = dict(re.findall(r'id="(\w+)" name="\w+" value="([^"]*)"', text))
    assert (values["guaranteed"], values["max_time"]) == ("2", "3")
    mine = fields | {"guaranteed": values["guaranteed"]}
    saved = send(pooled, address, ADMIN, version=version_of(text), **mine)
    assert saved.status_code == 303, saved.text
    after = pooled.context.store.group("cs101")
    assert (after.guaranteed, after.max_seconds) == (2, 3 * 3600)


def test_the_settings_of_an_assignment_are_merged(filled: Site) -> None:
    (edit,) = [edit for edit in EDITS if edit.route == "course/{course}/release"]
    version = version_of(filled.page(TEACHER).get(edit.page).text)
    edit.theirs(filled)
    text = shown(send(filled, RELEASE, version=version, **edit.fields), 412)
    values = dict(re.findall(r'id="release-(\w+)" name="\w+" value="([^"]*)"', text))
    assert (values["due"], values["time"]) == ("2027-03-01T18:00", "20")


def test_a_preview_stays_as_old_as_its_form(pooled: Site) -> None:
    """A change during the preview is shown when the form is saved."""
    address = f"{PREFIX}admin/groups"
    version = version_of(pooled.page().get(f"{PREFIX}admin?edit=cs101").text)
    fields = group("preview").fields
    preview = shown(send(pooled, address, ADMIN, version=version, **fields))
    assert version_of(preview) == version
    group("save").theirs(pooled)
    saved = send(pooled, address, ADMIN, version=version, **fields | {"do": "save"})
    assert saved.status_code == 412
    assert pooled.context.store.group("cs101").guaranteed == 2


def test_changes_of_other_things_do_not_matter(filled: Site) -> None:
    version = version_of(filled.page(TEACHER).get(TEACH).text)
    post("courses/cs101/assignments/ps1/extensions", TEACHER, **EXTENSION)(filled)
    put("groups/cs101", **GROUP)(filled)
    fields = {"do": "extend", "assignment": "ps1", "whom": "student2", "span": "48h"}
    assert "student2 has" in shown(send(filled, TEACH, version=version, **fields))


def test_a_form_may_change_several_things(pooled: Site) -> None:
    """Its own entries in the audit log are not changes of other users."""
    version = version_of(pooled.page().get(f"{PREFIX}courses").text)
    fields = {"name": "cs102", "max_devices": "1", "teachers": "teacher", "students": ROSTER}
    made = send(pooled, f"{PREFIX}courses", ADMIN, do="create", version=version, **fields)
    assert made.status_code in (200, 303), made.text
    assert pooled.context.store.teachers("cs102") == ("teacher",)


def test_an_invalid_version_is_refused(pooled: Site) -> None:
    answer = send(pooled, f"{PREFIX}admin/groups", ADMIN, version="new", **group("save").fields)
    assert "The form contains no valid version." in shown(answer, 400)


# -- the API ----------------------------------------------------------------------------------

READ = [
    *("groups/tree", "people", "pool", "terms", "reservations", "images", "courses"),
    *("courses/cs101", "courses/cs101/members", "courses/cs101/assignments", "outages"),
]


def test_answers_have_a_version(course: Site) -> None:
    for path in READ:
        assert re.fullmatch(r'"\d+"', course.api().get(f"{API}/{path}").headers["etag"]), path


@pytest.mark.parametrize(
    ("verb", "path", "body", "theirs"),
    [
        ("PUT", "groups/cs101", {**GROUP, "max_devices": 3}, group("save").theirs),
        ("DELETE", "groups/cs101", None, group("save").theirs),
        ("PUT", "pool/SIM-0/drain", {}, put("pool/SIM-0/quarantine", why="x")),
        ("PUT", "courses/cs101/roster", {"students": ROSTER}, EDITS[-6].theirs),
        (
            *("POST", "courses/cs101/assignments/ps1/release", {"files": [], "late": "none"}),
            post("courses/cs101/assignments/ps1/release", TEACHER, due=DUE, files=[]),
        ),
    ],
)
def test_the_api_refuses_a_change_of_an_old_version(
    filled: Site, verb: str, path: str, body: object, theirs: Change
) -> None:
    old = filled.api().get(f"{API}/groups/tree").headers["etag"]
    theirs(filled)
    sent = {"json": body} if body is not None else {}
    refused = filled.api().request(verb, f"{API}/{path}", headers={"If-Match": old}, **sent)
    assert refused.status_code == 412, refused.text
    assert refused.json()["code"] == "changed_meanwhile"
    assert refused.json()["detail"].startswith("It has changed since you read it: ")
    assert " UTC" in refused.json()["detail"]
    new = filled.api().get(f"{API}/groups/tree").headers["etag"]
    for headers in ({"If-Match": f"W/{new}, {old}"}, {}):
        answer = filled.api().request(verb, f"{API}/{path}", headers=headers, **sent)
        assert answer.status_code != 412, answer.text


def test_any_version_and_a_malformed_one(pooled: Site) -> None:
    body = {**GROUP, "max_devices": 2}
    for given, status in (("*", 200), ("17", 400), ('"a"', 400), ('"1", b', 400)):
        headers = {"If-Match": given}
        answer = pooled.api().put(f"{API}/groups/cs101", json=body, headers=headers)
        assert answer.status_code == status, answer.text
