"""``%carrel fetch-assignment`` and its sisters: from inside the assignment's folder too.

A notebook's kernel works where the notebook lies, which is the folder that is to be handed in;
in a terminal one stands above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...courses.workspace.folder import FetchRecord, fetch_record_of
from ...hub.errors import InvalidInput

COMMANDS = {
    "fetch-assignment": "fetch",
    "check-assignment": "check",
    "submit-assignment": "submit",
}
"""Magics → commands of ``carrel course``."""


def as_typed(words: Sequence[str], here: Path) -> list[str]:
    """The command of the terminal that does it; in its folder the name may be left out.

    Raises:
        InvalidInput: no assignment is named, and none was fetched into this folder.
    """
    magic, *rest = words
    command = COMMANDS[magic]
    if "--help" in rest:
        return ["course", command, "--help"]
    if command == "check":
        rest = _watched(rest)
    mark = fetch_record_of(here)
    named = bool(rest) and not rest[0].startswith("-")
    if not named and mark is None:
        raise InvalidInput(
            "Which assignment?", accepted=f"Its name: %carrel {magic} ps1. In its folder none."
        )
    if mark is None or (named and rest[0] != mark.assignment):
        return ["course", command, *rest]
    options = rest[1:] if named else rest
    return ["course", command, mark.assignment, *_place(command, options), *_of(mark, options)]


def _watched(rest: Sequence[str]) -> list[str]:
    """Who checks from a cell waits for what comes out, unless they ask for the last one."""
    return [*rest] if {"--watch", "--last"} & set(rest) else [*rest, "--watch"]


def _place(command: str, options: Sequence[str]) -> list[str]:
    """This folder, unless another one is named."""
    if command == "fetch":
        return [*options] if _has("--to", options) else [*options, "--to", "."]
    return [*options] if options and not options[0].startswith("-") else [".", *options]


def _of(mark: FetchRecord, options: Sequence[str]) -> list[str]:
    return [] if _has("--course", options) else ["--course", mark.course]


def _has(option: str, options: Sequence[str]) -> bool:
    return any(each == option or each.startswith(f"{option}=") for each in options)
