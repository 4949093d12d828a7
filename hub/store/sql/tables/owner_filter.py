"""SQL conditions on owner and group, the same for requests and for the ledger."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import BindParameter, ColumnElement, Table, bindparam

from ....records.requests import RequestFilter
from ....records.usage import LedgerFilter


def owner_values(which: RequestFilter | LedgerFilter) -> dict[str, object]:
    """Return the values that a filter has for owner, groups and reader, by condition."""
    values = dict[str, object]()
    if which.owner is not None:
        values["owner"] = which.owner
    if which.groups is not None:
        values["groups"] = sorted(which.groups)
    if which.reader is not None:
        values["reader"] = which.reader
        if which.reader_groups:
            values["reader_groups"] = sorted(which.reader_groups)
    return values


def owner_conditions(values: Mapping[str, object], table: Table) -> list[ColumnElement[bool]]:
    """Return the conditions; the query can be run with other values of the same names."""
    columns = table.c
    conditions: list[ColumnElement[bool]] = []
    if "owner" in values:
        conditions.append(columns.owner == bindparam("owner", values["owner"]))
    if "groups" in values:
        conditions.append(columns.group_name.in_(_list_parameter("groups", values)))
    if "reader" in values:
        readable = columns.owner == bindparam("reader", values["reader"])
        if "reader_groups" in values:
            readable |= columns.group_name.in_(_list_parameter("reader_groups", values))
        conditions.append(readable)
    return conditions


def _list_parameter(name: str, values: Mapping[str, object]) -> BindParameter[object]:
    return bindparam(name, values[name], expanding=True)
