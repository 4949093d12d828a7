"""Terms, budgets and reservations over HTTP and on the pages."""

from __future__ import annotations

import pytest

from carrel.hub.inventory.pool import PoolQueries
from carrel.hub.records.identity import Identity

from ...doubles import STRANGER, STUDENT1, TEACHER
from ..fakes import API, PREFIX
from ..page_checks import check_page
from ..site import GROUP, Site, site

__all__ = ["site"]

CLASS = {
    "group": "cs101",
    "devices": 2,
    "when": "Tue 10:00-12:00 Europe/Berlin",
    "until": "2026-02-15",
    "first": "2026-01-01",
    "why": "The lab class.",
}


TYPED = {
    "group": "cs101",
    "devices": "2",
    "on-Tue": "yes",
    "first": "2026-01-01",
    "until": "2026-02-15",
    "begins": "10:00",
    "ends": "12:00",
    "zone": "Europe/Berlin",
    "why": "The lab class.",
}
"""The same reservation as the fields of the page."""


@pytest.fixture(autouse=True)
def in_january(site: Site) -> None:  # the fixture
    site.clock.now = 1_767_600_000.0  # 2026-01-05


def test_only_administrators_change_anything(site: Site) -> None:
    for who in (STUDENT1, TEACHER):
        api, page = site.api(who), site.page(who)
        term = {"first": "2026-01-01", "last": "2026-02-01"}
        asked = [
            api.put(f"{API}/terms/winter", json=term),
            api.delete(f"{API}/terms/winter"),
            api.post(f"{API}/reservations", json=CLASS),
            api.delete(f"{API}/reservations/r-1"),
            page.get(f"{PREFIX}admin/calendar"),
            page.post(f"{PREFIX}admin/calendar", data={"do": "term", "name": "x"}),
        ]
        assert {answer.status_code for answer in asked} == {403}
        assert api.get(f"{API}/terms").json() == {"terms": []}


def test_a_term_and_a_budget(site: Site) -> None:
    term = {"first": "2025-10-12", "last": "2026-02-15"}
    made = site.api().put(f"{API}/terms/winter", json=term)
    assert made.json()["terms"] == [{"name": "winter", **term, "running": True}]
    budget = {"device_seconds": 3600, "period": "term"}
    site.api().put(f"{API}/groups/cs101", json={**GROUP, "budget": budget})
    shown = site.api(STUDENT1).get(f"{API}/usage").json()["budgets"]
    assert [(b["group"], b["device_seconds"], b["left"]) for b in shown] == [
        ("cs101", 3600.0, 3600.0)
    ]
    assert "Budget of cs101" in site.page(STUDENT1).get(f"{PREFIX}usage").text
    assert "Budget of cs101" in site.page(STUDENT1).get(PREFIX).text
    assert site.api().get(f"{API}/groups/tree").json()["groups"][0]["budget"] == budget
    site.api().put(f"{API}/groups/cs101", json=GROUP)
    assert site.context.store.group("cs101").budget is not None
    site.api().put(f"{API}/groups/cs101", json={**GROUP, "budget": None})
    assert site.context.store.group("cs101").budget is None
    assert site.api().delete(f"{API}/terms/winter").status_code == 204
    assert site.api().delete(f"{API}/terms/winter").status_code == 404


@pytest.mark.parametrize(("who", "why"), [(STUDENT1, "The lab class."), (STRANGER, "")])
def test_a_reservation_is_seen_by_all_and_its_reason_by_its_group(
    site: Site,
    who: Identity,
    why: str,
) -> None:
    made = site.api().post(f"{API}/reservations", json=CLASS)
    assert made.status_code == 201, made.text
    assert made.json()["starts_at"] == 1_767_690_000.0  # Tuesday, nine in UTC
    seen = PoolQueries.of(site.context).reservations(who)
    assert [(each.id, each.why) for each in seen] == [(made.json()["id"], why)]
    pool = site.api(who).get(f"{API}/pool").json()
    assert pool["reservations"] == [{**made.json(), "why": why}], "as everywhere else"
    assert [each.why for each in PoolQueries.of(site.context).pool(None).reservations] == [""]
    desk = site.page(STUDENT1).get(PREFIX).text
    assert "2 devices are reserved for cs101 from" in desk
    assert "2 devices are reserved for cs101 from" in site.page().get(f"{PREFIX}admin/pool").text
    assert site.api().delete(f"{API}/reservations/{made.json()['id']}").status_code == 204
    assert site.api().get(f"{API}/reservations").json() == {"reservations": []}


def test_the_page_makes_and_removes_both(site: Site) -> None:
    page = site.page()

    def post(**fields: str) -> int:
        return page.post(f"{PREFIX}admin/calendar", data=fields).status_code

    assert post(do="term", name="Winter", first="2025-10-12", last="2026-02-15") == 303
    reserved = {**TYPED, "do": "reserve"}
    assert post(**reserved) == 303
    shown = page.get(f"{PREFIX}admin/calendar").text
    assert "winter (now)" in shown
    assert "Tue 10:00-12:00 Europe/Berlin" in shown
    (each,) = site.context.store.reservations()
    assert post(do="unreserve", name=each.id) == 303
    assert post(do="remove-term", name="winter") == 303
    assert (site.context.store.reservations(), site.context.store.terms()) == ((), ())
    assert post(**{**reserved, "devices": "many"}) == 400


@pytest.mark.parametrize(("more", "opened"), [({}, 0), ({"guaranteed": 2}, 1)])
def test_limits_with_other_values_are_shown(site: Site, more: dict[str, int], opened: int) -> None:
    assert site.api().put(f"{API}/groups/cs101", json={**GROUP, **more}).status_code == 200
    shown = site.page().get(f"{PREFIX}admin?edit=cs101").text
    assert shown.count('<details class="more" open>') == opened


@pytest.mark.parametrize("budget", ["300", "x/term", "5h/day", "-1h/week"])
def test_an_invalid_budget_is_refused_beside_its_field(
    site: Site,
    budget: str,
) -> None:
    fields = {
        "name": "cs101",
        "max_devices": "4",
        "max_devices_per_user": "2",
        "max_time": "2h",
        "idle": "0",
        "budget": budget,
        "do": "save",
    }
    wrong = site.page().post(f"{PREFIX}admin/groups", data=fields)
    assert wrong.status_code == 400
    assert "Invalid budget" in wrong.text


WRONG = (
    ("devices", "none"),
    ("first", "tomorrow"),
    ("until", ""),
    ("until", "2025-12-31"),
    ("begins", "at ten"),
    ("ends", ""),
    ("zone", "Mars/Base"),
)


def test_a_reservation_has_a_preview(site: Site) -> None:
    page = site.page()

    def asked(**fields: str) -> tuple[int, str]:
        form = {"do": "preview", **TYPED, **fields}
        answer = page.post(f"{PREFIX}admin/calendar", data=form)
        return answer.status_code, answer.text

    status, html = asked()
    assert status == 200
    check_page(html)
    said = html.partition('class="preview"')[2].partition("</div>")[0]
    for begins in ("2026-01-06T09:00:00Z", "2026-01-13T09:00:00Z", "2026-01-20T09:00:00Z"):
        assert f'datetime="{begins}"' in said, "ten o'clock in Berlin"
    assert "The pool has 2 devices, enough" in said
    assert 'value="The lab class."' in html, "what was filled in stays"
    assert "It reserves 3 devices; the pool has 2." in asked(devices="3")[1]
    for name, entered in WRONG:
        status, html = asked(**{name: entered})
        assert status == 400
        (field,) = (each for each in check_page(html).all("input") if "aria-invalid" in each)
        assert (field["name"], field["value"]) == (name, entered), "beside it, as it was typed"
    assert site.context.store.reservations() == ()
    site.api().post(f"{API}/reservations", json=CLASS)
    assert "At its first time 2 of 2 devices are reserved already." in asked()[1]


def test_a_reservation_is_changed_and_keeps_its_id(site: Site) -> None:
    made = site.api().post(f"{API}/reservations", json=CLASS).json()
    page = site.page()
    opened = page.get(f"{PREFIX}admin/calendar?edit={made['id']}").text
    shown = {str(each.get("id")): each.get("value") for each in check_page(opened).all("input")}
    for name in ("devices", "first", "until", "begins", "ends", "zone", "why"):
        assert shown[f"reserve-{name}"] == TYPED[name]
    fields = {**TYPED, "name": made["id"], "on-Thu": "yes", "devices": "1", "first": ""}
    preview = page.post(f"{PREFIX}admin/calendar", data={**fields, "do": "preview"})
    assert "enough for its first time" in preview.text, "it does not compete with itself"
    saved = page.post(f"{PREFIX}admin/calendar", data={**fields, "do": "reserve"})
    assert saved.status_code == 303
    (now,) = site.api().get(f"{API}/reservations").json()["reservations"]
    changed = {"when": "Tue,Thu 10:00-12:00 Europe/Berlin", "devices": 1}
    assert now == {**made, **changed}
    again = site.api().put(f"{API}/reservations/{made['id']}", json={**CLASS, "why": "Moved."})
    assert (again.status_code, again.json()["when"]) == (200, CLASS["when"])
    for path, status in (("r-none", 404), (made["id"], 400)):
        refused = site.api().put(f"{API}/reservations/{path}", json={**CLASS, "when": "at ten"})
        assert refused.status_code == status
    assert page.get(f"{PREFIX}admin/calendar?edit=r-none").status_code == 404


@pytest.mark.parametrize(
    ("who", "seen", "links"),
    [(STUDENT1, "The lab class.", 0), (STRANGER, "", 0), (None, "The lab class.", 4)],
)
def test_the_calendar_shows_reservations_on_their_days(
    site: Site, who: Identity | None, seen: str, links: int
) -> None:
    page = site.page(who) if who else site.page()
    assert "No devices are reserved in this month" in page.get(f"{PREFIX}calendar").text
    site.api().post(f"{API}/reservations", json=CLASS)
    html = page.get(f"{PREFIX}calendar").text
    check_page(html)
    assert "January 2026" in html
    assert html.count("10:00 to 12:00") == 4, "the Tuesdays of January after today's"
    assert html.count("?edit=") == links
    assert html.count(seen or "10:00 to") == 4
    week = page.get(f"{PREFIX}calendar?show=week&day=2026-01-13&zone=America/New_York").text
    assert "12 Jan to 18 Jan 2026" in week
    assert "04:00 to 06:00" in week
    for query in ("zone=Mars/Base", "day=tomorrow", "day=3000-01-01"):
        wrong = page.get(f"{PREFIX}calendar?{query}")
        assert wrong.status_code == 400
        assert query.partition("=")[2] in wrong.text, "what was typed"
