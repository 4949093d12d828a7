"""Read the roles of a job of several members from a TOML file.

::

    arrangement = "spread"        # pack (default), spread or node
    must_succeed = ["worker"]     # default: all roles

    [roles.server]
    command = ["python", "server.py"]

    [roles.worker]
    command = "torchrun train.py"
    devices = 4
    minimum = 2
    maximum = 4
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from pydantic import ValidationError

from ..errors import InvalidInput
from ..schemas import JobIn, RoleIn
from .toml_file import read_toml

_JOB_KEYS = ("arrangement", "must_succeed", "roles")
_ROLE_KEYS = tuple(name for name in RoleIn.model_fields if name != "name")
_EXAMPLE = "A TOML file with a table [roles.NAME] for each role, and the command of the role in it."
_COMMAND = "A list of program and arguments, or a string in shell syntax."
_MEMBERS = "A whole number of members, such as 2."
_VALUES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "arrangement": '"pack", "spread" or "node".',
        "must_succeed": 'A list of names of roles, such as ["worker"].',
        "name": "1 to 32 lower-case letters, digits and hyphens.",
        "command": _COMMAND,
        "devices": "A whole number of devices for each member, such as 4.",
        "count": _MEMBERS,
        "minimum": _MEMBERS,
        "maximum": _MEMBERS,
        "image": 'The name of an image, such as "torch".',
    }
)
"""What is accepted, by key."""


def read(path: Path) -> dict[str, object]:
    """Return the fields of a job from a file of roles.

    Raises:
        InvalidInput: the file cannot be read, has unknown keys, or a value that no role can have.
    """
    found = read_toml(path, _EXAMPLE)
    _check_keys(path, found, _JOB_KEYS, "")
    roles = found.get("roles")
    if not isinstance(roles, dict) or not roles:
        raise InvalidInput(f"{path} has no roles.", accepted=_EXAMPLE)
    fields = found | {"roles": [_role(path, name, role) for name, role in roles.items()]}
    _check_values(path, fields)
    return fields


def of_nodes(nodes: int, fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a job with ``nodes`` equal members.

    Args:
        fields: of a job of one member; its command, devices and image are those of each member.
    """
    own = {name: fields[name] for name in ("command", "devices", "image") if fields.get(name)}
    rest = {name: value for name, value in fields.items() if name not in own}
    return rest | {"devices": 0, "roles": [{"name": "worker", "count": nodes, **own}]}


def _role(path: Path, name: str, role: Any) -> dict[str, object]:
    if not isinstance(role, dict):
        raise InvalidInput(f"{path}: the role {name} is not a table.", accepted=_EXAMPLE)
    _check_keys(path, role, _ROLE_KEYS, f" of the role {name}")
    command = role.get("command", [])
    try:
        words = shlex.split(command) if isinstance(command, str) else command
    except ValueError as error:
        raise InvalidInput(
            f"{path}: the command of the role {name} has an open quotation.", accepted=_COMMAND
        ) from error
    return {**role, "name": name, "command": words}


def _check_values(path: Path, fields: Mapping[str, Any]) -> None:
    """Raise InvalidInput for the first value that is not of the type of its key."""
    try:
        JobIn.model_validate({"group": "-", **fields})
    except ValidationError as error:
        first = error.errors()[0]
        at, of = first["loc"], ""
        if at[0] == "roles" and len(at) > 2:  # noqa: PLR2004  # number of the role, and key
            of = f" of the role {fields['roles'][at[1]]['name']:.80}"
            at = at[2:]
        long = first["type"] in {"too_long", "string_too_long"}
        wrong = "is too long" if long else f"cannot be {first['input']!r:.80}"
        raise InvalidInput(
            f"{path}: the key {str(at[0])!r}{of} {wrong}.",
            accepted=_VALUES.get(str(at[0]), _EXAMPLE),
        ) from error


def _check_keys(path: Path, found: Mapping[str, Any], known: tuple[str, ...], of: str) -> None:
    unknown = sorted(found.keys() - set(known))
    if unknown:
        raise InvalidInput(
            f"{path}: the key {unknown[0][:80]!r}{of} is not known.",
            accepted=f"Known keys: {', '.join(known)}.",
        )
