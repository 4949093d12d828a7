"""Ledger entries and usage rows as response bodies."""

from __future__ import annotations

from ..records.ledger import LedgerEntry, Usage
from ..records.usage import UsageRow
from ..schemas import LedgerOut, UsageOut


def ledger_out(entry: LedgerEntry) -> LedgerOut:
    return LedgerOut(
        id=entry.id,
        lease_id=entry.lease_id,
        request_id=entry.request_id,
        epoch=entry.epoch,
        owner=entry.owner,
        group=entry.group,
        devices=entry.devices,
        starts_at=entry.starts_at,
        ends_at=entry.ends_at,
        device_seconds=entry.device_seconds,
        kind=entry.kind.value,
    )


def usage_out(usage: Usage | UsageRow) -> UsageOut:
    return UsageOut(owner=usage.owner, group=usage.group, charged=usage.charged, open=usage.open)
