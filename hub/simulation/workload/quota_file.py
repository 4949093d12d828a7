"""Quotas of a simulated site: a TOML file with a table for every group of the tree.

    [groups.vcvGl]
    guaranteed = 160
    max_devices = 176
    weight = 2
    max_seconds = "12h"
    budget = "300h/term"

The keys are the attributes of ``carrel.hub.scheduling.model.snapshot.Group``, except those that a
replay ignores. A missing key keeps its current value; in a new group, limits are the pool size.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields, replace
from math import inf
from pathlib import Path
from types import MappingProxyType

from ...errors import InvalidInput
from ...scheduling.model.snapshot import Group
from ...scheduling.quota.tree import GroupTree

_FILE = "A TOML file with a table for each group is accepted, such as [groups.cs101]."
_WHOLE = (int,)
_KINDS: Mapping[str, tuple[type, ...]] = MappingProxyType(
    {
        "parent": (str,),
        "weight": (int, float),
        "sessions_borrow": (bool,),
        "models": (list,),
        **dict.fromkeys(
            (
                *("max_devices", "max_devices_per_user", "max_sessions"),
                *("guaranteed", "borrowing", "lending"),
            ),
            _WHOLE,
        ),
    }
)

TextParsers = Mapping[str, Callable[[str], object]]
"""Parsers of the keys whose values are text, such as ``max_seconds``."""
_NO_PARSERS: TextParsers = MappingProxyType({})


def read_quota(
    path: Path,
    devices: int,
    current: Iterable[Group] = (),
    parsers: TextParsers = _NO_PARSERS,
) -> tuple[Group, ...]:
    """Read the groups of a quota file.

    Args:
        devices: pool size.
        current: current groups, for values that the file leaves out.
        parsers: parsers of text values.

    Raises:
        InvalidInput: it cannot be read, or contains an unknown key or value.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise InvalidInput(f"There is no file {path}.", accepted=_FILE, field="quota") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}.", field="quota") from error
    tables = found.pop("groups", None)
    if not isinstance(tables, dict) or found:
        raise InvalidInput(
            f"{path.name} has {', '.join(found) or 'no groups'}.",
            accepted="A table for each group is accepted, such as [groups.cs101].",
            field="quota",
        )
    groups = {group.name: group for group in current}
    for name, table in tables.items():
        groups[name] = _group(
            name, table, groups.get(name, unlimited_group(name, devices)), parsers
        )
    for group in groups.values():
        if group.parent is not None and group.parent not in groups:
            raise InvalidInput(
                f"The parent {group.parent!r} of the group {group.name} does not exist.",
                accepted=f"There are {', '.join(groups)}.",
                field="quota",
            )
    return tuple(groups.values())


def unlimited_group(name: str, devices: int) -> Group:
    """Return a group without effective limits."""
    return Group(name=name, max_devices=devices, max_devices_per_user=devices, max_seconds=2**53)


def with_gang_headroom(groups: Iterable[Group], devices: int) -> tuple[Group, ...]:
    """Return the groups with limits that cover the pool doubled, so that they hold no gang.

    A gang counts with all wanted members in addition to current allocations, even if it would start
    with fewer members: together these are at most twice the pool.
    """

    def most(limit: int) -> int:
        return 2 * limit if limit >= devices else limit

    return tuple(
        replace(
            group,
            max_devices=most(group.max_devices),
            max_devices_per_user=most(group.max_devices_per_user),
        )
        for group in groups
    )


def with_tenants(
    groups: Iterable[Group], tenants: Iterable[str], devices: int
) -> tuple[Group, ...]:
    """Add a group without limits for every tenant that has none."""
    known = {group.name: group for group in groups}
    return (
        *known.values(),
        *(unlimited_group(name, devices) for name in sorted(set(tenants) - set(known))),
    )


def unused(named: Iterable[Group], groups: Iterable[Group], tenants: Collection[str]) -> list[str]:
    """Return the names of those groups in ``named`` that have no tenant in their subtree."""
    tree = GroupTree(groups)
    return [group.name for group in named if tree.subtree(group.name).isdisjoint(tenants)]


def _group(name: str, table: object, current: Group, parsers: TextParsers) -> Group:
    if not isinstance(table, dict):
        raise InvalidInput(
            f"groups.{name} is {table!r}.", accepted="A table is accepted.", field="quota"
        )
    changes = {
        key: _text(name, key, value, parsers[key])
        if key in parsers
        else _value(name, key, value, parsers)
        for key, value in table.items()
    }
    return replace(current, **changes)  # type: ignore[arg-type]  # checked above


def _text(name: str, key: str, value: object, parse: Callable[[str], object]) -> object:
    """Parse a value that has the form of a command line option."""
    if not isinstance(value, str):
        raise InvalidInput(
            f"groups.{name}.{key} is {value!r}.",
            accepted="Text is accepted, as in carrel group set.",
            field="quota",
        )
    try:
        return parse(value)
    except InvalidInput as error:
        raise InvalidInput(
            f"groups.{name}.{key}: {error.message}", accepted=error.accepted, field="quota"
        ) from None


def _value(name: str, key: str, value: object, parsers: TextParsers) -> object:
    kinds = _KINDS.get(key)
    if kinds is None:
        used = _KINDS.keys() | parsers.keys()
        known = ", ".join(field.name for field in fields(Group) if field.name in used)
        raise InvalidInput(
            f"groups.{name} has {key!r}, which a replay does not use.",
            accepted=f"The keys are {known}.",
            field="quota",
        )
    wrong = not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)
    if key == "weight" and value == 0:
        wrong = True
    if wrong or (isinstance(value, int | float) and not 0 <= value < inf):
        raise InvalidInput(
            f"groups.{name}.{key} is {value!r}.",
            accepted=f"{_ACCEPTED[kinds[0]]} is accepted.",
            field="quota",
        )
    if isinstance(value, list):
        return frozenset(str(each) for each in value)
    return value


_ACCEPTED: Mapping[type, str] = MappingProxyType(
    {
        str: "The name of a group",
        int: "A number that is not negative",
        bool: "true or false",
        list: "A list of models",
    }
)
