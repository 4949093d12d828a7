"""Code blocks of documentation pages as steps that a reader would take.

    ```console          each line after `$ ` is a command, followed by its output
    ```sh               each line is a command
    ```python           a cell of a notebook in a session

Above a block, a hidden comment can say ``<!-- in a session of student1 -->`` or, with the reason,
``<!-- not run: … -->``. Blocks of other languages are not run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RUN = frozenset({"console", "sh", "python"})
_BLOCK = re.compile(
    r"(?:^[ ]*<!-- (?P<note>[^\n]*?) -->\n\s*?)?"
    r"^(?P<indent>[ ]*)```(?P<language>\w+)\n(?P<text>.*?)^[ ]*```$",
    re.MULTILINE | re.DOTALL,
)
_NOT_RUN = "not run: "
_IN_A_SESSION = "in a session of "


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block.

    Attributes:
        place: file and line, for messages.
        session_of: the owner of the session for it; empty for a terminal of the machine.
        not_run: the reason, if it is marked so.
    """

    place: str
    language: str
    text: str
    session_of: str
    not_run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command, and the documented lines of its output."""

    command: str
    prints: tuple[str, ...]


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        note = found["note"] or ""
        inner = re.sub(rf"^{found['indent']}", "", found["text"], flags=re.MULTILINE)
        if found["language"] in RUN:
            yield Block(
                place=f"{page.name}:{text.count(chr(10), 0, found.start('indent')) + 1}",
                language=found["language"],
                text=inner,
                session_of=note.removeprefix(_IN_A_SESSION) if _IN_A_SESSION in note else "",
                not_run=note.removeprefix(_NOT_RUN) if note.startswith(_NOT_RUN) else "",
            )


def steps(block: Block) -> Iterator[Step]:
    """Return the commands of a shell block."""
    if block.language == "sh":
        lines = block.text.replace("\\\n", " ").splitlines()
        yield from (Step(command=line, prints=()) for line in lines if line.strip())
        return
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, *prints = part.rstrip().splitlines()
        yield Step(command=command, prints=tuple(prints))


_HERE = {
    "space": r"\s+",
    "anything": r".*?",
    "id": r"[js]-[a-z0-9]{8}",
    "password": r"[a-z]{4}(?:-[a-z]{4}){3}",
    "folder": r"/\S+",
    "number": r"(?:less than )?\d[\d.,:]*",
}
"""Values that differ between readers, with their values here."""
_TOKEN = re.compile(
    rf"(?P<space>\s+)|(?P<anything>…)|\b(?P<id>{_HERE['id']})\b|\b(?P<password>{_HERE['password']})"
    rf"|(?P<folder>/home/you/\S*)|(?P<number>{_HERE['number']})|."
)
REQUEST = re.compile(rf"\b{_HERE['id']}\b")


def pattern(line: str) -> re.Pattern[str]:
    """Return a line with ids, passwords, numbers and folders masked."""
    tokens = _TOKEN.finditer(line.strip())
    return re.compile(
        "".join(_HERE.get(each.lastgroup or "", re.escape(each[0])) for each in tokens)
    )


def missing(prints: tuple[str, ...], said: str) -> str | None:
    """Return the first missing line, in order; other lines may be between."""
    position = 0
    for line in prints:
        if not line.strip() or line.strip() == "…":
            continue
        found = pattern(line).search(said, position)
        if found is None:
            return line
        position = found.end()
    return None
