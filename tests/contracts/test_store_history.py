"""Contract of the store: usage, waits and levels of the past."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import count
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.interfaces.store import Store
from carrel.hub.records.calendar import Term
from carrel.hub.records.requests import CauseCode, NewRequest
from carrel.hub.records.usage import (
    DAY,
    WAIT_BOUNDS,
    Capacity,
    Flow,
    LedgerFilter,
    UsageBy,
    UsageRow,
    UsedRequests,
    WaitRow,
    Waits,
    Window,
)
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.snapshot import Group, Health, Kind, Mark, MarkKind
from carrel.hub.scheduling.model.states import State
from carrel.hub.transitions import lifecycle
from carrel.hub.usage import aggregation

from ..property_settings import examples
from .conftest import DATABASES, NewStore
from .store_kit import CANCELLED, device, furnish, granted, job, running, session


def used_until(store: Store, lease_id: str, at: float) -> None:
    store.renew({lease_id: at}, until=at + 30)
    store.charge([lease_id], now=at)


class TestUsed:
    def test_an_entry_that_spans_midnight_is_split_between_days(self, store: Store) -> None:
        lease = running(store, job("a"), "D0", at=DAY - 300)
        used_until(store, lease.id, DAY + 100)
        assert store.used(LedgerFilter(), UsageBy.DAY, now=DAY + 110) == (
            UsageRow(day=0.0, charged=300, first=DAY - 300, last=DAY),
            UsageRow(day=DAY, charged=100, open=10, first=DAY, last=DAY + 110),
        )

    def test_an_entry_that_ends_at_midnight_belongs_to_one_day(self, store: Store) -> None:
        lease = running(store, job("a"), "D0", at=DAY - 300)
        used_until(store, lease.id, DAY)
        (day,) = store.used(LedgerFilter(), UsageBy.DAY, now=DAY)
        assert (day.day, day.total) == (0.0, 300)

    def test_only_the_part_of_an_entry_within_the_window_counts(self, store: Store) -> None:
        lease = running(store, job("a", devices=2), "D0", "D1", at=1000)
        used_until(store, lease.id, 2000)
        window = LedgerFilter(since=1500, until=1600)
        assert store.used(window, UsageBy.REQUEST, now=2100) == (
            UsageRow(
                owner="ada", group="lab", request_id="j-a", charged=200, first=1500, last=1600
            ),
        )
        assert store.used(LedgerFilter(since=2050), UsageBy.OWNER, now=2100) == (
            UsageRow(owner="ada", group="lab", open=100, first=2050, last=2100),
        )
        assert store.used(LedgerFilter(until=1000), UsageBy.OWNER, now=2100) == ()

    def test_users_see_their_own_usage_and_that_of_their_groups(self, store: Store) -> None:
        used_until(store, running(store, job("a", owner="ada"), "D0", at=100).id, 200)
        used_until(store, running(store, job("b", owner="bob"), "D1", at=100).id, 150)

        def owners(which: LedgerFilter) -> list[str]:
            return [row.owner for row in store.used(which, UsageBy.OWNER, now=150)]

        assert owners(LedgerFilter()) == ["ada", "bob"]
        assert owners(LedgerFilter(owner="bob")) == ["bob"]
        assert owners(LedgerFilter(reader="bob")) == ["bob"]
        assert owners(LedgerFilter(reader="tom", reader_groups=frozenset({"lab"}))) == [
            "ada",
            "bob",
        ]
        assert owners(LedgerFilter(reader="tom")) == []
        assert owners(LedgerFilter(groups=frozenset({"other"}))) == []

    def test_usage_by_model_is_split_evenly_between_the_devices_of_a_lease(
        self, store: Store
    ) -> None:
        mixed = [device(f"M{index}", index, node="n2", model="A100") for index in range(2)]
        store.sync_devices("n2", [*mixed, device("M2", 2, node="n2")])
        lease = running(store, job("a", devices=3), "M0", "M1", "M2", at=DAY - 100)
        used_until(store, running(store, job("b"), "D0", at=DAY).id, DAY + 50)
        used_until(store, lease.id, DAY + 100)
        assert store.used(LedgerFilter(), UsageBy.MODEL, now=DAY + 110) == (
            UsageRow(model="A100", charged=400, open=20, first=DAY - 100, last=DAY + 110),
            UsageRow(model="H100", charged=250, open=70, first=DAY - 100, last=DAY + 110),
        )
        assert store.used(LedgerFilter(since=DAY + 90), UsageBy.MODEL, now=DAY + 100) == (
            UsageRow(model="A100", charged=20, first=DAY + 90, last=DAY + 100),
            UsageRow(model="H100", charged=10, open=10, first=DAY + 90, last=DAY + 100),
        )
        assert store.used(LedgerFilter(owner="eve"), UsageBy.MODEL, now=DAY + 110) == ()

    def test_usage_by_model_counts_known_devices(self, store: Store) -> None:
        def models() -> list[tuple[str, float]]:
            found = store.used(LedgerFilter(), UsageBy.MODEL, now=400)
            return [(row.model, row.charged) for row in found]

        store.sync_devices("n2", [device("S0", node="n2", model="Pretended", simulated=True)])
        for number, name in enumerate(("D0", "S0")):
            new = job(str(number))
            lease = running(store, new, name, at=100)
            store.apply(new.id, lifecycle.stop, State.CANCELLED, CANCELLED, now=200 + number)
            store.apply_to_lease(
                lease.id, lifecycle.finish, now=200 + number, charge_until=200 + number
            )
        assert models() == [("H100", 100), ("Pretended", 101)]
        store.sync_devices("n1", [])  # They are gone, and still known.
        assert models() == [("H100", 100), ("Pretended", 101)]
        store.sync_devices("n2", [device("M0", node="n2")])  # Simulated ones are removed.
        assert models() == [("", 101), ("H100", 100)]

    def test_cpu_work_has_no_model(self, store: Store) -> None:
        used_until(store, running(store, job("a", devices=0), at=100).id, 200)
        assert store.used(LedgerFilter(), UsageBy.MODEL, now=300) == ()

    def test_usage_by_request_lists_the_newest_first(self, store: Store) -> None:
        first = running(store, job("a"), "D0", at=100)
        store.apply("j-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=200)
        store.apply_to_lease(first.id, lifecycle.finish, now=200, charge_until=200)
        used_until(store, running(store, job("b"), "D1", at=100).id, 250)
        found = store.used(LedgerFilter(), UsageBy.REQUEST, now=300)
        assert [(row.request_id, row.charged, row.open) for row in found] == [
            ("j-b", 150, 50),
            ("j-a", 100, 0),
        ]

    def test_usage_by_request_can_be_limited_and_counted(self, store: Store) -> None:
        store.sync_devices("n1", [device(f"D{index}", index) for index in range(4)])
        for number in range(4):
            lease = running(store, job(f"{number}"), f"D{number}", at=100 + number)
            used_until(store, lease.id, 200 + 10 * number)
            if number < 3:
                store.apply(
                    f"j-{number}", lifecycle.stop, State.CANCELLED, CANCELLED, now=205 + 10 * number
                )
                store.apply_to_lease(
                    lease.id, lifecycle.finish, now=250, charge_until=205 + 10 * number
                )
        # Entries cut by the edges, an unfinished one, and entries within.
        for which in (
            LedgerFilter(),
            LedgerFilter(since=203, until=228),
            LedgerFilter(owner="ada", since=150),
            LedgerFilter(owner="eve"),
        ):
            everything = store.used(which, UsageBy.REQUEST, now=300)
            for most in (1, 2, 9):
                found = store.used_requests(which, now=300, most=most)
                assert found == UsedRequests(rows=everything[:most], total=len(everything))

    def test_a_request_with_many_entries_is_one_row(self, store: Store) -> None:
        older = running(store, job("a"), "D0", at=100)
        used_until(store, older.id, 110)
        newer = running(store, job("b"), "D1", at=110)
        for at in range(120, 520, 10):
            store.renew({newer.id: at}, until=at + 30)
            store.charge([newer.id], now=at)
        found = store.used_requests(LedgerFilter(), now=110, most=2)
        assert [(row.request_id, row.charged) for row in found.rows] == [("j-b", 400), ("j-a", 10)]

    def test_ledger_entries_are_paged_newest_first(self, store: Store) -> None:
        lease = running(store, job("a"), "D0", at=100)
        for at in (110, 120, 130):
            used_until(store, lease.id, at)
        lines = store.ledger_lines(LedgerFilter(), limit=2)
        assert [line.ends_at for line in lines] == [130, 120]
        older = store.ledger_lines(LedgerFilter(), limit=2, before=lines[-1].id)
        assert [line.ends_at for line in older] == [110]
        touching = store.ledger_lines(LedgerFilter(since=115, until=120), limit=9)
        assert [line.ends_at for line in touching] == [120]


class TestRegrouped:
    """By user, group, week and term."""

    @pytest.fixture(autouse=True)
    def tree(self, store: Store) -> None:
        """lab with two sections below the department cs, and arts beside cs."""
        above = {"cs": None, "lab": "cs", "lab-a": "lab", "lab-b": "lab", "arts": None}
        for name, parent in above.items():
            store.put_group(Group(name=name, parent=parent, max_devices=9, max_devices_per_user=9))
        store.sync_devices("n2", [device(f"E{index}", index, node="n2") for index in range(5)])

    @staticmethod
    def use(store: Store, whose: str, device: str, since: float, until: float) -> None:
        owner, _, group = whose.partition(" of ")
        new = job(f"{device}-{since}", owner=owner, group=group)
        used_until(store, running(store, new, device, at=since).id, until)
        store.apply(new.id, lifecycle.stop, State.CANCELLED, CANCELLED, now=until)
        store.apply_to_lease(f"{new.id}.1", lifecycle.finish, now=until, charge_until=until)

    def test_usage_by_user_sums_all_groups(self, store: Store) -> None:
        self.use(store, "ada of lab", "E0", 100, 200)
        self.use(store, "ada of arts", "E1", 150, 400)
        self.use(store, "bob of lab", "E2", 100, 130)
        assert store.used(LedgerFilter(), UsageBy.USER, now=400) == (
            UsageRow(owner="ada", charged=350, first=100, last=400),
            UsageRow(owner="bob", charged=30, first=100, last=130),
        )
        assert store.used(LedgerFilter(owner="bob", since=120), UsageBy.USER, now=400) == (
            UsageRow(owner="bob", charged=10, first=120, last=130),
        )

    def test_usage_of_a_group_includes_subgroups(self, store: Store) -> None:
        self.use(store, "ada of lab-a", "E0", 100, 200)
        self.use(store, "bob of lab-b", "E1", 100, 150)
        self.use(store, "bob of lab", "E2", 90, 100)
        running(store, job("arts", group="arts"), "E3", at=195)
        assert store.used(LedgerFilter(), UsageBy.GROUP, now=200) == (
            UsageRow(group="arts", own=5, open=5, first=195, last=200),
            UsageRow(group="cs", own=0, charged=160, first=90, last=200),
            UsageRow(group="lab", above="cs", own=10, charged=160, first=90, last=200),
            UsageRow(group="lab-a", above="lab", own=100, charged=100, first=100, last=200),
            UsageRow(group="lab-b", above="lab", own=50, charged=50, first=100, last=150),
        )

    def test_usage_of_named_groups_has_no_row_for_parents(self, store: Store) -> None:
        self.use(store, "ada of lab-a", "E0", 100, 200)
        of_lab = LedgerFilter(groups=frozenset({"lab", "lab-a", "lab-b"}))
        assert [
            (row.group, row.above, row.own, row.charged)
            for row in store.used(of_lab, UsageBy.GROUP, now=200)
        ] == [("lab", "", 0, 100), ("lab-a", "lab", 100, 100)]

    def test_usage_of_groups_without_access_is_hidden(self, store: Store) -> None:
        self.use(store, "ada of lab-a", "E0", 100, 200)
        self.use(store, "bob of lab-b", "E1", 100, 150)
        self.use(store, "tom of arts", "E2", 100, 110)

        def rows(which: LedgerFilter) -> list[tuple[str, float]]:
            return [(row.group, row.total) for row in store.used(which, UsageBy.GROUP, now=200)]

        teacher = LedgerFilter(reader="tom", reader_groups=frozenset({"lab-a"}))
        assert rows(teacher) == [("arts", 10), ("lab-a", 100)]
        above = LedgerFilter(reader="tom", reader_groups=frozenset({"lab", "lab-a"}))
        assert rows(above) == [("arts", 10), ("lab", 100), ("lab-a", 100)]
        assert rows(LedgerFilter(owner="ada")) == [("cs", 100), ("lab", 100), ("lab-a", 100)]

    def test_a_removed_group_has_a_row_without_parents(self, store: Store) -> None:
        self.use(store, "ada of lab-a", "E0", 100, 200)
        store.remove_group("lab-a", at=300)
        (row,) = store.used(LedgerFilter(), UsageBy.GROUP, now=300)
        assert (row.group, row.above, row.own, row.charged) == ("lab-a", "", 100, 100)

    def test_weeks_begin_on_monday(self, store: Store) -> None:
        monday = 4 * DAY  # 5 January 1970
        self.use(store, "ada of lab", "E0", monday - 100, monday + 50)
        self.use(store, "bob of lab", "E1", monday + 6 * DAY, monday + 6 * DAY + 10)
        self.use(store, "bob of lab", "E2", monday + 7 * DAY, monday + 7 * DAY + 5)
        now = monday + 8 * DAY
        assert store.used(LedgerFilter(), UsageBy.WEEK, now=now) == (
            UsageRow(week=monday - 7 * DAY, charged=100, first=monday - 100, last=monday),
            UsageRow(week=monday, charged=60, first=monday, last=monday + 6 * DAY + 10),
            UsageRow(
                week=monday + 7 * DAY,
                charged=5,
                first=monday + 7 * DAY,
                last=monday + 7 * DAY + 5,
            ),
        )
        (cut,) = store.used(
            LedgerFilter(since=monday + 40, until=monday + 45), UsageBy.WEEK, now=now
        )
        assert (cut.week, cut.charged) == (monday, 5)

    def test_terms_are_those_of_the_calendar(self, store: Store) -> None:
        day = date(1970, 2, 1)
        winter = Term(name="winter", first=day - timedelta(days=1), last=day + timedelta(days=1))
        store.put_term(winter)
        store.put_term(Term(name="summer", first=day + timedelta(days=3), last=date(1970, 3, 1)))
        at = winter.starts_at + DAY
        self.use(store, "ada of lab", "E0", at - DAY - 100, at - DAY + 50)
        self.use(store, "ada of lab", "E1", at + 100, at + 130)
        self.use(store, "ada of lab", "E2", at + 2 * DAY + 7, at + 2 * DAY + 10)
        running(store, job("open"), "E3", at=at + 3 * DAY)
        found = store.used(LedgerFilter(), UsageBy.TERM, now=at + 3 * DAY + 20)
        assert [(row.term, row.charged, row.open) for row in found] == [
            ("", 103, 0),
            ("winter", 80, 0),
            ("summer", 0, 20),
        ]


Span = tuple[str, int, int, list[str], bool]
"""Of a lease: its owner, start and length in seconds, the models of its devices, if it ends."""
SPANS = st.lists(
    st.tuples(
        st.sampled_from(["ada", "bob"]),
        st.integers(0, 4 * 86400),
        st.integers(1, 3 * 86400),
        st.lists(st.sampled_from(["H100", "A100", "L40S"]), min_size=1, max_size=3),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("new_store", DATABASES.values(), ids=DATABASES)
@examples(12, 500, database=None)
@given(spans=SPANS, cut=st.integers(1, 6 * 86400))
def test_usage_by_any_dimension_and_window_adds_up_to_the_ledger(
    new_store: NewStore, spans: Sequence[Span], cut: int
) -> None:
    store = new_store()
    _furnish(store, spans)
    end = max(start + length for _, start, length, _, _ in spans) + 100.0
    ledger = fsum(line.device_seconds for line in store.ledger())
    usage = store.usage(now=end)
    for by in UsageBy:
        rows = store.used(LedgerFilter(), by, now=end)
        assert fsum(row.charged for row in rows) == pytest.approx(ledger)
        assert fsum(row.open for row in rows) == pytest.approx(fsum(each.open for each in usage))
        # Two adjacent windows add up to the whole, for every cut.
        parts = [
            row
            for which in (LedgerFilter(until=cut), LedgerFilter(since=cut))
            for row in store.used(which, by, now=end)
        ]
        assert fsum(row.charged for row in parts) == pytest.approx(ledger)
    of_ada = LedgerFilter(owner="ada", since=cut)
    by_model, by_owner = (
        fsum(row.total for row in store.used(of_ada, by, now=end))
        for by in (UsageBy.MODEL, UsageBy.OWNER)
    )
    assert by_model == pytest.approx(by_owner)
    days = store.used(LedgerFilter(), UsageBy.DAY, now=end)
    assert all(d.day is not None and d.day <= d.first < d.last <= d.day + DAY for d in days)
    store.close()


def _furnish(store: Store, spans: Sequence[Span]) -> None:
    furnish(store)
    store.put_group(Group(name="lab", max_devices=18, max_devices_per_user=18))  # All at once.
    names = count()
    for owner, start, length, models, ends in spans:
        number = next(names)
        seen = [
            device(f"X{number}-{index}", index, node=f"n{number}", model=model)
            for index, model in enumerate(models)
        ]
        store.sync_devices(f"n{number}", seen)
        new = job(str(number), owner=owner, devices=len(models))
        lease = running(store, new, *(each.id for each in seen), at=float(start))
        used_until(store, lease.id, start + length / 3)
        if ends:
            store.apply(
                new.id, lifecycle.stop, State.CANCELLED, CANCELLED, now=float(start + length)
            )
            store.apply_to_lease(
                lease.id,
                lifecycle.finish,
                now=float(start + length),
                charge_until=float(start + length),
            )


def waits(store: Store, window: Window) -> Waits:
    return aggregation.waits(window, store.granted(window))


class TestWaits:
    def test_waits_are_counted_by_kind_when_they_end(self, store: Store) -> None:
        window = Window(since=1000, until=3000, buckets=2)
        for number, wait in enumerate((10, 20, 30, 40)):
            _granted_after(store, job(str(number)), wait, at=1500)
        _granted_after(store, session("s"), 5, at=2500)
        _granted_after(store, job("cpu", devices=0), 500, at=1500)
        _granted_after(store, job("later"), 5, at=3000)
        assert waits(store, window).parts == (
            WaitRow(bucket=0, kind=Kind.JOB, count=4, median=20, ninetieth=40),
            WaitRow(bucket=1, kind=Kind.SESSION, count=1, median=5, ninetieth=5),
        )
        assert waits(store, window).whole == waits(store, replace(window, buckets=1)).parts
        assert waits(store, replace(window, group="other")) == Waits(parts=(), whole=())
        assert waits(store, replace(window, group="lab")).whole[0].count == 4

    def test_the_90th_percentile_of_waits(self, store: Store) -> None:
        for number in range(10):
            _granted_after(store, job(str(number)), number + 1, at=50)
        (row,) = waits(store, Window(since=0, until=100, buckets=1)).parts
        assert (row.count, row.median, row.ninetieth) == (10, 5, 9)

    def test_further_attempts_are_not_further_waits(self, store: Store) -> None:
        lease = granted(store, job("a"), "D0", at=100)
        store.apply_to_lease(lease.id, lifecycle.give_back, now=110, charge_until=110)
        store.grant([Start(request_id="j-a", devices=("D0",))], now=150, lease_seconds=30)
        (row,) = waits(store, Window(since=0, until=200, buckets=1)).parts
        assert (row.count, row.median) == (1, 0)


def _granted_after(store: Store, new: NewRequest, wait: float, *, at: float) -> None:
    store.submit(new, at - wait)
    start = Start(request_id=new.id, devices=("D0",) * new.devices)
    (lease,) = store.grant([start], now=at, lease_seconds=30)
    store.apply(lease.request_id, lifecycle.stop, State.CANCELLED, CANCELLED, now=at)


class TestLevels:
    def test_leases_that_began_and_ended_in_each_interval(self, store: Store) -> None:
        before = running(store, job("a"), "D0", at=50)
        store.submit(job("b", devices=2), 120)
        store.apply("j-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=160)
        store.apply_to_lease(before.id, lifecycle.finish, now=160, charge_until=160)
        store.grant([Start(request_id="j-b", devices=("D0", "D1"))], now=170, lease_seconds=30)
        found = store.levels(Window(since=100, until=200, buckets=2))
        assert found.leased == (
            Flow(bucket=0, amount=1, offset=0),
            Flow(bucket=1, amount=2, offset=140),
        )
        assert found.released == (Flow(bucket=1, amount=1, offset=60),)
        assert found.queued == (Flow(bucket=0, amount=1, offset=20),)
        assert found.left == (Flow(bucket=1, amount=1, offset=70),)

    def test_leases_outside_of_the_window_do_not_count(self, store: Store) -> None:
        lease = running(store, job("a"), "D0", at=50)
        store.apply("j-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=90)
        store.apply_to_lease(lease.id, lifecycle.finish, now=90, charge_until=90)
        store.submit(job("b"), 200)
        found = store.levels(Window(since=100, until=200, buckets=2))
        assert (found.leased, found.released, found.queued, found.left) == ((), (), (), ())


def test_capacity_is_recorded_when_it_changes(store: Store) -> None:
    store.note_capacity(100)
    store.note_capacity(110)
    store.put_mark(Mark(target="D0", kind=MarkKind.DRAIN, since=115, by="root"))
    store.note_capacity(115)  # A drained device counts as healthy.
    store.put_mark(Mark(target="D0", kind=MarkKind.QUARANTINE, since=120, by="root"))
    store.note_capacity(120)
    store.set_health("D1", Health.SICK, "Xid 79")
    store.note_capacity(130)
    assert store.capacity(130) == (Capacity(at=100, healthy=2), Capacity(at=120, healthy=1))
    assert store.capacity(131)[-1] == Capacity(at=130, healthy=0)


def test_a_census_counts_ends_leases_and_waits(store: Store) -> None:
    running(store, job("a"), "D0", at=100)
    store.submit(session("s"), 100)
    store.grant([Start(request_id="s-s", devices=("D1",))], now=160, lease_seconds=30)
    store.submit(job("c"), 100)
    store.apply("j-c", lifecycle.stop, State.CANCELLED, CANCELLED, now=170)
    found = store.census()
    assert dict(found.ends) == {(Kind.JOB, CauseCode.CANCELLED): 1}
    assert dict(found.leases) == {Kind.JOB: 1, Kind.SESSION: 1}
    waited = found.waits[Kind.SESSION]
    assert (waited.count, waited.seconds) == (1, 60)
    assert waited.within == tuple(int(bound >= 60) for bound in WAIT_BOUNDS)
    assert found.waits[Kind.JOB].within[0] == 1
    store.check()
