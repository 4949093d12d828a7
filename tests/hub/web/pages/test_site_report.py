"""The page of the report for administrators, its CSV, and its REST call."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.config.device_costs import DeviceModelCost
from carrel.hub.config.settings import Settings
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.web import TokenHolder

from ....contracts.store_kit import device, job, running
from ..fakes import ALL_SCOPES, API, PREFIX, ROOT, World
from ..page_checks import check_page

NOVEMBER_10 = 1_794_268_800.0
QUERY = "since=2026-11-10&until=2026-11-10"


@pytest.fixture
def world() -> World:
    """ada used an H100 of cs101 for two hours on 10 November 2026."""
    made = World()
    settings = Settings(
        currency="EUR",
        device_models={"H100": DeviceModelCost(price_per_device_hour=2.5, watts=700)},
    )
    made.app.state.web = replace(made.web, settings=settings)
    store = made.service.store
    store.put_group(Group(name="cs101", max_devices=2, max_devices_per_user=2))
    store.sync_devices("n1", [device("D0", 0)])
    store.note_capacity(NOVEMBER_10)
    new = replace(job("a", owner="ada"), group="cs101")
    lease = running(store, new, "D0", at=NOVEMBER_10)
    store.renew({lease.id: NOVEMBER_10 + 7200}, until=NOVEMBER_10 + 7300)
    store.charge([lease.id], now=NOVEMBER_10 + 7200)
    made.service.clock = lambda: NOVEMBER_10 + 7200
    made.app.state.web = replace(made.web, clock=made.service.clock)
    return made


def test_the_page_shows_usage_money_and_energy_and_links_to_the_csv(world: World) -> None:
    root = world.browser("root-oauth")
    answer = root.get(f"{PREFIX}report?{QUERY}")
    assert answer.status_code == 200
    check_page(answer.text)
    for text in ("2.0 device-hours", "Cost (EUR)", "5.00", "kWh (estimate)", "1.4", "data-print"):
        assert text in answer.text
    assert f"{PREFIX}report/csv?since=2026-11-10&amp;until=2026-11-10" in answer.text
    saved = root.get(f"{PREFIX}report/csv?{QUERY}")
    assert 'filename="report-2026-11-10-2026-11-10.csv"' in saved.headers["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO(saved.text)))
    assert [(row["by"], row["name"], row["money"]) for row in rows] == [
        ("total", "", "5.0"),
        ("group", "cs101", "5.0"),
        ("user", "ada", "5.0"),
        ("course", "", "5.0"),
        ("model", "H100", "5.0"),
    ]


def test_a_period_without_use_has_no_empty_tables(world: World) -> None:
    url = f"{PREFIX}report?since=2026-10-01&until=2026-10-31"
    page = world.browser("root-oauth").get(url).text
    assert "No devices were used in this period." in page
    assert "<table" not in page


def test_the_call_returns_the_same_sums(world: World) -> None:
    world.sign_in.people["root-all"] = TokenHolder(identity=ROOT, scopes=ALL_SCOPES)
    found = world.program("root-all").get(f"{API}/report?since={NOVEMBER_10:.0f}").json()
    assert found["total"]["money"] == "5.00"
    assert found["utilization"] == 1.0


@pytest.mark.parametrize("path", ["report", "report/csv"])
def test_the_report_is_for_administrators(world: World, path: str) -> None:
    assert world.browser().get(f"{PREFIX}{path}?{QUERY}").status_code == 403


@pytest.mark.parametrize("query", ["since=2026-02-30", "until=2026-11-10", "since=2027-01-01"])
def test_an_invalid_period_is_refused_on_the_page(world: World, query: str) -> None:
    answer = world.browser("root-oauth").get(f"{PREFIX}report?{query}")
    assert answer.status_code == 400
    check_page(answer.text)


def test_prices_survive_a_restart(tmp_path: Path) -> None:
    state = StateFolder(root=tmp_path / "state")
    state.create()
    costs = {"H100": DeviceModelCost(price_per_device_hour=2.5)}
    settings = Settings(currency="EUR", device_models=costs)
    settings.save(state)
    assert Settings.load(state) == settings


def test_the_page_of_a_replay_fetches_its_result(world: World) -> None:
    root = world.browser("root-oauth")
    check_page(root.get(f"{PREFIX}report/what-if").text)
    answer = root.get(f"{PREFIX}report/what-if?devices=%2B4")
    check_page(answer.text)
    assert f'hx-get="{PREFIX}report/what-if/result?devices=%2B4"' in answer.text
    result = root.get(f"{PREFIX}report/what-if/result?devices=%2B4")
    assert "The ledger has nothing to replay yet" in result.text
    assert "alert" not in result.text
    wrong = root.get(f"{PREFIX}report/what-if/result?group=cs101")
    assert "The quota is not complete" in wrong.text
    assert world.browser().get(f"{PREFIX}report/what-if").status_code == 403
