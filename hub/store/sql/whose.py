"""Whose rows a filter asks for, said the same way of requests and of the ledger."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Table

from ...ports.history import LedgerFilter
from ...ports.records import RequestFilter


def of_whom(which: RequestFilter | LedgerFilter, table: Table) -> list[ColumnElement[bool]]:
    """Conditions on the owner and the group; both filters mean the same by them."""
    columns = table.c
    conditions: list[ColumnElement[bool]] = []
    if which.owner is not None:
        conditions.append(columns.owner == which.owner)
    if which.groups is not None:
        conditions.append(columns.group_name.in_(sorted(which.groups)))
    if which.reader is not None:
        readable = columns.owner == which.reader
        if which.reader_groups:
            readable |= columns.group_name.in_(sorted(which.reader_groups))
        conditions.append(readable)
    return conditions
