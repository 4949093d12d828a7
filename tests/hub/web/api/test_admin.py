"""Administration over HTTP: rights, form tokens, previews, drains, people, the audit list."""

from __future__ import annotations

import re

import httpx
import pytest

from carrel.hub.interfaces.backend import NodeState
from carrel.hub.records.identity import Identity
from carrel.hub.records.leases import Handle
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.queries import RequestQueries
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.transitions import lifecycle
from carrel.spawners.fake import FakeBackend

from ...doubles import STUDENT1, TEACHER, FakeHub
from ...requests.samples import job
from ..fakes import API, PREFIX
from ..site import GROUP, Site, site

__all__ = ["site"]

READS = ["groups/tree", "people", "people/admin", "audit"]
CHANGES: list[tuple[str, str, dict[str, object] | None]] = [
    ("PUT", "groups/cs101", {**GROUP}),
    ("DELETE", "groups/cs101", None),
    ("POST", "people", {"name": "zoe"}),
    ("PUT", "people/admin", {"admin": False}),
    ("POST", "announcements", {"text": "Hello.", "ends_at": 2e9}),
    ("DELETE", "announcements/a-1", None),
    ("POST", "people/admin/password", None),
    ("POST", "people/admin/link", None),
    ("POST", "people/import", {"table": "name\nzoe\n"}),
    ("DELETE", "people/admin", None),
    ("PUT", "pool/local/drain", {}),
    ("DELETE", "pool/local/drain", None),
    ("PUT", "pool/SIM-0/quarantine", {"why": "x"}),
    ("DELETE", "pool/SIM-0/quarantine", None),
]
PAGES = [
    *("admin", "admin/live", "admin/people", "admin/person/admin"),
    *("admin/health", "admin/health/live", "admin/doctor", "admin/doctor/live"),
    *("admin/backup", "admin/backup/live"),
    *("admin/announcements", "admin/people/import", "admin/pool", "admin/pool/live", "admin/audit"),
]
FORMS = [
    *("admin/groups", "admin/groups/remove", "admin/people", "admin/person/admin", "admin/pool"),
    *("admin/announcements", "admin/people/import", "admin/doctor", "admin/backup"),
]


def sentences(answer: httpx.Response) -> list[str]:
    return list(answer.json()["sentences"])


# -- rights -----------------------------------------------------------------------------------


@pytest.mark.parametrize("who", [STUDENT1, TEACHER])
def test_other_users_cannot_read_or_change_anything(site: Site, who: Identity) -> None:
    api, page = site.api(who), site.page(who)
    asked = [api.get(f"{API}/{path}") for path in READS]
    asked += [api.request(verb, f"{API}/{path}", json=body) for verb, path, body in CHANGES]
    asked += [page.get(f"{PREFIX}{path}") for path in PAGES]
    asked += [page.post(f"{PREFIX}{path}", data={"name": "cs101"}) for path in FORMS]
    assert {answer.status_code for answer in asked} == {403}
    assert site.context.store.marks() == ()
    assert site.accounts.find("admin") is not None
    assert site.api().get(f"{API}/audit").json()["changes"] == []


def test_a_change_by_cookie_needs_the_form_token(site: Site) -> None:
    browser = site.world.browser("admin-oauth")
    asked = [browser.request(verb, f"{API}/{path}", json=body) for verb, path, body in CHANGES]
    asked += [browser.post(f"{PREFIX}{path}", data={"name": "cs101"}) for path in FORMS]
    assert {answer.status_code for answer in asked} == {403}
    assert site.context.store.group("cs101").max_devices == 4


def test_only_administrators_have_the_entry(site: Site) -> None:
    entry = f'href="{PREFIX}admin"'
    assert entry in site.page().get(PREFIX).text
    assert entry not in site.page(STUDENT1).get(PREFIX).text


# -- groups -----------------------------------------------------------------------------------


def test_a_dry_run_previews_and_changes_nothing(site: Site) -> None:
    JobService(site.context).submit(STUDENT1, job(devices=2))
    answer = site.api().put(f"{API}/groups/cs101?dry_run=true", json=GROUP)
    assert answer.json() == {
        "sentences": ["1 queued request could never start."],
        "saved": False,
        "changes": True,
    }
    assert site.context.store.group("cs101").max_devices == 4


def test_saving_changes_the_group_and_is_audited_with_both_sides(site: Site) -> None:
    body = {**GROUP, "teachers": ["grace"], "max_seconds": 28800}
    assert site.api().put(f"{API}/groups/cs101", json=body).json()["saved"] is True
    lines = site.api().get(f"{API}/audit").json()["changes"]
    assert [(line["action"], line["before"], line["after"]) for line in lines] == [
        ("teachers set", {"teachers": ["teacher"]}, {"teachers": ["grace"]}),
        (
            "group set",
            {"max_devices": 4, "max_devices_per_user": 2},
            {"max_devices": 1, "max_devices_per_user": 1},
        ),
    ]
    assert {(line["who"], line["target"]) for line in lines} == {("admin", "cs101")}


def test_the_audit_page_shows_values_as_people_read_them(site: Site) -> None:
    body = {**GROUP, "max_seconds": 5400, "teachers": ["<b>"]}
    site.api().put(f"{API}/groups/cs101", json=body)
    site.api().put(f"{API}/pool/local/drain", json={"until": site.clock.now + 3600})
    budget = {"device_seconds": 1080000, "period": "term"}
    site.api().put(f"{API}/groups/cs101", json={**body, "budget": budget})
    reserved = {"group": "cs101", "devices": 1, "when": "Tue 10:00-12:00 UTC"}
    answer = site.api().post(f"{API}/reservations", json={**reserved, "until": "1970-02-15"})
    assert answer.status_code == 201, answer.text
    page = site.page().get(f"{PREFIX}admin/audit").text
    assert "budget: none → 300 h per term" in page
    assert "until: 1970-02-15" in page
    assert "max time limit: 8 h → 1 h 30 min" in page
    assert "teachers: teacher → &lt;b&gt;" in page
    assert 'remaining work is stopped: <time datetime="1970-01-12T14:46:40Z"' in page


def test_a_group_cannot_stand_below_itself(site: Site) -> None:
    answer = site.api().put(f"{API}/groups/cs101", json={**GROUP, "parent": "cs101"})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")


def test_a_group_with_live_requests_is_not_removed(site: Site) -> None:
    made = JobService(site.context).submit(STUDENT1, job())
    refused = site.api().delete(f"{API}/groups/cs101")
    assert refused.status_code == 409
    assert "1 request that is queued or running" in refused.json()["detail"]
    RequestTermination(site.context).cancel(STUDENT1, made.id)
    assert site.api().delete(f"{API}/groups/cs101").status_code == 204
    assert site.api().get(f"{API}/groups/tree").json() == {"groups": []}
    assert RequestQueries(site.context).request(STUDENT1, made.id).group == "cs101"


def test_the_tree_counts_what_is_below(site: Site) -> None:
    site.api().put(f"{API}/groups/cs", json={"max_devices": 8, "max_devices_per_user": 8})
    body = {"parent": "cs", "max_devices": 4, "max_devices_per_user": 2}
    site.api().put(f"{API}/groups/cs101", json=body)
    JobService(site.context).submit(STUDENT1, job())
    tree = site.api().get(f"{API}/groups/tree").json()["groups"]
    assert [(g["name"], g["depth"], g["waiting"]) for g in tree] == [("cs", 0, 1), ("cs101", 1, 1)]


def test_the_tree_shows_the_used_and_remaining_budget(site: Site) -> None:
    budget = {"device_seconds": 108.0, "period": "week"}
    body = {"max_devices": 4, "max_devices_per_user": 2, "budget": budget}
    site.api().put(f"{API}/groups/cs101", json=body)
    site.api().put(f"{API}/groups/lab", json={"max_devices": 4, "max_devices_per_user": 2})

    tree = site.api().get(f"{API}/groups/tree").json()["groups"]
    assert [(g["name"], g["budget_used"]) for g in tree] == [("cs101", 0.0), ("lab", None)]
    row = site.page().get("/services/carrel/admin/live").text.partition("cs101")[2]
    assert '<td class="number">0.0</td>\n      <td class="number">0.03</td>' in row


def test_the_page_shows_the_preview_before_it_saves(site: Site) -> None:
    fields = {
        "name": "cs101",
        "parent": "",
        "max_devices": "1",
        "max_devices_per_user": "1",
        "max_time": "2h",
        "idle": "0",
        "teachers": "teacher",
        "do": "preview",
    }
    preview = site.page().post(f"{PREFIX}admin/groups", data=fields)
    assert "Effect of this change" in preview.text
    assert site.context.store.group("cs101").max_devices == 4
    saved = site.page().post(f"{PREFIX}admin/groups", data={**fields, "do": "save"})
    assert saved.status_code == 303
    group = site.context.store.group("cs101")
    assert (group.max_devices, group.max_seconds, group.idle_seconds) == (1, 7200, 0)
    wrong = site.page().post(f"{PREFIX}admin/groups", data={**fields, "max_devices": "many"})
    assert wrong.status_code == 400
    assert "Invalid number of devices" in wrong.text


def test_omitted_limits_are_kept_and_null_is_no_limit(site: Site) -> None:
    def put(**more: object) -> Group:
        answer = site.api().put(f"{API}/groups/cs101", json={**GROUP, **more})
        assert answer.status_code == 200, answer.text
        return site.context.store.group("cs101")

    put(guaranteed=2, borrowing=1, lending=0, weight=2, models=["Simulated GPU"], max_sessions=1)
    kept = put(sessions_borrow=True)
    assert (kept.guaranteed, kept.borrowing, kept.lending, kept.weight) == (2, 1, 0, 2.0)
    assert (kept.max_sessions, kept.sessions_borrow) == (1, True)
    assert kept.models == frozenset({"Simulated GPU"})
    opened = put(borrowing=None, lending=None, models=None, max_sessions=None)
    assert (opened.borrowing, opened.lending, opened.models, opened.max_sessions) == (None,) * 4
    (shown,) = site.api().get(f"{API}/groups/tree").json()["groups"]
    assert (shown["guaranteed"], shown["weight"], shown["models"]) == (2, 2.0, None)
    line = site.api().get(f"{API}/audit").json()["changes"][-1]
    assert line["after"]["models"] == ["Simulated GPU"]


@pytest.mark.parametrize(
    ("field", "value"), [("weight", 0), ("guaranteed", -1), ("models", []), ("models", ["H900"])]
)
def test_a_limit_that_cannot_be_is_refused(site: Site, field: str, value: object) -> None:
    answer = site.api().put(f"{API}/groups/cs101", json={**GROUP, field: value})
    assert answer.status_code == 400
    assert site.context.store.group("cs101").max_devices == 4


def test_the_page_has_more_limits_behind_a_summary(site: Site) -> None:
    fields = {
        "name": "cs101",
        "max_devices": "4",
        "max_devices_per_user": "2",
        "max_time": "2h",
        "idle": "0",
        "guaranteed": "2",
        "borrow": "",
        "lend": "1",
        "weight": "1.5",
        "models": "Simulated GPU",
        "max_sessions": "",
        "sessions_borrow": "yes",
        "do": "save",
    }
    assert site.page().post(f"{PREFIX}admin/groups", data=fields).status_code == 303
    group = site.context.store.group("cs101")
    assert (group.guaranteed, group.borrowing, group.lending, group.weight) == (2, None, 1, 1.5)
    assert (group.models, group.sessions_borrow) == (frozenset({"Simulated GPU"}), True)
    page = site.page().get(f"{PREFIX}admin?edit=cs101").text
    assert "More limits" in page
    assert 'value="Simulated GPU" checked' in page
    wrong = site.page().post(f"{PREFIX}admin/groups", data={**fields, "weight": "0"})
    assert wrong.status_code == 400
    assert '<details class="more" open>' in wrong.text


def test_without_changes_there_is_no_save_button(site: Site) -> None:
    fields = {"name": "cs101", "parent": "", "max_devices": "4", "max_devices_per_user": "2",
              "max_time": "8h", "idle": "30m", "teachers": "teacher",
              "do": "preview"}  # fmt: skip  # the form's fields
    same = site.page().post(f"{PREFIX}admin/groups", data=fields).text
    assert "Nothing changes." in same
    assert 'id="save"' not in same
    other = site.page().post(f"{PREFIX}admin/groups", data={**fields, "teachers": "grace"}).text
    assert "grace becomes a teacher of cs101." in other
    assert "teacher is no longer a teacher of cs101." in other
    assert "Nothing changes." not in other
    assert 'id="save"' in other


# -- nodes and devices ------------------------------------------------------------------------


def test_a_drain_is_announced_shown_and_ended(site: Site) -> None:
    until = site.clock.now + 3600
    body = {"until": until, "why": "A new fan."}
    said = site.api().put(f"{API}/pool/local/drain?dry_run=true", json=body)
    assert sentences(said) == ["Nothing new starts on the node local.", "Nothing runs there."]
    assert site.context.store.marks() == ()
    site.api().put(f"{API}/pool/local/drain", json=body)
    pool = site.api(STUDENT1).get(f"{API}/pool").json()
    assert (pool["free"], pool["total"], pool["out_of_service"]) == (0, 2, 2)
    assert {(t["state"], t["drain_until"], t["why"]) for t in pool["devices"]} == {
        ("draining", until, "Draining: A new fan.")
    }
    assert "draining" in site.page().get(f"{PREFIX}admin/pool?target=local").text
    assert site.api().delete(f"{API}/pool/SIM-0/drain").status_code == 409
    assert site.api().delete(f"{API}/pool/local/drain").status_code == 200
    assert site.api(STUDENT1).get(f"{API}/pool").json()["free"] == 2


def test_administrators_see_how_many_containers_wait_for_jobs(site: Site) -> None:
    backend = site.context.backend
    assert isinstance(backend, FakeBackend)
    for ready, said in ((0, ""), (1, "1 container ready for jobs."), (2, "2 containers ready for")):
        backend.machines = (NodeState(name="local", ready=ready),)
        page = site.page().get(f"{PREFIX}admin/pool").text
        assert said in page
        assert ("for jobs." in page) == bool(ready)


def test_administrators_see_what_runs_on_a_device_tell_about_it(site: Site) -> None:
    evidence = "Of the last 3 runs on it, 2 took longer than on other devices."
    site.context.device_evidence.publish("SIM-0", evidence)
    assert site.page().get(f"{PREFIX}admin/pool").text.count(evidence) == 1
    told = {
        each["id"]: each["evidence"] for each in site.api().get(f"{API}/pool").json()["devices"]
    }
    assert told["SIM-0"] == evidence
    assert evidence not in site.api(STUDENT1).get(f"{API}/pool").text


def test_running_work_is_warned_with_the_date(site: Site) -> None:
    made = JobService(site.context).submit(STUDENT1, job())
    store = site.context.store
    start = Start(request_id=made.id, devices=("SIM-0",))
    (lease,) = store.grant([start], now=site.clock.now, lease_seconds=30)
    store.launch(lease.id, now=site.clock.now)
    store.apply_to_lease(
        lease.id, lifecycle.start, Handle(pid=1, started_at=1.0), now=site.clock.now
    )
    until = site.clock.now + 600
    site.api().put(f"{API}/pool/SIM-0/drain", json={"until": until})
    warning = RequestQueries(site.context).request(STUDENT1, made.id).warning
    assert warning is not None
    assert (warning.stops_at, warning.can_keep) == (until, False)
    events = [event for event in store.events(made.id) if event.kind == "drain_warning"]
    assert [event.data["stops_at"] for event in events] == [until]


def test_work_that_ends_before_the_date_of_a_drain_is_not_warned(site: Site) -> None:
    made = JobService(site.context).submit(STUDENT1, job())
    store = site.context.store
    start = Start(request_id=made.id, devices=("SIM-0",))
    (lease,) = store.grant([start], now=site.clock.now, lease_seconds=30)
    store.launch(lease.id, now=site.clock.now)
    started = Handle(pid=1, started_at=1.0)
    store.apply_to_lease(lease.id, lifecycle.start, started, now=site.clock.now)
    body = {"until": site.clock.now + made.seconds + 1}
    said = site.api().put(f"{API}/pool/SIM-0/drain", json=body)
    assert sentences(said)[1:] == ["1 request there reaches its time limit before the date."]
    assert RequestQueries(site.context).request(STUDENT1, made.id).warning is None
    assert not [event for event in store.events(made.id) if event.kind == "drain_warning"]


def test_a_quarantine_needs_its_reason_and_is_released(site: Site) -> None:
    assert site.api().put(f"{API}/pool/SIM-0/quarantine", json={"why": " "}).status_code == 400
    assert site.api().put(f"{API}/pool/local/quarantine", json={"why": "x"}).status_code == 404
    site.api().put(f"{API}/pool/SIM-0/quarantine", json={"why": "Wrong sums."})
    tile = site.api(STUDENT1).get(f"{API}/pool").json()["devices"][0]
    assert (tile["state"], tile["why"]) == ("sick", "In quarantine: Wrong sums.")
    assert site.api().delete(f"{API}/pool/SIM-0/quarantine").status_code == 200
    assert site.api().delete(f"{API}/pool/SIM-0/quarantine").status_code == 409


def test_the_pool_page_drains_by_a_span_and_says_what_is_wrong(site: Site) -> None:
    fields = {"target": "SIM-0", "why": "fan", "until": "2h", "do": "drain"}
    site.page().post(f"{PREFIX}admin/pool", data=fields)
    (mark,) = site.context.store.marks()
    assert (mark.by, mark.until) == ("admin", site.clock.now + 7200)
    for given in ("soon", "18:00", "2026-02-30 18:00", "9999-12-31T23:59-10:00", "99999999999d"):
        wrong = site.page().post(f"{PREFIX}admin/pool", data={**fields, "until": given})
        assert wrong.status_code == 400
        assert "a date and time such as 2026-11-22 18:00" in wrong.text
        assert f'value="{given}"' in wrong.text
    empty = site.page().post(f"{PREFIX}admin/pool", data={"target": "SIM-0", "do": "quarantine"})
    assert empty.status_code == 400


@pytest.mark.parametrize(
    ("given", "zone", "meant"),
    [
        ("2026-11-22 18:00", "Europe/Berlin", "2026-11-22T17:00:00Z"),
        ("2026-07-22T18:00:30", "Europe/Berlin", "2026-07-22T16:00:30Z"),
        ("2026-11-22 18:00", "", "2026-11-22T18:00:00Z"),
        ("2026-11-22T18:00-05:00", "Europe/Berlin", "2026-11-22T23:00:00Z"),
        ("2026-11-22 18:00Z", "Asia/Tokyo", "2026-11-22T18:00:00Z"),
    ],
)
def test_the_pool_page_drains_by_a_date_of_the_readers_zone(
    site: Site, given: str, zone: str, meant: str
) -> None:
    fields = {"target": "local", "until": given, "zone": zone, "do": "preview"}
    page = site.page().post(f"{PREFIX}admin/pool", data=fields).text
    assert f'<time datetime="{meant}"' in page
    assert site.context.store.marks() == ()
    site.page().post(f"{PREFIX}admin/pool", data={**fields, "do": "drain"})
    assert f'<time datetime="{meant}"' in site.page().get(f"{PREFIX}admin/pool").text


@pytest.mark.parametrize("zone", ["Nowhere/At_all", "../../etc/passwd", "Europe", "\0"])
def test_an_unknown_time_zone_is_reported(site: Site, zone: str) -> None:
    fields = {"target": "local", "until": "2026-11-22 18:00", "zone": zone, "do": "drain"}
    refused = site.page().post(f"{PREFIX}admin/pool", data=fields)
    assert refused.status_code == 400
    assert 'id="zone-wrong"' in refused.text


def test_a_date_beyond_all_calendars_is_refused_by_rest(site: Site) -> None:
    assert site.api().put(f"{API}/pool/local/drain", json={"until": 1e18}).status_code == 400
    assert site.page().get(f"{PREFIX}admin/pool").status_code == 200


# -- people -----------------------------------------------------------------------------------


def test_people_are_added_reset_and_removed(site: Site) -> None:
    made = site.api().post(f"{API}/people", json={"name": "zoe", "groups": ["cs101"]})
    assert made.status_code == 201
    assert site.accounts.sign_in("zoe", made.json()["password"]) is not None
    again = site.api().post(f"{API}/people/zoe/password").json()["password"]
    assert site.accounts.sign_in("zoe", again) is not None
    found = site.api().get(f"{API}/people").json()["people"]
    zoe = next(person for person in found if person["name"] == "zoe")
    assert (zoe["groups"], zoe["account"], zoe["live"]) == (["cs101"], True, 0)
    assert site.api().delete(f"{API}/people/zoe").status_code == 204
    actions = [line["action"] for line in site.api().get(f"{API}/audit").json()["changes"]]
    assert actions == ["account remove", "new password", "member add", "account add"]


def test_the_last_administrator_stays(site: Site) -> None:
    refused = site.api().delete(f"{API}/people/admin")
    assert (refused.status_code, site.accounts.find("admin") is not None) == (409, True)
    assert "last administrator" in refused.json()["detail"]


def test_a_new_password_is_on_the_page_once(site: Site) -> None:
    page = site.page().post(f"{PREFIX}admin/people", data={"name": "zoe"})
    assert "shown only once" in page.text
    assert "shown only once" not in site.page().get(f"{PREFIX}admin/people").text


def test_a_new_account_joins_the_groups_that_are_ticked(site: Site) -> None:
    page, at = site.page(), f"{PREFIX}admin/people"
    for group in ("lab", "vision"):
        site.api().put(f"{API}/groups/{group}", json=GROUP)
    refused = page.post(at, data={"name": "admin", "member": ["lab", "vision"]})
    assert refused.status_code == 409
    assert re.findall(r'value="([a-z0-9]+)" checked', refused.text) == ["lab", "vision"]
    assert page.post(at, data={"name": "zoe", "member": ["lab", "vision"]}).is_success
    assert site.api().get(f"{API}/people/zoe").json()["groups"] == ["lab", "vision"]


def test_a_user_moves_between_groups_on_their_page(site: Site) -> None:
    site.api().put(f"{API}/groups/lab", json=GROUP)
    JobService(site.context).submit(STUDENT1, job())
    page, at = site.page(), f"{PREFIX}admin/person/student1"
    assert 'value="cs101" checked' in page.get(at).text
    fields = {"member": "lab", "teacher": "lab", "do": "preview"}
    shown = page.post(at, data=fields)
    assert re.findall(r"<li>(student1 .*?)</li>", shown.text) == [
        "student1 becomes a member of lab.",
        "student1 is no longer a member of cs101. 1 queued or running request there continues.",
        "student1 becomes a teacher of lab.",
    ]
    assert site.context.hub.user("student1").groups == {"cs101"}

    saved = page.post(at, data={**fields, "do": "save"})
    assert (saved.status_code, saved.headers["location"]) == (303, at)
    assert site.context.hub.user("student1").groups == {"lab"}
    assert site.context.store.teachers("lab") == ("student1",)
    actions = [line["action"] for line in site.api().get(f"{API}/audit").json()["changes"]]
    assert actions[:3] == ["teachers set", "member remove", "member add"]
    same = page.post(at, data={**fields, "do": "preview"}).text
    assert "Nothing changes." in same
    assert 'id="save"' not in same


def test_an_account_becomes_an_administrator_and_back(site: Site) -> None:
    site.api().post(f"{API}/people", json={"name": "zoe"})
    done = site.api().put(f"{API}/people/zoe", json={"admin": True})
    assert sentences(done) == [
        "zoe becomes an administrator, within five minutes or with the next sign-in."
    ]
    found = site.accounts.find("zoe")
    assert found is not None
    assert found.admin
    assert site.accounts.password_resets() == {}

    site.page().post(f"{PREFIX}admin/person/zoe", data={"account": "yes", "do": "save"})
    found = site.accounts.find("zoe")
    assert found is not None
    assert not found.admin
    assert list(site.accounts.password_resets()) == ["zoe"], "their sign-ins end"
    (line, *_) = site.api().get(f"{API}/audit").json()["changes"]
    assert (line["action"], line["before"], line["after"]) == (
        "role set",
        {"admin": True},
        {"admin": False},
    )


@pytest.mark.parametrize(
    ("name", "body", "says"),
    [
        ("admin", {"admin": False}, "admin is the last administrator of this site."),
        ("student1", {"admin": True}, "student1 has no account of Carrel."),
        ("student1", {"groups": ["cs102"]}, "There is no group cs102."),
        ("student1", {"teaches": ["cs102"]}, "There is no group cs102."),
        ("nemo", {"groups": ["cs101"]}, "no user nemo"),
    ],
)
def test_roles_that_cannot_be_change_nothing(
    site: Site, name: str, body: dict[str, object], says: str
) -> None:
    refused = site.api().put(f"{API}/people/{name}", json={"teaches": ["cs101"], **body})
    assert refused.status_code in (404, 409)
    assert says in refused.json()["detail"]
    assert site.api().get(f"{API}/audit").json()["changes"] == []


def test_groups_change_only_while_jupyterhub_answers(site: Site) -> None:
    hub = site.context.hub
    assert isinstance(hub, FakeHub)
    hub.away = True
    page = site.page()
    assert page.get(f"{PREFIX}admin/person/admin").status_code == 200
    fields = {"teacher": "cs101", "account": "yes", "admin": "yes", "do": "save"}
    assert page.post(f"{PREFIX}admin/person/admin", data=fields).status_code == 503
    assert site.context.store.teachers("cs101") == ("teacher",)


def test_an_unknown_user_has_no_page(site: Site) -> None:
    answer = site.page().get(f"{PREFIX}admin/person/nemo")
    assert answer.status_code == 404
    assert "There is no user nemo." in answer.text


# -- other people's requests, and the list -----------------------------------------------------


def test_the_owner_sees_why_an_administrator_cancelled(site: Site) -> None:
    made = JobService(site.context).submit(STUDENT1, job())
    site.api().delete(f"{API}/requests/{made.id}?reason=The+disk+is+full.")
    cause = RequestQueries(site.context).request(STUDENT1, made.id).cause
    assert cause is not None
    assert cause.message == "Cancelled by admin: The disk is full."
    (line,) = site.api().get(f"{API}/audit?action=request%20cancel").json()["changes"]
    assert (line["who"], line["target"], line["why"]) == ("admin", made.id, "The disk is full.")


def test_own_work_is_private(site: Site) -> None:
    made = JobService(site.context).submit(STUDENT1, job())
    RequestTermination(site.context).cancel(STUDENT1, made.id)
    assert site.api().get(f"{API}/audit").json()["changes"] == []


def test_the_list_is_filtered_and_paged(site: Site) -> None:
    for number in range(3):
        site.api().put(f"{API}/groups/g{number}", json=GROUP)
    first = site.api().get(f"{API}/audit?limit=2").json()
    rest = site.api().get(f"{API}/audit?limit=2&before={first['next']}").json()
    targets = [line["target"] for line in [*first["changes"], *rest["changes"]]]
    assert (targets, rest["next"]) == (["g2", "g1", "g0"], None)
    assert len(site.api().get(f"{API}/audit?target=g1&who=admin").json()["changes"]) == 1
    assert site.api().get(f"{API}/audit?action=nothing").status_code == 400
    assert "g1" in site.page().get(f"{PREFIX}admin/audit?target=g1").text


@pytest.mark.parametrize("path", [*PAGES, "admin?edit=cs101", "admin/pool?target=SIM-0"])
def test_every_page_answers(site: Site, path: str) -> None:
    assert site.page().get(f"{PREFIX}{path}").status_code == 200
