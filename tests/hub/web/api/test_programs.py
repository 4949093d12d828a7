"""Programs over HTTP: tokens, budgets, what they may see, approval, and revocation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from carrel.hub.controller.loop import Loop
from carrel.hub.messages.programs import APPROVAL_SECONDS
from carrel.hub.programs.enforcement import ProgramEnforcement
from carrel.hub.records.audit import AuditAction, ChangeFilter
from carrel.hub.records.identity import Identity
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.states import State
from carrel.hub.store.sql.programs import SqlPrograms

from ...doubles import ADMIN, STUDENT1, TEACHER, no_time
from ..fakes import API, PREFIX, Client
from ..page_checks import check_page, text_of
from ..site import Site, site

__all__ = ["site"]

HOUR = 3600.0


@pytest.fixture(autouse=True)
def allowed(site: Site) -> None:
    set_programs(site, allowed=True)


def set_programs(site: Site, *, allowed: bool) -> None:
    store = site.context.store
    store.put_group(replace(store.group("cs101"), programs=allowed))


def create(site: Site, who: Identity = STUDENT1, **fields: Any) -> tuple[str, Client]:
    """Return the id of a new program, and a client with its token."""
    body = {"name": "tuner", "device_seconds": 2 * HOUR, **fields}
    made = site.api(who).post(f"{API}/programs", json=body)
    assert made.status_code == 201, made.text
    return str(made.json()["program"]["id"]), site.world.program(made.json()["token"])


def job(devices: int = 1, seconds: int = 3600, **fields: Any) -> dict[str, Any]:
    wanted = {"group": "cs101", "devices": devices, "seconds": seconds, "command": ["true"]}
    return {**wanted, **fields}


def submit(client: Client, *args: int, **fields: Any) -> str:
    made = client.post(f"{API}/requests", json=job(*args, **fields))
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def cycle(site: Site) -> None:
    loop = Loop(site.context, node="local", decision_clock=no_time)
    loop.cycle()
    assert loop.wait_for_actions(60)
    loop.close()


def budget(site: Site, who: Identity = STUDENT1) -> tuple[float, float]:
    """Return what is reserved and left of the program that works, in hours."""
    newest = max(
        site.api(who).get(f"{API}/programs").json()["programs"],
        key=lambda each: (each["works"], each["created_at"]),
    )
    return newest["reserved"] / HOUR, newest["left"] / HOUR


def test_queued_jobs_reserve_the_budget_and_one_above_it_is_refused(site: Site) -> None:
    _, tuner = create(site)
    first = submit(tuner, 1, 5400)
    shown = tuner.get(f"{API}/requests/{first}").json()
    assert (shown["owner"], shown["program"]) == ("student1", "tuner")
    assert budget(site) == (1.5, 0.5)

    refused = tuner.post(f"{API}/requests", json=job())
    assert (refused.status_code, refused.json()["code"]) == (409, "over_maximum")
    assert refused.json()["detail"] == (
        "This job may use 1.0 device-hours, and the program tuner has 0.5 of its 2.0 left "
        "(0.0 used, 1.5 reserved for its queued and running jobs)."
    )
    assert tuner.delete(f"{API}/requests/{first}").status_code == 200
    assert budget(site) == (0.0, 2.0)
    submit(tuner, 1, 3600)
    # CPU jobs cost nothing.
    submit(tuner, 0, 3600)
    entries = site.context.store.changes(ChangeFilter(action=AuditAction.PROGRAM_SUBMIT))
    assert [entry.after["program"] for entry in entries] == ["tuner"] * 3
    (ended,) = site.context.store.changes(ChangeFilter(action=AuditAction.REQUEST_CANCEL))
    assert (ended.who, ended.target) == ("student1 (program tuner)", first)


def test_a_dry_run_stores_nothing_and_says_what_is_left(site: Site) -> None:
    _, tuner = create(site, approve_above=HOUR)
    dry = f"{API}/requests/dry-run"
    found = tuner.post(dry, json=job(1, 5400)).json()
    assert (found["device_seconds"], found["device_seconds_left"]) == (5400, 1800)
    assert found["needs_approval"]
    assert tuner.post(dry, json=job(2, 7200)).status_code == 409
    assert tuner.post(dry, json={}).status_code == 400
    assert tuner.get(f"{API}/requests").json()["requests"] == []
    assert tuner.post(dry, json=job(secrets=["TOKEN"])).status_code == 403
    own = site.api(STUDENT1).post(dry, json=job(1, 5400)).json()
    assert own["device_seconds_left"] is None


def test_a_job_of_another_caller_is_like_one_that_does_not_exist(site: Site) -> None:
    _, tuner = create(site)
    mine = submit(tuner)
    foreign = [
        submit(site.api(STUDENT1)),
        submit(site.api(TEACHER)),
        submit(create(site, name="other")[1]),
    ]
    assert [each["id"] for each in tuner.get(f"{API}/requests").json()["requests"]] == [mine]
    for call in (tuner.get, tuner.delete):
        answers = [call(f"{API}/requests/{name}") for name in [*foreign, "j-nothing"]]
        assert {answer.status_code for answer in answers} == {404}
        texts = {
            answer.json()["detail"].replace(name, "JOB")
            for answer, name in zip(answers, [*foreign, "j-nothing"], strict=True)
        }
        assert texts == {"There is no request JOB."}
    cursors = [tuner.get(f"{API}/requests?cursor={name}") for name in [foreign[0], "j-nothing"]]
    assert {answer.status_code for answer in cursors} == {400}
    waits = tuner.post(f"{API}/requests", json=job(after=[foreign[0]]))
    assert waits.status_code == 400
    site.api(STUDENT1).get(f"{API}/requests/{mine}").raise_for_status()

    _, reader = create(site, name="reader", reads_owner=True)
    assert reader.get(f"{API}/requests/{foreign[0]}").status_code == 200
    assert reader.get(f"{API}/requests/{foreign[1]}").status_code == 404
    assert reader.delete(f"{API}/requests/{foreign[0]}").status_code == 403


def test_a_program_may_call_nothing_else(site: Site) -> None:
    _, tuner = create(site, TEACHER)
    name = submit(tuner)
    for method, path in (
        ("GET", "me"),
        ("GET", "usage"),
        ("GET", "programs"),
        ("POST", "programs"),
        ("GET", "queue"),
        ("GET", "events"),
        ("GET", f"requests/{name}/events"),
        ("POST", f"requests/{name}/extend"),
        ("POST", f"requests/{name}/approve"),
        ("PUT", "groups/cs101"),
        ("GET", "courses"),
    ):
        body = (
            {"json": {"name": "x", "device_seconds": 1, "seconds": 60}} if method != "GET" else {}
        )
        answer = tuner.request(method, f"{API}/{path}", **body)
        assert answer.status_code == 403, (method, path, answer.text)
    for path in ("pool", "groups", "program"):
        assert tuner.get(f"{API}/{path}").status_code == 200


def test_a_larger_job_waits_for_its_owner(site: Site) -> None:
    _, tuner = create(site, approve_above=0.5 * HOUR)
    small, large = submit(tuner, 1, 1800), submit(tuner, 1, 3600)
    cycle(site)
    owner = site.api(STUDENT1)
    assert owner.get(f"{API}/requests/{small}").json()["state"] != "queued"
    waiting = tuner.get(f"{API}/requests/{large}").json()
    assert waiting["state"] == "queued"
    assert f"carrel approve {large}" in waiting["wait"]["sentence"]
    (listed,) = owner.get(f"{API}/approvals").json()["approvals"]
    assert listed["request"]["id"] == large

    assert site.api(TEACHER).post(f"{API}/requests/{large}/approve").status_code == 404
    assert tuner.post(f"{API}/requests/{large}/approve").status_code == 403
    for _ in range(2):  # repeating it changes nothing
        assert owner.post(f"{API}/requests/{large}/approve").status_code == 204
    assert owner.get(f"{API}/approvals").json() == {"approvals": []}
    cycle(site)
    assert owner.get(f"{API}/requests/{large}").json()["state"] != "queued"
    (entry,) = site.context.store.changes(ChangeFilter(action=AuditAction.PROGRAM_APPROVE))
    assert (entry.who, entry.target) == ("student1", large)


def test_a_job_that_is_not_approved_in_time_is_cancelled(site: Site) -> None:
    _, tuner = create(site, approve_above=0)
    large = submit(tuner)
    site.clock.pass_(APPROVAL_SECONDS - 1)
    cycle(site)
    assert site.context.store.request(large).ended_at is None
    site.clock.pass_(1)
    cycle(site)
    ended = tuner.get(f"{API}/requests/{large}").json()
    assert ended["state"] == "cancelled"
    assert ended["cause"]["message"] == "Its owner did not approve it within 3 days."
    assert budget(site) == (0.0, 2.0)
    assert site.api(STUDENT1).post(f"{API}/requests/{large}/approve").status_code == 409


def test_a_revoked_token_is_refused_at_once_and_its_queued_jobs_are_cancelled(site: Site) -> None:
    _, tuner = create(site, approve_above=0.5 * HOUR)
    running, queued = submit(tuner, 1, 1800), submit(tuner)
    cycle(site)
    assert site.api(TEACHER).delete(f"{API}/programs/tuner").status_code == 404
    assert site.api(STUDENT1).delete(f"{API}/programs/tuner").json()["works"] is False
    refused = tuner.get(f"{API}/requests/{running}")
    assert refused.status_code == 401
    assert "was revoked" in refused.json()["detail"]
    assert tuner.post(f"{API}/requests", json=job()).status_code == 401
    cycle(site)
    store = site.context.store
    assert store.request(running).ended_at is None
    cause = store.request(queued).cause
    assert cause is not None
    assert cause.message == "The program tuner was revoked by its owner."
    # A new program has no rights on its jobs: the name stays taken.
    again = site.api(STUDENT1).post(f"{API}/programs", json={"name": "tuner", "device_seconds": 1})
    assert again.status_code == 409
    assert again.json()["detail"] == (
        "You had a program tuner before, and its jobs belong to that name."
    )
    _, other = create(site, name="tuner-2")
    assert other.get(f"{API}/requests/{running}").status_code == 404


def test_the_jobs_of_a_program_that_has_used_more_than_its_budget_are_stopped(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, tuner = create(site)
    store = site.context.store
    with monkeypatch.context() as patched:
        asked = list[object]()
        patched.setattr(SqlPrograms, "programs_used", lambda *given: asked.append(given))
        # CPU jobs cost nothing, and queued ones nothing yet.
        store.grant([Start(request_id=submit(tuner, 0), devices=())], now=0.0, lease_seconds=30)
        queued = submit(tuner, 1, 5400)
        ProgramEnforcement(site.context).reconcile(site.clock.now)
        assert asked == []
    start = Start(request_id=submit(tuner, 1, 1800), devices=("SIM-0",))
    store.grant([start], now=site.clock.now, lease_seconds=1e6)
    ProgramEnforcement(site.context).reconcile(site.clock.now + 2 * HOUR)
    assert store.request(queued).ended_at is None
    ProgramEnforcement(site.context).reconcile(site.clock.now + 2 * HOUR + 1)
    for name in (queued, start.request_id):
        ended = store.request(name)
        assert ended.state is State.FAILED
        assert ended.cause is not None
        assert ended.cause.message == "The program tuner has used up its budget."


def test_administrators_list_and_revoke_the_programs_of_all(site: Site) -> None:
    name, _ = create(site)
    assert site.api(STUDENT1).get(f"{API}/programs?all=true").status_code == 403
    (listed,) = site.api(ADMIN).get(f"{API}/programs?all=true").json()["programs"]
    assert (listed["id"], listed["owner"]) == (name, "student1")
    revoked = site.api(ADMIN).delete(f"{API}/programs/{name}").json()
    assert revoked["revoked_by"] == "admin"


def test_a_token_ends_with_its_days(site: Site) -> None:
    _, tuner = create(site, days=2)
    site.clock.pass_(2 * 86400 - 1)
    assert tuner.get(f"{API}/program").status_code == 200
    site.clock.pass_(1)
    expired = tuner.get(f"{API}/program")
    assert (expired.status_code, expired.json()["code"]) == (401, "not_signed_in")
    assert "has expired" in expired.json()["detail"]
    assert site.world.program("carrel-program-unknown").get(f"{API}/pool").status_code == 401


def test_students_have_programs_where_their_group_says_so(site: Site) -> None:
    _, students = create(site)
    _, teachers = create(site, TEACHER)
    set_programs(site, allowed=False)
    refused = students.post(f"{API}/requests", json=job())
    assert refused.status_code == 403
    assert "carrel group set cs101 --programs" in refused.json()["accepted"]
    submit(teachers)
    body = {"name": "more", "device_seconds": 1}
    assert site.api(STUDENT1).post(f"{API}/programs", json=body).status_code == 403
    assert site.api(TEACHER).post(f"{API}/programs", json=body).status_code == 201


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "Big Name"},
        {"name": ""},
        {"device_seconds": 0},
        {"device_seconds": -1},
        {"days": 0},
        {"days": 400},
        {"approve_above": -1},
        {"unknown": 1},
    ],
)
def test_malformed_programs_are_refused(site: Site, fields: dict[str, Any]) -> None:
    body = {"name": "tuner", "device_seconds": 1, **fields}
    assert site.api(STUDENT1).post(f"{API}/programs", json=body).status_code == 400


def test_names_are_unique_and_their_number_is_limited(site: Site) -> None:
    create(site)
    again = {"name": "tuner", "device_seconds": 1}
    assert site.api(STUDENT1).post(f"{API}/programs", json=again).status_code == 409
    create(site, TEACHER)
    for number in range(9):
        create(site, name=f"p{number}")
    more = {"name": "more", "device_seconds": 1}
    refused = site.api(STUDENT1).post(f"{API}/programs", json=more)
    assert (refused.status_code, refused.json()["code"]) == (409, "over_maximum")


def test_a_key_of_a_program_returns_its_own_job_only(site: Site) -> None:
    own = submit(site.api(STUDENT1), idempotency_key="k")
    _, tuner = create(site)
    first = submit(tuner, idempotency_key="k")
    assert first != own
    assert submit(tuner, idempotency_key="k") == first
    assert budget(site) == (1.0, 1.0)


def test_a_program_that_floods_is_told_when_to_go_on(site: Site) -> None:
    _, tuner = create(site)
    budgets = site.world.app.state.web.call_budgets
    name = site.context.store.programs("student1")[0].id
    account = f"program {name}"

    def flooded() -> Any:
        while budgets.admit(account) == 0:
            pass
        return tuner.get(f"{API}/pool")

    # On a busy machine, its budget may grow before the call is looked at.
    answers = (flooded() for _ in range(10))
    refused = next(each for each in answers if each.status_code == 429)
    assert int(refused.headers["retry-after"]) >= 1
    assert "try again" in refused.json()["accepted"]
    # Its owner is not affected.
    assert site.api(STUDENT1).get(f"{API}/pool").status_code == 200


def press(site: Site, who: Identity, **fields: str) -> tuple[int, str]:
    """Press a button of the page of a user; return the status and the text of the next page."""
    answer = shown = site.page(who).post(f"{PREFIX}programs", data=fields)
    if answer.status_code == 303:
        shown = site.page(who).get(f"{PREFIX}programs")
    check_page(shown.text)
    return answer.status_code, text_of(shown.text)


def test_the_page_creates_shows_approves_and_revokes(site: Site) -> None:
    new = {"do": "create", "name": "tuner", "hours": "2", "approve_hours": "0.5", "days": "7"}
    for wrong, said in (
        ({"name": ""}, "The name is missing"),
        ({"name": "A b"}, "is not a valid name"),
        ({"hours": "many"}, "is not a number"),
        ({"hours": "0"}, "The budget is 0"),
        ({"days": "1.5"}, "is not a number of days"),
        ({"approve_hours": "-1"}, "is not a number"),
    ):
        status, text = press(site, STUDENT1, **new | wrong)
        assert (status, said in text) == (400, True), (wrong, text)
    status, text = press(site, STUDENT1, **new)
    assert status == 200
    token = next(word for word in text.split() if word.startswith("carrel-program-"))
    tuner = site.world.program(token)
    large, refused = submit(tuner), submit(tuner)
    shown = text_of(site.page(STUDENT1).get(f"{PREFIX}programs").text)
    assert token not in shown
    assert "0.0 used, 2.0 reserved, of 2.0" in shown
    assert press(site, STUDENT1, do="approve", id=large)[0] == 303
    assert press(site, STUDENT1, do="refuse", id=refused)[0] == 303
    store = site.context.store
    assert [job.waits for job in store.program_jobs()] == [False]
    assert "Program tuner" in text_of(site.page(STUDENT1).get(f"{PREFIX}requests/{large}").text)

    name = store.programs("student1")[0].id
    assert "tuner of student1" in text_of(site.page(ADMIN).get(f"{PREFIX}programs").text)
    assert press(site, TEACHER, do="revoke", id=name)[0] == 404
    assert "revoked by admin" in press(site, ADMIN, do="revoke", id=name)[1]
    set_programs(site, allowed=False)
    assert "None of your groups allows programs" in text_of(
        site.page(STUDENT1).get(f"{PREFIX}programs").text
    )
