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
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InvalidInput
from ..schemas import RoleIn

_JOB_KEYS = ("arrangement", "must_succeed", "roles")
_ROLE_KEYS = tuple(name for name in RoleIn.model_fields if name != "name")
_EXAMPLE = 'For each role a table such as: [roles.worker] command = ["python", "train.py"]'


def read(path: Path) -> dict[str, object]:
    """Return the fields of a job from a file of roles.

    Raises:
        InvalidInput: the file cannot be read, or has unknown keys.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read as TOML: {error}.", accepted=_EXAMPLE) from error
    _check_keys(path, found, _JOB_KEYS, "")
    roles = found.get("roles")
    if not isinstance(roles, dict) or not roles:
        raise InvalidInput(f"{path} has no roles.", accepted=_EXAMPLE)
    return found | {"roles": [_role(path, name, role) for name, role in roles.items()]}


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
            f"{path}: the command of the role {name} has an open quotation.",
            accepted="A list of program and arguments, or a string in shell syntax.",
        ) from error
    return {**role, "name": name, "command": words}


def _check_keys(path: Path, found: Mapping[str, Any], known: tuple[str, ...], of: str) -> None:
    unknown = sorted(found.keys() - set(known))
    if unknown:
        raise InvalidInput(
            f"{path}: the key {unknown[0][:80]!r}{of} is not known.",
            accepted=f"Known keys: {', '.join(known)}.",
        )
