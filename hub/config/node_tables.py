"""Add and remove tables ``[[nodes]]`` in the text of carrel.toml; comments and order are kept."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Final

from ..errors import InvalidInput
from .site import NodeTable

_ANY_TABLE: Final = re.compile(r"^\s*\[")
_NODE_TABLE: Final = re.compile(r"^\s*\[\[\s*nodes\s*\]\]")


def with_node(text: str, node: NodeTable) -> str:
    """Return the text with a table for another node at its end."""
    values = node.model_dump(exclude_defaults=True)
    # A JSON string is a TOML string, too.
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    before = f"{text.rstrip()}\n\n" if text.strip() else ""
    return f"{before}[[nodes]]\n" + "".join(f"{line}\n" for line in lines)


def without_node(text: str, name: str) -> str:
    """Return the text without the table of a node.

    Raises:
        InvalidInput: the table is not written as ``[[nodes]]`` with keys below it.
    """
    lines = text.splitlines(keepends=True)
    for begin, line in enumerate(lines):
        if not _NODE_TABLE.match(line):
            continue
        after = (n for n in range(begin + 1, len(lines)) if _ANY_TABLE.match(lines[n]))
        end = next(after, len(lines))
        shorter = "".join((*lines[:begin], *lines[end:]))
        if _removes_only(text, shorter, name):
            return f"{shorter.rstrip()}\n" if shorter.strip() else ""
    raise InvalidInput(
        f"The table of {name} is not written as [[nodes]] with its keys below.",
        accepted="Remove it from carrel.toml with an editor, and run the command again.",
    )


def _removes_only(text: str, shorter: str, name: str) -> bool:
    """Whether two texts differ in the table of this node only."""
    expected = tomllib.loads(text)
    expected["nodes"] = [each for each in expected["nodes"] if each.get("name") != name]
    try:
        found = tomllib.loads(shorter)
    except tomllib.TOMLDecodeError:
        return False
    return {"nodes": [], **found} == expected
