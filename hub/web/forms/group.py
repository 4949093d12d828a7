"""The form of a group, with durations and comma-separated names as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from math import inf
from typing import TypeVar

from ...accounts.usernames import split_names
from ...errors import InvalidInput
from ...records.audit import AuditEntry
from ...schemas import parsers
from ...schemas.admin import GroupIn, QuotaOut
from ...schemas.calendar import BudgetIn
from ...schemas.names import USER_LENGTH
from . import pickers
from .edits import as_before, earlier_values
from .fields import read
from .pickers import shown_span

_NAMES = 1000
_BASICS = ("name", "parent", "max_devices", "max_devices_per_user", "max_time", "idle", "teachers")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupForm:
    """The fields as entered, so that they can be shown again with an error."""

    name: str = ""
    parent: str = ""
    max_devices: str = "0"
    max_devices_per_user: str = "0"
    max_time: str = "8h"
    idle: str = "30m"
    guaranteed: str = "0"
    borrow: str = ""
    lend: str = ""
    weight: str = "1"
    models: str = ""
    max_sessions: str = ""
    budget: str = ""
    sessions_borrow: str = "no"
    programs: str = "off"
    teachers: str = ""

    @classmethod
    def of(cls, group: QuotaOut, later: Sequence[AuditEntry] = ()) -> GroupForm:
        """Return the form of a group, as it was before later changes."""
        group = as_before(group, earlier_values(later))
        return cls(
            name=group.name,
            parent=group.parent or "",
            max_devices=str(group.max_devices),
            max_devices_per_user=str(group.max_devices_per_user),
            max_time=shown_span(group.max_seconds),
            idle=shown_span(group.idle_seconds),
            guaranteed=str(group.guaranteed),
            borrow=_or_empty(group.borrowing),
            lend=_or_empty(group.lending),
            weight=f"{group.weight:g}",
            models=", ".join(group.models or ()),
            max_sessions=_or_empty(group.max_sessions),
            budget=_budget_text(group.budget),
            sessions_borrow="yes" if group.sessions_borrow else "no",
            programs="on" if group.programs else "off",
            teachers=", ".join(group.teachers),
        )

    @classmethod
    def filled(cls, fields: Mapping[str, str]) -> GroupForm:
        given = {
            each.name: fields.get(
                each.name, "" if each.name in _BASICS else str(each.default)
            ).strip()
            for each in dataclass_fields(cls)
        }
        combined = {name: pickers.span(fields, name) for name in ("max_time", "idle")}
        combined |= {"name": given["name"].lower(), "budget": pickers.budget(fields, "budget")}
        combined["teachers"] = pickers.chosen(fields, "teachers", split_names)
        combined["models"] = pickers.chosen(fields, "models", pickers.split_commas)
        return cls(**given | combined)

    def body(self) -> GroupIn:
        """Return the body of the request. Raises InvalidInput with the field."""
        return GroupIn(
            parent=self.parent[:64] or None,
            max_devices=read(parsers.devices, self.max_devices, "max_devices"),
            max_devices_per_user=read(
                parsers.devices, self.max_devices_per_user, "max_devices_per_user"
            ),
            max_seconds=read(_span, self.max_time, "max_time"),
            idle_seconds=read(_span, self.idle, "idle"),
            guaranteed=read(parsers.devices, self.guaranteed, "guaranteed"),
            borrowing=_if_any(parsers.devices, self.borrow, "borrow"),
            lending=_if_any(parsers.devices, self.lend, "lend"),
            weight=_weight(self.weight),
            models=[name[:255] for name in pickers.split_commas(self.models)] or None,
            max_sessions=_if_any(parsers.devices, self.max_sessions, "max_sessions"),
            budget=_if_any(parsers.budget, self.budget, "budget"),
            sessions_borrow=self.sessions_borrow == "yes",
            programs=self.programs == "on",
            teachers=[name[:USER_LENGTH] for name in split_names(self.teachers)][:_NAMES],
        )


def _if_any(reader: Callable[[str], T], text: str, field: str) -> T | None:
    return read(reader, text, field) if text else None


def _or_empty(limit: int | None) -> str:
    return "" if limit is None else str(limit)


def _budget_text(budget: BudgetIn | None) -> str:
    return "" if budget is None else parsers.budget_text(budget.device_seconds, budget.period)


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = 0.0
    if not 0 < weight < inf:
        raise InvalidInput(
            f"Invalid weight: {text[:40]!r}.",
            accepted="Enter a number above 0; the default is 1.",
            field="weight",
        )
    return weight


def _span(text: str) -> int:
    return 0 if text == "0" else parsers.seconds(text)
