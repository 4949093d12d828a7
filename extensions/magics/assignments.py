"""Translate ``%carrel fetch-assignment`` and similar into commands of ``carrel course``.

A notebook's kernel works in the notebook's folder, which is the assignment's; in a terminal the
commands are run above it.
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
"""Commands of ``carrel course``, by the name of the magic."""


def command_line(words: Sequence[str], here: Path) -> list[str]:
    """Return the terminal command; inside an assignment's folder its name is optional.

    Raises:
        InvalidInput: no assignment is given, and none was fetched into this folder.
    """
    magic, *rest = words
    command = COMMANDS[magic]
    if "--help" in rest:
        return ["course", command, "--help"]
    if command == "check":
        rest = _with_watch(rest)
    mark = fetch_record_of(here)
    named = bool(rest) and not rest[0].startswith("-")
    if not named and mark is None:
        raise InvalidInput(
            "No assignment is given, and this folder has none.",
            accepted=f"Give its name: %carrel {magic} ps1.",
        )
    if mark is None or (named and rest[0] != mark.assignment):
        return ["course", command, *rest]
    options = rest[1:] if named else rest
    return [
        "course",
        command,
        mark.assignment,
        *_with_folder(command, options),
        *_with_course(mark, options),
    ]


def _with_watch(rest: Sequence[str]) -> list[str]:
    """Wait for the result of a check in a cell, unless the last result is requested."""
    return [*rest] if {"--watch", "--last"} & set(rest) else [*rest, "--watch"]


def _with_folder(command: str, options: Sequence[str]) -> list[str]:
    """Add this folder, unless another one is given."""
    if command == "fetch":
        return [*options] if _has("--to", options) else [*options, "--to", "."]
    return [*options] if options and not options[0].startswith("-") else [".", *options]


def _with_course(mark: FetchRecord, options: Sequence[str]) -> list[str]:
    return [] if _has("--course", options) else ["--course", mark.course]


def _has(option: str, options: Sequence[str]) -> bool:
    return any(each == option or each.startswith(f"{option}=") for each in options)
