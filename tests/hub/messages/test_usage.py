"""Ledger entries are collected by attempt."""

from __future__ import annotations

from carrel.hub.messages import usage
from carrel.hub.schemas import LedgerOut


def entry(number: int, lease_id: str, starts_at: float, **more: object) -> LedgerOut:
    given = {
        "id": number,
        "lease_id": lease_id,
        "request_id": lease_id.partition(".")[0],
        "epoch": 1,
        "owner": "ada",
        "group": "cs101",
        "devices": 1,
        "starts_at": starts_at,
        "ends_at": starts_at + 60,
        "device_seconds": 60.0,
    }
    return LedgerOut.model_validate(given | more)


def test_attempts_are_in_the_order_of_their_newest_entries() -> None:
    first, other = entry(1, "j-a.1", 0), entry(2, "j-b.1", 0, devices=2, device_seconds=120.0)
    last = entry(3, "j-a.1", 60, devices=3, device_seconds=180.0)
    refunded = entry(4, "j-b.1", 0, device_seconds=-120.0, kind="credit")
    again = entry(5, "j-a.2", 300)
    found = usage.attempts([again, refunded, last, other, first])
    assert [(each.lease_id, each.entries) for each in found] == [
        ("j-a.1", (first, last)),
        ("j-b.1", (other, refunded)),
        ("j-a.2", (again,)),
    ]
    assert [each.device_seconds for each in found] == [240.0, 0.0, 60.0]
    whole = found[0]
    assert (whole.starts_at, whole.ends_at, whole.devices) == (0, 120, 3)
    assert (whole.request_id, whole.group) == ("j-a", "cs101")
    assert usage.attempts([]) == []
