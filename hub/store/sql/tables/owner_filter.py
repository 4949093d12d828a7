"""Whose rows a filter asks for, said the same way of requests and of the ledger."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import BindParameter, ColumnElement, Table, bindparam

from ....records.requests import RequestFilter
from ....records.usage import LedgerFilter


def whom(which: RequestFilter | LedgerFilter) -> dict[str, object]:
    """What it says of the owner and the group; both filters mean the same by it."""
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


def of_whom(said: Mapping[str, object], table: Table) -> list[ColumnElement[bool]]:
    """The conditions; other values of the same names may be sent with the question."""
    columns = table.c
    conditions: list[ColumnElement[bool]] = []
    if "owner" in said:
        conditions.append(columns.owner == bindparam("owner", said["owner"]))
    if "groups" in said:
        conditions.append(columns.group_name.in_(_several("groups", said)))
    if "reader" in said:
        readable = columns.owner == bindparam("reader", said["reader"])
        if "reader_groups" in said:
            readable |= columns.group_name.in_(_several("reader_groups", said))
        conditions.append(readable)
    return conditions


def _several(name: str, said: Mapping[str, object]) -> BindParameter[object]:
    return bindparam(name, said[name], expanding=True)
