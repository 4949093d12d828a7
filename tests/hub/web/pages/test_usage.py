"""Usage pages and calls, over a store with past usage."""

from __future__ import annotations

import itertools
import re
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import cast

import pytest

from carrel.hub.interfaces.run_times import Basis, RunTimeForecast
from carrel.hub.messages import units
from carrel.hub.proofs.document import ProofDocument, SignedHead
from carrel.hub.records.calendar import Term
from carrel.hub.records.identity import Identity
from carrel.hub.records.requests import Cause, CauseCode
from carrel.hub.records.usage import DAY
from carrel.hub.records.utilization import UtilizationPoint, UtilizationSeries
from carrel.hub.scheduling.model.plan import Estimate, Start
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas import BudgetOut
from carrel.hub.schemas.calendar import ReservationOut
from carrel.hub.transitions import lifecycle
from carrel.hub.web.dependencies.context import WebContext
from carrel.hub.web.html.plot import Plot, Series
from carrel.hub.web.pages.usage import UsageChoice, usage_proof
from carrel.hub.web.security.access import Visitor

from ....contracts.store_kit import device as stored_device
from ....contracts.store_kit import job, running
from ..fakes import API, PREFIX, World
from ..page_checks import Page, check_page


@pytest.fixture
def world() -> World:
    """ada (cs101) has used 100 s on each side of the last midnight and 10 s since; ben, 5 s."""
    made = World()
    store = made.service.store
    for name in ("cs101", "lab"):
        store.put_group(Group(name=name, max_devices=2, max_devices_per_user=2))
    store.set_teachers("cs101", ["ben"])
    store.sync_devices("n1", [stored_device("D0", 0), stored_device("D1", 1)])
    midnight = time.time() // DAY * DAY
    made.service.clock = lambda: midnight + 110
    store.note_capacity(midnight - 1000)
    used = running(store, replace(job("a", owner="ada"), group="cs101"), "D0", at=midnight - 100)
    store.renew({used.id: midnight + 100}, until=midnight + 130)
    store.charge([used.id], now=midnight + 100)
    store.submit(replace(job("b", owner="ben"), group="lab"), midnight + 45)
    store.grant([Start(request_id="j-b", devices=("D1",))], now=midnight + 105, lease_seconds=30)
    return made


def test_the_proof_is_of_the_period_and_group_of_the_page(world: World) -> None:
    page = Page(world.browser().get(f"{PREFIX}usage?since=2026-10-01&group=cs101").text)
    (link,) = [str(each["href"]) for each in page.all("a") if each.get("id") == "proof"]
    assert link == f"{PREFIX}usage/proof?since=2026-10-01&group=cs101&whose=mine&by=owner"
    asked: dict[str, object] = {}

    class Proofs:
        def prove_usage(self, _: Identity, **given: object) -> ProofDocument:
            asked.update(given)
            return ProofDocument(head=SignedHead(text="", key="", signature=""), logs=[])

    web = cast("WebContext", SimpleNamespace(proofs=Proofs))
    visitor = cast("Visitor", SimpleNamespace(identity=Identity(name="ada")))
    chosen = UsageChoice(since="2026-10-01", until="2026-10-01", group="cs101")
    usage_proof(web, visitor, chosen)
    first = datetime(2026, 10, 1, tzinfo=UTC).timestamp()
    assert asked == {"group": "cs101", "since": first, "until": first + DAY}


def test_own_usage_is_shown_by_day_request_and_ledger_entry(world: World) -> None:
    answer = world.browser().get(f"{PREFIX}usage")
    assert answer.status_code == 200
    check_page(answer.text)
    assert "0.06 device-hours" in answer.text
    page = Page(answer.text)
    assert page.all("svg")
    assert len(page.all("rect")) == 2
    assert "j-b" not in answer.text
    (opened,) = [str(each["hx-get"]) for each in page.all("div") if "toggle" in str(each)]
    assert opened == f"{PREFIX}requests/j-a/ledger"


def test_usage_by_model_is_the_sum_of_all_usage(world: World) -> None:
    html = world.browser("root-oauth").get(f"{PREFIX}usage?whose=all").text
    check_page(html)
    assert "0.06 device-hours" in html
    found = re.search(r'H100</th><td class="number">(.*)</td><td class="number">(.*)</td>', html)
    assert found
    assert found.groups() == ("0.06", "less than 0.01")


def test_all_sums_of_a_page_are_of_the_same_moment(world: World) -> None:
    began, moments = world.service.clock(), itertools.count(1)
    world.service.store.renew({"j-a.1": began, "j-b.1": began}, until=began + DAY)
    world.service.clock = lambda: began + 3600 * next(moments)
    page = world.browser("root-oauth").get(f"{PREFIX}usage?whose=all&by=user").text
    (total,) = re.findall(r"([\d.]+) device-hours", page)[:1]
    by_model = re.findall(
        r'H100</th><td class="number">(.*)</td><td class="number">(.*)</td>', page
    )
    assert float(total) > 1
    assert sum(map(float, by_model[0])) == pytest.approx(float(total), abs=0.2)


def test_forecasts_are_compared_with_outcomes_for_all_users(world: World) -> None:
    empty = world.browser().get(f"{PREFIX}forecasts").text
    check_page(empty)
    assert "No job with a predicted run time has ended" in empty
    assert "No request with an expected start has started" in empty
    store, now = world.service.store, world.service.clock()
    forecast = RunTimeForecast(seconds=5.0, low=4.0, high=9.0, basis=Basis.OWNER, runs=2)
    store.put_run_time_forecasts({"j-a.1": forecast, "j-b.1": forecast}, now=now - 5)
    store.put_wait_forecasts({"j-b": Estimate(at=now, latest=now + 60)}, now=now - 65)
    store.launch("j-b.1", now=now - 5)
    for name, state, code in (
        ("j-b", State.SUCCEEDED, CauseCode.SUCCEEDED),
        ("j-a", State.CANCELLED, CauseCode.CANCELLED),
    ):
        store.apply(name, lifecycle.stop, state, Cause(code=code, message="It ended."), now=now)
        store.apply_to_lease(f"{name}.1", lifecycle.finish, now=now, charge_until=now)
    page = world.browser().get(f"{PREFIX}forecasts").text
    check_page(page)
    assert "No job with a predicted run time" not in page
    meters = [str(each["aria-label"]) for each in Page(page).all("meter")]
    today = datetime.fromtimestamp(now, UTC)
    week = f"{today - timedelta(days=today.weekday()):%Y-%m-%d}"
    assert meters == [
        f"In the interval, week from {week}",
        f"By the latest start, week from {week}",
    ]
    assert not any(name in page for name in ("ben", "j-a", "j-b"))
    newest = world.program("ada-reads").get(f"{API}/forecasts").json()["weeks"][0]
    assert newest == {
        "week": week,
        "run_times": {"outcomes": 1, "inside": 1.0, "median_error": 0.0, "stopped": 1},
        "waits": {"outcomes": 1, "inside": 1.0, "median_error": 5 / 60, "stopped": 0},
    }


def test_unused_devices_are_listed_for_the_owner_and_a_running_week_of_a_group_is_refused(
    world: World,
) -> None:
    idle = UtilizationSeries(seconds=60.0, points=(UtilizationPoint(device_percent=1.0),) * 6)
    store, now = world.service.store, world.service.clock()
    store.renew({"j-a.1": now + 900}, until=now + 930)
    store.charge(["j-a.1"], now=now + 900)
    world.service.clock = lambda: now + 900
    store.put_utilization({"j-a.1": idle})
    page = world.browser().get(f"{PREFIX}efficiency").text
    check_page(page)
    assert "j-a" in page
    assert "99%" in page
    group = world.browser("ben-oauth").get(
        f"{PREFIX}efficiency?group=cs101&week={datetime.now(UTC):%Y-%m-%d}"
    )
    check_page(group.text)
    assert group.status_code == 400
    assert "has not ended" in group.text
    assert "j-a" not in group.text


def row(name: str, *device_seconds: float) -> str:
    """Return the text of a row of a table, as ``rows_by`` reads it."""
    return "|".join([name, *(units.hours(amount) for amount in device_seconds)])


def rows_by(html: str) -> list[str]:
    """Return the text of each row of the chosen table, with cells separated by bars."""
    section = html.partition('aria-labelledby="by-title"')[2].partition("</section>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", section, re.DOTALL)
    return ["|".join(re.findall(r"<t[hd][^>]*>(?:<a[^>]*>)?([^<]*)<", row)) for row in rows]


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("user", ["User|Charged|Open", row("ada", 200, 10), row("ben", 0, 5)]),
        (
            "group",
            [
                "Group|Charged|Open|Own use",
                row("cs", 200, 15, 0),
                row("cs101", 200, 10, 210),
                row("lab", 0, 5, 5),
            ],
        ),
        ("term", ["Term|Charged|Open", row("outside terms", 100, 0), row("now", 100, 15)]),
    ],
)
def test_usage_of_all_users_by_each_grouping(world: World, by: str, expected: list[str]) -> None:
    store = world.service.store
    store.put_group(Group(name="cs", max_devices=2, max_devices_per_user=2))
    for name in ("cs101", "lab"):
        store.put_group(replace(store.group(name), parent="cs"))
    today = datetime.fromtimestamp(world.service.clock(), UTC).date()
    store.put_term(Term(name="now", first=today, last=today))
    root = world.browser("root-oauth")
    html = root.get(f"{PREFIX}usage?whose=all&by={by}").text
    check_page(html)
    assert rows_by(html) == expected
    assert f'<option value="{by}" selected>' in html


def test_days_and_weeks_can_be_read_as_a_table(world: World) -> None:
    midnight = datetime.fromtimestamp(world.service.clock(), UTC).date()
    before = midnight - timedelta(days=1)
    html = world.browser().get(f"{PREFIX}usage?by=day").text
    check_page(html)
    assert rows_by(html)[1:] == [row(str(before), 100, 0), row(str(midnight), 100, 10)]
    html = world.browser().get(f"{PREFIX}usage?by=week").text
    check_page(html)
    mondays = sorted({day - timedelta(days=day.weekday()) for day in (before, midnight)})
    assert [row.partition("|")[0] for row in rows_by(html)] == ["Week from", *map(str, mondays)]


def test_a_group_links_to_its_usage_with_subgroups(world: World) -> None:
    store = world.service.store
    store.put_group(Group(name="cs", max_devices=2, max_devices_per_user=2))
    store.put_group(replace(store.group("cs101"), parent="cs"))
    root = world.browser("root-oauth")
    page = Page(root.get(f"{PREFIX}usage?whose=all&by=group").text)
    (way,) = [str(each["href"]) for each in page.all("a") if each.get("id") == "of-cs"]
    html = root.get(way).text
    assert "0.06 device-hours" in html
    assert [row.partition("|")[0] for row in rows_by(html)] == ["Group", "cs", "cs101"]


def test_a_student_sees_sums_of_their_own_usage_only(world: World) -> None:
    for by in ("user", "group"):
        html = world.browser().get(f"{PREFIX}usage?whose=all&by={by}").text
        (row,) = rows_by(html)[1:]
        assert row.startswith("ada|" if by == "user" else "cs101|")
        assert "ben" not in html


def test_an_empty_past_says_what_to_do(world: World) -> None:
    html = world.browser("root-oauth").get(f"{PREFIX}usage").text
    check_page(html)
    assert "No device was used in this period." in html


def test_a_teacher_sees_the_group_and_not_others(world: World) -> None:
    html = world.browser("ben-oauth").get(f"{PREFIX}usage?whose=all&group=cs101").text
    check_page(html)
    assert "ada" in html
    assert "0.06 device-hours" in html


@pytest.mark.parametrize("query", ["since=yesterday", "since=2026-02-30", "by=colour"])
def test_invalid_days_are_refused_on_the_page(world: World, query: str) -> None:
    answer = world.browser().get(f"{PREFIX}usage?{query}")
    assert answer.status_code == 400
    check_page(answer.text)


def test_utilization_is_for_administrators(world: World) -> None:
    answer = world.browser("root-oauth").get(f"{PREFIX}admin/use?span=day")
    assert answer.status_code == 200
    check_page(answer.text)
    assert len(Page(answer.text).all("svg")) == 3
    assert "60 s" in answer.text or "1 min" in answer.text
    assert world.browser("ben-oauth").get(f"{PREFIX}admin/use").status_code == 403


def test_a_course_is_for_its_teachers_and_does_not_exist_for_others(world: World) -> None:
    answer = world.browser("ben-oauth").get(f"{PREFIX}course/cs101?span=day")
    assert answer.status_code == 200
    check_page(answer.text)
    assert "Usage by student" in answer.text
    assert f"{PREFIX}course/cs101" in answer.text
    assert world.browser("root-oauth").get(f"{PREFIX}course/lab").status_code == 200
    for who, group in (("ben-oauth", "lab"), ("ada-oauth", "cs101"), ("root-oauth", "x")):
        hidden = world.browser(who).get(f"{PREFIX}course/{group}")
        assert hidden.status_code == 404


def test_only_teachers_have_the_way_to_their_course(world: World) -> None:
    way = f'href="{PREFIX}courses"'
    assert way in world.browser("ben-oauth").get(f"{PREFIX}usage").text
    assert f'href="{PREFIX}course/cs101"' in world.browser("ben-oauth").get(f"{PREFIX}courses").text
    assert f"{PREFIX}course" not in world.browser("ada-oauth").get(f"{PREFIX}usage").text


def test_the_same_by_rest(world: World) -> None:
    ada = world.program("ada-reads")
    found = ada.get(f"{API}/usage?by=day").json()
    assert [row["charged"] for row in found["rows"]] == [100.0, 100.0]
    assert found["device_seconds"] == 210.0
    assert [line["device_seconds"] for line in found["ledger"]] == [200.0]
    assert ada.get(f"{API}/usage?lines=0").json()["ledger_complete"] is False
    (model,) = ada.get(f"{API}/usage?by=model").json()["rows"]
    assert (model["model"], model["charged"], model["open"]) == ("H100", 200.0, 10.0)
    for by, name in (("user", "owner"), ("group", "group"), ("week", "week"), ("term", "term")):
        rows = ada.get(f"{API}/usage?by={by}").json()["rows"]
        assert sum(row["charged"] + row["open"] for row in rows) == 210.0
        assert [row[name] for row in rows] != [""] or by == "term"
    refused = ada.get(f"{API}/usage?by=colour")
    assert refused.status_code == 400
    for by in ("owner", "owner-model", "term"):
        assert f"'{by}', " in refused.text or f"'{by}' or" in refused.text
    assert ada.get(f"{API}/history").status_code == 403
    assert ada.get(f"{API}/history?group=cs101").status_code == 404


@pytest.mark.parametrize(
    ("who", "page", "live"),
    [
        ("ada", "usage", "usage/live"),
        ("ada", "usage?by=week", "usage/live"),
        ("root", "usage?whose=all&by=group&group=cs101&since=2020-01-01", "usage/live"),
        ("root", "admin/use?span=day&group=cs101", "admin/use/live"),
        ("ben", "course/cs101?span=term", "course/cs101/live"),
    ],
)
def test_a_page_about_the_past_follows_its_one_stream_with_the_same_filter(
    world: World, who: str, page: str, live: str
) -> None:
    browser = world.browser(f"{who}-oauth")
    whole = browser.get(f"{PREFIX}{page}").text
    (stream,) = [each["sse-connect"] for each in Page(whole).all("div") if "sse-connect" in each]
    assert stream == f"{PREFIX}events"
    (part,) = [each for each in Page(whole).all("div") if "data-pause" in each]
    path, _, query = str(part["hx-get"]).partition("?")
    assert path == f"{PREFIX}{live}"
    assert set(page.partition("?")[2].split("&")) <= {*query.split("&"), ""}
    answer = browser.get(str(part["hx-get"]))
    assert answer.status_code == 200
    assert answer.text.strip() in whole
    known = [str(each["id"]) for each in Page(answer.text).all("a") if "id" in each]
    assert len(known) == len(Page(answer.text).all("a")), "a link keeps the focus by its id"


@pytest.mark.parametrize(
    ("who", "live", "status"),
    [
        ("ada", "usage/live?since=yesterday", 400),
        ("ben", "admin/use/live", 403),
        ("ada", "course/cs101/live", 404),
    ],
)
def test_the_live_part_is_refused_like_the_page(
    world: World, who: str, live: str, status: int
) -> None:
    assert world.browser(f"{who}-oauth").get(f"{PREFIX}{live}").status_code == status


def test_a_value_that_stands_alone_is_drawn_as_a_dot() -> None:
    values = (None, 3.0, None, 1.0, 2.0, None, 0.0)
    series = Series(name="x", values=values, texts=("",) * 7)
    marks = tuple(map(float, range(7)))
    plot = Plot(id="p", title="", about="", unit="", marks=marks, across="", series=(series,))
    assert plot.dots(series) == "M214.29 40.00h.01M928.57 100.00h.01"
    assert plot.path(series) == "M214.29 40.00M500.00 80.00L642.86 60.00M928.57 100.00"


def test_a_course_shows_its_budget_and_reservations(world: World) -> None:
    page = f"{PREFIX}course/cs101"
    teacher = world.browser("ben-oauth")
    assert 'id="promised"' not in teacher.get(page).text, "there is neither"
    budget = BudgetOut(
        group="cs101", period="week", device_seconds=36000, used=18000, running=3600, left=14400
    )
    world.service.report = world.service.report.model_copy(update={"budgets": [budget]})
    world.service.reserved = [
        ReservationOut(
            id=f"r-{group}",
            group=group,
            devices=2,
            when="Tue 10:00-12:00 Europe/Berlin",
            first="2026-11-01",
            until="2027-02-15",
            why=f"{group} class",
            starts_at=world.service.clock() + 3600,
            ends_at=world.service.clock() + 7200,
        )
        for group in ("cs101", "lab")
    ]
    html = teacher.get(page).text
    check_page(html)
    promised = html.partition('id="promised"')[2].partition("</section>")[0]
    for words in (
        "Budget of cs101",
        "5.0",
        "10.0 device-hours",
        "4.0 left; running requests may use up to 1.0 of it.",
        "cs101 class",
    ):
        assert words in promised, words
    assert "lab class" not in promised
