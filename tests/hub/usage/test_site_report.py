"""The report for administrators: its tables add up, and missing settings are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.config.device_costs import DeviceModelCost, parse_device_costs
from carrel.hub.errors import Forbidden, InvalidInput
from carrel.hub.interfaces.store import Store
from carrel.hub.messages import site_report as report_messages
from carrel.hub.records.requests import RequestFilter
from carrel.hub.records.usage import DAY
from carrel.hub.records.utilization import HeldDevices, UtilizationPoint, UtilizationSeries
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.schemas.usage import SiteReportOut, SiteReportRow
from carrel.hub.usage.idle_leases import idle_holding
from carrel.hub.usage.site_report import SiteReports, last_month, money_of

from ...contracts.store_kit import device, job, running
from ...property_settings import examples
from ...stores import new_store
from ..doubles import ADMIN, STUDENT1

COSTS = {
    "A100": DeviceModelCost(price_per_device_hour=1.37, watts=400),
    "H100": DeviceModelCost(price_per_device_hour=2.5),
    "L4": DeviceModelCost(watts=72),
}
GROUPS = ("cs101", "cs101-a", "lab")
Work = tuple[str, str, int, int, Sequence[str]]
"""Owner, group, start, seconds until the charge, and the models of the devices."""
WORKS = st.lists(
    st.tuples(
        st.sampled_from(["ada", "ben", "cleo"]),
        st.sampled_from(GROUPS),
        st.integers(0, 3 * 86400),
        st.integers(1, 86400),
        st.lists(st.sampled_from(["A100", "H100", "L4", "old"]), min_size=1, max_size=3),
    ),
    min_size=1,
    max_size=6,
)
END = 5 * DAY


def store_with(works: Sequence[Work]) -> Store:
    """Return a store in which the work is partly charged and still runs; cs101-a is below cs101."""
    store = new_store()
    for name in GROUPS:
        parent = "cs101" if name == "cs101-a" else None
        store.put_group(Group(name=name, max_devices=99, max_devices_per_user=99, parent=parent))
    store.note_capacity(0.0)
    for number, (owner, group, start, length, models) in enumerate(works):
        seen = [
            device(f"D{number}-{index}", index, node=f"n{number}", model=model)
            for index, model in enumerate(models)
        ]
        store.sync_devices(f"n{number}", seen)
        new = replace(job(str(number), owner=owner, devices=len(models)), group=group)
        lease = running(store, new, *(each.id for each in seen), at=float(start))
        store.renew({lease.id: float(start + length)}, until=END)
        store.charge([lease.id], now=float(start + length))
    return store


def report(
    store: Store,
    costs: Mapping[str, DeviceModelCost] = COSTS,
    since: float | None = 0.0,
    until: float | None = None,
) -> SiteReportOut:
    reports = SiteReports(store=store, clock=lambda: END, costs=costs, currency="EUR")
    return reports.report(ADMIN, since=since, until=until, courses={"cs101"})


def money(rows: Sequence[SiteReportRow]) -> Decimal:
    return sum((row.money or Decimal() for row in rows), Decimal())


@examples(15, 300, database=None)
@given(works=WORKS, since=st.integers(0, 3 * 86400), days=st.integers(1, 4))
def test_each_table_adds_up_to_the_total(works: Sequence[Work], since: int, days: int) -> None:
    found = report(store_with(works), since=float(since), until=since + days * DAY)
    for rows in (found.by_group, found.by_user, found.by_course, found.by_model):
        assert money(rows) == (found.total.money or 0)
        assert sum(row.device_seconds for row in rows) == pytest.approx(found.total.device_seconds)
        assert sum(row.kwh or 0 for row in rows) == pytest.approx(found.total.kwh or 0)
    for rows in (found.by_group, found.by_user, found.by_course):
        assert sum(row.granted or 0 for row in rows) == found.total.granted


def test_the_usage_of_a_period_has_its_price_power_and_wait() -> None:
    works = [("ada", "cs101-a", 3600, 7200, ["A100"]), ("ben", "lab", 3600, 7200, ["L4"])]
    found = report(store_with(works), since=3600.0, until=2 * 3600.0)
    assert [(row.name, row.device_seconds, row.money) for row in found.by_model] == [
        ("A100", 3600.0, Decimal("1.37")),
        ("L4", 3600.0, None),
    ]
    assert [row.name for row in found.by_course] == ["", "cs101"]
    assert [row.name for row in found.by_group] == ["cs101-a", "lab"]
    assert found.total.money == Decimal("1.37")
    assert found.total.kwh == pytest.approx(0.472)
    assert (found.total.granted, found.total.median_wait_seconds) == (
        2,
        found.waits[0].median_seconds,
    )
    assert any(note.startswith("Money does not include L4:") for note in found.notes)
    assert any("kWh is an estimate" in note for note in found.notes)
    assert any("Idle holding is not shown" in note for note in found.notes)


def test_idle_holding_is_measured_device_time_without_work() -> None:
    """An A100 was idle in the second of three parts; the last one was not measured."""
    store = store_with([("ada", "lab", 3600, 3600, ["A100"]), ("ben", "lab", 0, 60, ["L4"])])
    busy, idle = (UtilizationPoint(device_percent=each, readings=3) for each in (80.0, 0.0))
    lease = next(each for each in store.requests(RequestFilter(owner="ada"))).lease
    assert lease is not None
    series = UtilizationSeries(seconds=1200.0, points=(busy, idle, UtilizationPoint(readings=3)))
    store.put_utilization({lease.id: series})
    found = report(store, until=2 * 3600.0)
    row = found.total
    assert (row.measured_seconds, row.idle_seconds, row.idle_money) == (
        2400.0,
        1200.0,
        Decimal("0.46"),
    )
    assert [(row.name, row.idle_seconds) for row in found.by_user] == [("ben", None), ("ada", 1200)]
    assert "measured in 0.7 of" in found.notes[-1]
    later = report(store, since=3600 + 1800.0, until=2 * 3600.0)
    assert later.total.idle_seconds == 600.0


@pytest.mark.parametrize(
    ("point", "simulated", "expected"),
    [
        (UtilizationPoint(cores=0.01, readings=1), True, (60.0, 60.0)),
        (UtilizationPoint(cores=0.5, readings=1), True, (60.0, 0.0)),
        (UtilizationPoint(cores=0.01, readings=1), False, None),
        (UtilizationPoint(device_percent=float("nan"), readings=1), False, None),
        (UtilizationPoint(device_percent=0.0), False, None),
    ],
)
def test_what_was_not_measured_is_not_idle(
    point: UtilizationPoint, simulated: bool, expected: tuple[float, float] | None
) -> None:
    held = HeldDevices(
        owner="ada",
        group="lab",
        models=("L4",),
        simulated=simulated,
        granted_at=0.0,
        released_at=None,
        series=UtilizationSeries(seconds=60.0, points=(point,)),
    )
    found = idle_holding([held], since=0.0, until=100.0, now=90.0)
    assert [(each.measured, each.idle) for each in found] == ([expected] if expected else [])


def test_without_prices_there_are_no_columns_and_the_settings_are_named() -> None:
    found = report(store_with([("ada", "lab", 0, 3600, ["H100"])]), costs={})
    assert (found.total.money, found.total.kwh) == (None, None)
    assert "price_per_device_hour" in found.notes[0]
    assert "watts" in found.notes[1]
    for table in report_messages.tables(found):
        assert not any("Cost" in head or "kWh" in head for head in table.head)
    head = report_messages.csv_rows(found)[0]
    assert not {"money", "kwh_estimate"} & set(head)


def test_an_empty_period_has_a_total_of_zero() -> None:
    found = report(store_with([]))
    assert found.total.device_seconds == 0
    assert found.by_user == []
    assert len(report_messages.csv_rows(found)) == 2


def test_the_report_is_for_administrators_and_of_a_period_that_has_begun() -> None:
    store = store_with([])
    reports = SiteReports(store=store, clock=lambda: END, costs={}, currency="")
    with pytest.raises(Forbidden):
        reports.report(STUDENT1)
    for since, until in ((None, 5.0), (END, None), (5.0, 5.0)):
        with pytest.raises(InvalidInput):
            report(store, since=since, until=until)


def test_the_last_month_is_a_calendar_month() -> None:
    now = datetime(2026, 3, 31, 23, tzinfo=UTC).timestamp()
    first, last = (datetime(2026, month, 1, tzinfo=UTC).timestamp() for month in (2, 3))
    assert last_month(now) == (first, last)


@pytest.mark.parametrize(
    ("seconds", "price", "expected"),
    [(3600, 2.5, "2.50"), (36, 0.5, "0.00"), (36, 1.5, "0.02"), (-3600, 0.1, "-0.10")],
)
def test_money_is_rounded_half_to_even(seconds: float, price: float, expected: str) -> None:
    assert str(money_of(seconds, price)) == expected


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([], "device_models must be a table"),
        ({"H100": 3}, "device_models.H100 accepts price_per_device_hour and watts"),
        ({"H100": {"price": 3}}, "device_models.H100 accepts"),
        ({"H100": {"watts": -1}}, "device_models.H100.watts must be a number from 0"),
        ({"H100": {"watts": float("nan")}}, "device_models.H100.watts must be"),
        ({"H100": {"price_per_device_hour": True}}, "price_per_device_hour must be"),
    ],
)
def test_a_wrong_price_is_refused_with_its_key(found: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_device_costs(found)
