"""The desk and the pages of requests in every state; no page contains markup of users."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest

from carrel.hub.errors import Conflict, NotAMember, OverMaximum, Refused, Unavailable
from carrel.hub.groups.membership import GroupChoice
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.schemas import SessionIn
from carrel.hub.schemas.explanation import SuggestionOut, WhyOut
from carrel.hub.web.pages.desk_view import gather

from ..fakes import (
    ADA,
    API,
    NOW,
    PREFIX,
    World,
    cause,
    device,
    full,
    job,
    lease,
    line,
    session,
    waiting,
)
from ..page_checks import Page, check_page, text_of

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


@pytest.fixture
def world() -> World:
    return World()


def test_an_empty_desk_says_what_to_do_next(world: World) -> None:
    html = world.browser().get(PREFIX).text
    check_page(html)
    for words in ("You have no session.", "You have no job yet.", "No device was found"):
        assert words in html
    assert "This is a demo" not in html


def test_a_user_without_a_group_is_told_whom_to_ask(world: World) -> None:
    world.service.offered = []
    html = world.browser().get(PREFIX).text
    check_page(html)
    assert "You are not in a group" in html
    assert "Ask your teacher or administrator" in html
    assert "start-form" not in html


def test_the_demo_says_that_sessions_are_not_isolated() -> None:
    world = World(demo=True)
    world.service.devices = [device(0), device(1)]
    html = world.browser().get(PREFIX).text
    assert "Sessions share one system account and are not isolated from each other" in html
    assert html.count('<span class="tile-mark">simulated</span>') == 2
    assert "<strong>2</strong> of 2 devices free now (simulated)" in html


def test_a_full_desk_shows_everything(world: World) -> None:
    full(world)
    html = world.browser().get(PREFIX).text
    check_page(html)
    words = text_of(html)
    for expected in (
        "Queued at position 2. All fitting devices are in use.",
        "3 of 9 cells, running cell 4",
        "Error in cell 4: ZeroDivisionError: division by zero",
        "The session&#39;s server died.",
        "1 of 6 devices free, 2 out of service, 3 requests in the queue.",
        "3.4 device-hours",
        "carrel submit train.ipynb",
        "carrel login http://127.0.0.1:8000/",
    ):
        assert expected in words, expected
    for state in ("free", "yours", "taken", "busy", "sick", "gone"):
        assert f'<strong class="tile-state">{state}</strong>' in html
    assert "bens.ipynb" not in html


def test_teachers_and_administrators_see_what_they_may(world: World) -> None:
    full(world)
    assert "bens.ipynb" in world.browser("root-oauth").get(PREFIX).text
    world.service.teachers = {"ada": frozenset({"cs101"})}
    world.service.store.put_group(Group(name="cs101", max_devices=1, max_devices_per_user=1))
    world.service.store.set_teachers("cs101", ["ada"])
    html = world.browser().get(PREFIX).text
    assert "Requests in groups that I teach" in html
    assert "bens.ipynb" in html


@pytest.mark.parametrize("newer", ["queued", "succeeded"])
def test_an_open_session_stays_on_the_desk_behind_any_number_of_newer_jobs(
    world: World, newer: str
) -> None:
    full(world)
    waits = waiting(place=3).model_dump() if newer == "queued" else None
    world.service.put(
        session(id="s-old", state="running", server_name="old", submitted_at=NOW - 9000),
        *(
            job(id=f"j-new{n}", state=newer, ended=newer != "queued", wait=waits, submitted_at=NOW)
            for n in range(250)
        ),
    )
    for page in (PREFIX, f"{PREFIX}desk/live"):
        words = text_of(world.browser().get(page).text)
        assert "old" in words.split()
        assert "Queued at position 2. All fitting devices are in use." in words, (
            "the first of what I wait for"
        )
    desk = gather(world.web, ADA, now=NOW)
    assert "s-old" in [request.id for request in desk.sessions]
    assert desk.first_in_line is not None
    assert desk.first_in_line.wait is not None
    assert desk.first_in_line.wait.place == 2


def test_a_live_session_is_waited_for_behind_any_number_of_ended_ones(world: World) -> None:
    world.service.put(
        session(
            id="s-old", server_name="old", wait=waiting().model_dump(), submitted_at=NOW - 9000
        ),
        *(
            session(id=f"s-{n}", server_name="x", state="succeeded", ended=True, submitted_at=NOW)
            for n in range(250)
        ),
    )
    assert "All fitting devices are in use." in world.browser().get(f"{PREFIX}wait/old").text


def test_others_that_are_alive_are_seen_behind_any_number_of_ones_own(world: World) -> None:
    full(world)
    world.service.put(
        *(job(id=f"j-{n}", owner="root", state="succeeded", ended=True) for n in range(250))
    )
    assert "bens.ipynb" in world.browser("root-oauth").get(PREFIX).text


def test_the_live_part_leaves_the_form_alone(world: World) -> None:
    full(world)
    html = world.browser().get(f"{PREFIX}desk/live").text
    page = Page(html)
    swapped = {attrs["id"] for _, attrs in page.tags if "hx-swap-oob" in attrs}
    assert swapped == {"desk-rest", "desk-use", "desk-others", "free-now", "free-by-model"}
    assert "start-form" not in html
    assert not page.all("select")


def test_the_form_starts_a_session_and_leads_to_its_waiting_page(world: World) -> None:
    answer = world.own_page().post(
        f"{PREFIX}sessions",
        data={"group": "cs101", "devices": "1", "hours": "1,5", "server_name": "lab-2"},
    )
    assert (answer.status_code, answer.headers["location"]) == (303, f"{PREFIX}wait/lab-2")
    (call,) = world.service.calls
    assert call == ("start_session", "ada", "lab-2", SessionIn(devices=1, hours=1.5, group="cs101"))


def test_the_form_token_may_come_as_a_field(world: World) -> None:
    answer = world.browser(Origin="http://127.0.0.1:8000").post(
        f"{PREFIX}sessions",
        data={"csrf": world.form_token(), "devices": "0", "hours": "1", "group": "cs101"},
    )
    assert (answer.status_code, answer.headers["location"]) == (303, f"{PREFIX}wait/-")


ASSIGNMENT = {"course": "cs101", "assignment": "ps1"}


def test_an_assignment_opens_in_the_running_session(world: World) -> None:
    world.service.put(session(state="running", server_name="gpu"))
    answer = world.own_page().post(f"{PREFIX}sessions/lab", data=ASSIGNMENT)
    wanted = "/user/ada/gpu/lab?carrel-course=cs101&carrel-assignment=ps1"
    assert answer.status_code == 303
    assert answer.headers["location"] == f"{PREFIX}wait/gpu?{urlencode({'next': wanted})}"
    assert world.service.calls == []


def test_without_a_session_one_on_cpu_starts_in_the_group_of_the_work(world: World) -> None:
    world.service.put(job(group="cs101"))
    for fields in (ASSIGNMENT, {"job": "j-aaaaaaaa", "cell": "3"}):
        world.service.calls.clear()
        for made in [each for each in world.service.found.values() if each.kind == "session"]:
            del world.service.found[made.id]
        answer = world.own_page().post(f"{PREFIX}sessions/lab", data=fields)
        assert answer.headers["location"].startswith(f"{PREFIX}wait/-?next=%2Fuser%2Fada%2Flab")
        (call,) = world.service.calls
        assert call == ("start_session", "ada", "", SessionIn(devices=0, hours=1.0, group="cs101"))


def test_a_refused_start_keeps_what_to_open(world: World) -> None:
    world.service.refusal = Refused("No.", accepted="Yes.", field="devices")
    answer = world.own_page().post(f"{PREFIX}sessions/lab", data=ASSIGNMENT)
    assert answer.status_code == 409
    page = check_page(answer.text)
    (kept,) = [each for each in page.all("input") if each.get("name") == "next"]
    assert kept["value"] == "/user/ada/lab?carrel-course=cs101&carrel-assignment=ps1"
    assert "No. Yes." in answer.text


@pytest.mark.parametrize(("fields", "status"), [({}, 400), ({"job": "j-bbbbbbbb"}, 404)])
def test_what_cannot_be_opened_starts_nothing(
    world: World, fields: dict[str, str], status: int
) -> None:
    answer = world.own_page().post(f"{PREFIX}sessions/lab", data=fields)
    assert answer.status_code == status
    assert world.service.calls == []


@pytest.mark.parametrize(
    ("entries", "refusal", "status", "field"),
    [
        ({"hours": "soon"}, None, 400, "hours"),
        ({"devices": "many"}, None, 400, "devices"),
        ({"devices": "9"}, OverMaximum("Too many.", accepted="At most 1."), 409, "devices"),
        ({"hours": "99"}, OverMaximum("Too long.", accepted="At most 4."), 409, "hours"),
        ({"group": "x"}, NotAMember("Not yours.", accepted="Yours: cs101."), 403, "group"),
        ({}, Conflict("It runs.", accepted="Stop it."), 409, "server_name"),
        ({}, Refused("No.", accepted="Yes.", field="devices"), 409, "devices"),
    ],
)
def test_a_refused_form_comes_back_with_the_sentence_beside_the_field(
    world: World, entries: dict[str, str], refusal: Refused | None, status: int, field: str
) -> None:
    world.service.refusal = refusal
    filled = {"group": "cs101", "devices": "1", "hours": "2", "server_name": "typed"} | entries
    answer = world.own_page().post(f"{PREFIX}sessions", data=filled)
    assert answer.status_code == status
    page = check_page(answer.text)
    assert f"{field}-problem" in page.ids
    wrong = [a for a in page.all("input") + page.all("select") if a.get("aria-invalid")]
    assert [a["id"] for a in wrong] == [field]
    assert 'value="typed"' in answer.text
    assert f'value="{filled["hours"]}"' in answer.text
    if refusal:
        assert f"{refusal.message} {refusal.accepted}" in answer.text


def test_a_refusal_of_no_field_stands_above_the_form(world: World) -> None:
    world.service.refusal = Refused("The hub refused.", accepted="Try again.")
    answer = world.own_page().post(f"{PREFIX}sessions", data={"devices": "1", "hours": "1"})
    assert 'role="alert"' in answer.text
    assert "The hub refused. Try again." in answer.text


def test_the_form_offers_what_the_groups_allow(world: World) -> None:
    world.service.offered = [
        GroupChoice(name="big", max_devices=8, max_devices_per_user=3, max_seconds=5400),
        GroupChoice(name="cpu", max_devices=0, max_devices_per_user=4, max_seconds=7200),
    ]
    html = world.browser().get(PREFIX).text
    assert [o["value"] for o in Page(html).all("option")] == ["big", "cpu", "0", "1", "2", "3"]
    assert 'data-devices="3" data-hours="1.5"' in html
    assert 'data-devices="0" data-hours="2"' in html


# -- the waiting page --------------------------------------------------------------------------


def test_the_waiting_page_shows_position_reason_estimate_and_time_limit(world: World) -> None:
    world.service.put(session(wait=waiting(3).model_dump()))
    html = world.browser().get(f"{PREFIX}wait/-").text
    check_page(html)
    words = text_of(html)
    assert "Queued at position 3" in words
    assert "All fitting devices are in use." in words
    assert "for 1 h at most" in words
    assert "Expected start:" in words
    assert 'data-show="coming"' in html
    assert f'action="{PREFIX}requests/s-aaaaaaaa/cancel"' in html


def test_pages_of_queued_requests_show_why_and_what_would_help(world: World) -> None:
    wait = waiting(3)
    world.service.put(session(wait=wait.model_dump()))
    world.service.reasons["s-aaaaaaaa"] = WhyOut(
        request_id="s-aaaaaaaa",
        wait=wait,
        sentences=[wait.sentence, EVIL],
        reserved_from=NOW,
        reserved_until=NOW + 3600,
        ahead_sentences=["1 request goes first."],
        suggestions=[
            SuggestionOut(change="fewer_devices", sentence="With 1 it starts now.", devices=1)
        ],
    )
    browser, path = world.browser(), f"{PREFIX}requests/s-aaaaaaaa/why"
    for page in ("wait/-", "requests/s-aaaaaaaa"):
        assert path in [
            tag.get("hx-get") for tag in Page(browser.get(PREFIX + page).text).all("div")
        ]

    html = browser.get(path).text
    words = text_of(html)
    assert words.index("With 1 it starts now.") < words.index("1 request goes first.")
    assert wait.sentence not in words, "the page says it already"
    assert "Reserved from" in words
    assert "<script>" not in html
    part = Page(html)
    (form,) = part.all("form")
    assert form["action"] == f"{PREFIX}requests/s-aaaaaaaa/change"
    fields = {tag["name"]: tag["value"] for tag in part.all("input")}
    assert fields.keys() == {"csrf", "devices"}
    assert fields["devices"] == "1"
    assert world.browser("ben-oauth").get(path).status_code == 404


def test_an_expected_start_beyond_the_first_page_is_shown_once(world: World) -> None:
    planned, unknown = waiting(3), waiting(21, expected_at=None, latest_at=None)
    told = {
        "s-planned": (planned, planned, ""),
        "s-asked": (unknown, waiting(21), "Expected start:"),
        "s-unknown": (unknown, unknown, "The start cannot be estimated yet."),
    }
    for name, (wait, found, words) in told.items():
        world.service.put(session(id=name, server_name=name, wait=wait.model_dump()))
        world.service.reasons[name] = WhyOut(request_id=name, wait=found, sentences=[wait.sentence])
        browser = world.browser()
        why = text_of(browser.get(f"{PREFIX}requests/{name}/why").text).strip()
        assert why.startswith(words)
        assert bool(why) == bool(words)
        for page in (f"wait/{name}", f"requests/{name}"):
            assert ("Expected" in text_of(browser.get(PREFIX + page).text)) == (not words)


def test_an_interval_explains_its_two_ends(world: World) -> None:
    often = "It often starts sooner."
    for latest, words in ((5400, often), (9000, "; the latest time assumes")):
        made = waiting(latest_at=NOW + latest).model_dump()
        world.service.put(session(id="s-told", server_name="told", wait=made))
        page = text_of(world.browser().get(f"{PREFIX}wait/told").text)
        assert words in page
        assert (", at the latest " in page) == (latest > 5400)


def test_an_empty_queue_is_reported(world: World) -> None:
    assert world.browser().get(f"{PREFIX}wait/none").headers["location"] == PREFIX
    ended = {"state": "succeeded", "ended": True, "ended_at": NOW}
    world.service.put(session(**ended, cause=cause("stopped", "Stopped.").model_dump()))
    assert world.browser().get(f"{PREFIX}wait/-").headers["location"] == PREFIX


def test_a_ready_session_is_opened(world: World) -> None:
    world.service.put(session(state="running", server_name="lab-2"))
    world.service.ready_servers.add(("ada", "lab-2"))
    answer = world.browser().get(f"{PREFIX}wait/lab-2")
    assert (answer.status_code, answer.headers["location"]) == (303, "/user/ada/lab-2/")
    entered = world.browser().get(f"{PREFIX}wait/-/enter")
    assert entered.headers["hx-redirect"] == "/user/ada/"


def test_a_session_that_failed_shows_its_cause(world: World) -> None:
    why = cause("start_failed", "The server did not come up.", "OSError: no space")
    world.service.put(session(state="failed", ended=True, ended_at=NOW - 5, cause=why.model_dump()))
    html = world.browser().get(f"{PREFIX}wait/-").text
    check_page(html)
    assert "The server did not come up." in html
    assert "OSError: no space" in html
    assert "sse-connect" not in html


# -- one request, device-seconds, errors -------------------------------------------------------


def test_the_page_of_a_job_shows_all_there_is(world: World) -> None:
    full(world)
    running = world.browser().get(f"{PREFIX}requests/j-bbbbbbbb").text
    check_page(running)
    for expected in (
        "running cell 4",
        "0.05",
        "&lt;b&gt;",
        "(simulated)",
        "0.02",
        'id="log"',
    ):
        assert expected in running, expected
    part = world.browser().get(f"{PREFIX}requests/j-bbbbbbbb/ledger").text
    assert part.strip() in running, "the usage page opens the same"
    assert part.count("<details") == 1
    failed = world.browser().get(f"{PREFIX}requests/j-cccccccc").text
    assert "Traceback (most recent call last):" in failed
    assert f'href="{API}/requests/j-cccccccc/output"' in failed
    assert "sse-connect" not in failed


def test_cancelling_from_a_page_returns_to_it(world: World) -> None:
    world.service.put(session(), job())
    page = world.own_page()
    job_answer = page.post(f"{PREFIX}requests/j-aaaaaaaa/cancel")
    session_answer = page.post(f"{PREFIX}requests/s-aaaaaaaa/cancel")
    assert job_answer.headers["location"] == f"{PREFIX}requests/j-aaaaaaaa"
    assert session_answer.headers["location"] == PREFIX


def test_an_error_is_a_page_for_people(world: World) -> None:
    answer = world.browser().get(f"{PREFIX}requests/j-nothing1")
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    check_page(answer.text)
    assert "There is no request j-nothing1." in answer.text


def test_an_error_page_keeps_the_navigation_for_signed_in_users(world: World) -> None:
    world.service.store.put_group(Group(name="cs101"))
    world.service.store.set_teachers("cs101", ["ben"])
    refused = world.own_page("ben-oauth").post(f"{PREFIX}requests/j-nothing1/cancel")
    for answer in (
        world.browser("ben-oauth").get(f"{PREFIX}requests/j-nothing1"),
        world.browser("ben-oauth").get(f"{PREFIX}nothing/here"),
        refused,
    ):
        assert answer.status_code == 404
        check_page(answer.text)
        for path in ("requests", "submit", "usage", "courses"):
            assert f'href="{PREFIX}{path}"' in answer.text
        assert 'id="sign-out"' in answer.text
        assert f'href="{PREFIX}admin"' not in answer.text


def test_an_error_page_has_no_navigation_without_sign_in_or_store(
    world: World,
) -> None:
    unknown = world.client().get(f"{PREFIX}nothing/here")
    assert (unknown.status_code, "sign-out" in unknown.text) == (404, False)
    world.service.refusal = Unavailable("The store does not answer.")
    away = world.own_page().post(f"{PREFIX}requests/j-nothing1/cancel")
    assert (away.status_code, "sign-out" in away.text) == (503, False)
    world.service.refusal, world.sign_in.away = None, True
    nobody = world.browser().get(f"{PREFIX}nothing/here")
    assert (nobody.status_code, "sign-out" in nobody.text) == (404, False)


# -- hostile content ---------------------------------------------------------------------------


def test_text_of_users_never_becomes_markup(world: World) -> None:
    world.service.devices = [
        device(0, model=EVIL, node=EVIL, state="taken", owner=EVIL, why=EVIL, request_id=EVIL)
    ]
    why = cause("cell_error", EVIL, EVIL)
    hostile = {
        "notebook": EVIL,
        "output": EVIL,
        "group": EVIL,
        "parameters": {EVIL: EVIL},
        "labels": {EVIL: EVIL},
        "cause": why.model_dump(),
    }
    world.service.put(
        job(**hostile, state="failed", ended=True, ended_at=NOW),
        session(server_name=EVIL, group=EVIL, wait=waiting(1, sentence=EVIL).model_dump()),
        session(
            id="s-bbbbbbbb",
            server_name="bad",
            state="failed",
            ended=True,
            ended_at=NOW,
            submitted_at=NOW - 99,
            cause=why.model_dump(),
        ),
        job(id="j-bbbbbbbb", owner=EVIL, **hostile, lease=lease(device(model=EVIL)).model_dump()),
    )
    world.service.report = world.service.report.model_copy(
        update={"ledger": [line(1, group=EVIL, lease_id=EVIL)]}
    )
    world.service.offered = [
        GroupChoice(name=EVIL, max_devices=1, max_devices_per_user=1, max_seconds=60)
    ]
    world.service.refusal = Refused(EVIL, accepted=EVIL)
    admin, ada = world.browser("root-oauth"), world.browser()
    pages = [
        ada.get(PREFIX).text,
        admin.get(PREFIX).text,
        ada.get(f"{PREFIX}wait/bad").text,
        ada.get(f"{PREFIX}requests/j-aaaaaaaa").text,
        admin.get(f"{PREFIX}requests/j-bbbbbbbb").text,
        ada.get(f"{PREFIX}usage", params={"group": EVIL}).text,
        world.own_page().post(f"{PREFIX}sessions", data={"server_name": EVIL, "hours": EVIL}).text,
        world.own_page().post(f"{PREFIX}sessions/stop", data={"server_name": EVIL}).text,
    ]
    for html in pages:
        assert "alert(1)" in html
        check_page(html)
        assert not [a for a in Page(html).all("img") if a.get("src") == "x"]


def test_every_response_forbids_what_pages_do_not_need(world: World) -> None:
    for path in ("", "static/carrel.js", "api/v1/health", "nothing"):
        headers = world.browser().get(f"{PREFIX}{path}").headers
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"


def test_an_output_notebook_is_a_download_that_runs_nothing(world: World) -> None:
    world.service.put(job())
    world.service.outputs["j-aaaaaaaa"] = ('übung "1"\r\n.ipynb', b"{}")
    answer = world.program("ada-all").get(f"{API}/requests/j-aaaaaaaa/output")
    assert answer.content == b"{}"
    assert answer.headers["content-security-policy"].startswith("sandbox")
    disposition = answer.headers["content-disposition"]
    assert disposition.startswith("attachment; filename=")
    assert disposition.endswith("filename*=UTF-8''%C3%BCbung%20%221%22%0D%0A.ipynb")


def test_a_log_is_plain_text_and_says_where_to_go_on(world: World) -> None:
    world.service.put(job())
    world.service.logs["j-aaaaaaaa"] = b"<b>12345"
    answer = world.program("ada-all").get(f"{API}/requests/j-aaaaaaaa/log?offset=3")
    assert answer.content == b"12345"
    assert answer.headers["x-carrel-offset"] == "8"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


# -- files and the description -----------------------------------------------------------------


def test_the_theme_is_the_hubs_own_and_asks_for_nothing_else(world: World) -> None:
    css = world.client().get(f"{PREFIX}static/theme.css")
    assert css.status_code == 200
    assert "Bootstrap" in css.text
    assert "@import" not in css.text
    again = world.client(**{"If-None-Match": css.headers["etag"]})
    assert again.get(f"{PREFIX}static/theme.css").status_code == 304


def test_the_description_names_every_body_and_every_error(world: World) -> None:
    found = world.client().get(f"{API}/openapi.json").json()
    models = found["components"]["schemas"]
    for name in ("JobIn", "SessionIn", "OpenSessionIn", "StopIn", "StartedIn", "EventsIn"):
        assert name in models, name
    submit = found["paths"][f"{API}/requests"]["post"]
    body = submit["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/JobIn"}
    assert {"201", "400", "401", "403", "413", "503"} <= set(submit["responses"])
    for path, operations in found["paths"].items():
        for operation in operations.values():
            assert operation["summary"], path
            assert operation["description"], path
    refs = set(re.findall(r"#/components/schemas/(\w+)", str(found)))
    assert refs <= set(models)
