"""Cached sums of the ledger always equal the sums over its entries."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import fsum
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.interfaces.store import Store
from carrel.hub.records.requests import NewRequest
from carrel.hub.records.usage import DAY, LedgerFilter, UsageBy, UsageRow
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.scheduling.model.states import State
from carrel.hub.store import SqlStore, open_store
from carrel.hub.transitions import lifecycle
from carrel.hub.usage.aggregation import UsageInterval, added_up, charged, of_one_device, portions

from .....contracts.store_kit import CANCELLED, device, job, running
from .....property_settings import examples

LATER = 30 * DAY
# Quarters of a day, and whole devices, add up exactly in any order.
MOMENTS = st.integers(0, 24).map(lambda number: number * DAY / 4)
LEASES = st.lists(
    st.tuples(
        st.sampled_from(["ada", "bob"]),
        st.sampled_from(["lab", "course"]),
        MOMENTS,
        st.lists(st.integers(1, 9).map(lambda n: n * DAY / 4), min_size=1, max_size=3),
        st.sampled_from([("H100",), ("A100", "H100"), ("A100", "A100")]),
    ),
    min_size=1,
    max_size=6,
)
WINDOWS = st.builds(
    LedgerFilter,
    owner=st.sampled_from([None, "ada"]),
    groups=st.sampled_from([None, frozenset({"lab"})]),
    reader=st.sampled_from([None, "bob"]),
    reader_groups=st.sampled_from([frozenset[str](), frozenset({"course"})]),
    since=st.none() | MOMENTS,
    until=st.none() | MOMENTS,
)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sums") / "empty.db"
    store = open_store(path)
    for name in ("lab", "course"):
        store.put_group(Group(name=name, max_devices=99, max_devices_per_user=99))
    store.close()
    return path


def charge(
    store: Store,
    number: int,
    new: NewRequest,
    at: float,
    lengths: Sequence[float],
    *,
    models: Sequence[str] = ("H100",),
) -> None:
    """End one lease, with a ledger entry for each of these lengths."""
    seen = [
        device(f"X{number}-{index}", index, node=f"n{number}", model=model)
        for index, model in enumerate(models)
    ]
    store.sync_devices(f"n{number}", seen)
    new = replace(new, devices=len(models))
    lease = running(store, new, *(each.id for each in seen), at=at)
    for length in lengths:
        at += length
        store.renew({lease.id: at}, until=at + 30)
        store.charge([lease.id], now=at)
    store.apply(new.id, lifecycle.stop, State.CANCELLED, CANCELLED, now=at)
    store.apply_to_lease(lease.id, lifecycle.finish, now=at, charge_until=at)


def of(found: Sequence[UsageInterval], which: LedgerFilter, by: UsageBy) -> tuple[UsageRow, ...]:
    chosen = (each for each in found if which.takes(each.owner, each.group))
    return added_up((part for each in chosen for part in portions(each, which, by)), by)


def of_each_device(store: Store) -> list[UsageInterval]:
    models = {each.id: each.model for each in store.devices()}
    return [
        of_one_device(charged(line), line.devices, models[name])
        for line in store.ledger()
        for name in store.lease(line.lease_id).devices
    ]


def check(store: SqlStore, windows: Sequence[LedgerFilter]) -> None:
    lines = [charged(line) for line in store.ledger()]
    by_device = of_each_device(store)
    for which in (LedgerFilter(), *windows):
        for by in (UsageBy.DAY, UsageBy.OWNER):
            assert store.used(which, by, now=LATER) == of(lines, which, by)
        by_model = store.used(which, UsageBy.MODEL, now=LATER)
        assert by_model == of(by_device, which, UsageBy.MODEL)
        by_owner = store.used(which, UsageBy.OWNER, now=LATER)
        assert fsum(row.charged for row in by_model) == fsum(row.charged for row in by_owner)
    whole = {
        (row.owner, row.group): row.charged for row in of(lines, LedgerFilter(), UsageBy.OWNER)
    }
    usage = store.usage(now=LATER)
    assert {(each.owner, each.group): each.charged for each in usage} == whole


@examples(25, 1000, database=None)
@given(leases=LEASES, windows=st.lists(WINDOWS, max_size=4))
def test_cached_sums_equal_the_sums_over_the_ledger(
    empty: Path,
    leases: list[tuple[str, str, float, list[float], tuple[str, ...]]],
    windows: list[LedgerFilter],
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(shutil.copy(empty, Path(folder) / "c.db"))
        store = open_store(path)
        for number, (owner, group, at, lengths, models) in enumerate(leases):
            new = job(str(number), owner=owner, group=group)
            charge(store, number, new, at, lengths, models=models)
            check(store, windows)
        store.close()
        again = open_store(path)
        check(again, windows)
        again.close()


def test_a_reader_of_an_older_snapshot_gets_its_own_sums(empty: Path, tmp_path: Path) -> None:
    store = open_store(shutil.copy(empty, tmp_path / "c.db"))

    def sums() -> list[float]:
        return [each.charged for each in store.usage(now=LATER)]

    charge(store, 0, job("0"), 0.0, [DAY])
    with store.together(), ThreadPoolExecutor(1) as other:
        assert sums() == [DAY]
        other.submit(charge, store, 1, job("1"), 0.0, [DAY]).result()
        assert other.submit(sums).result() == [2 * DAY]
        assert sums() == [DAY]
        assert other.submit(sums).result() == [2 * DAY]
    assert sums() == [2 * DAY]
    store.close()
