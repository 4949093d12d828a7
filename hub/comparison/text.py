"""Compare two texts by lines, with their numbers under a tolerance."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

from .alignment import aligned
from .schemas import RowOut, TextDifferenceOut
from .tolerance import LargestDifference, Tolerance, add_differences, numeric_text, same_text

_MOST_LINES: Final = 50_000
_MOST_ROWS: Final = 200
_LONGEST: Final = 400
"""Characters of a line that are shown."""
_LONGEST_NUMERIC: Final = 20_000
"""Characters of a line in which numbers are looked for."""
_CONTEXT: Final = 2
"""Equal lines that are shown before and after a difference."""
_SEQUENCE: Final = re.compile(r"\x1b\[[0-?]{0,64}[ -/]{0,4}[@-~]")


def text_lines(text: str) -> list[str]:
    """Return the lines as a terminal shows them in the end: without colours and progress bars."""
    lines = _SEQUENCE.sub("", text).replace("\r\n", "\n").removesuffix("\n").split("\n")
    return [line.rstrip("\r").rpartition("\r")[2] if "\r" in line else line for line in lines]


def compare_text(a: str, b: str, tolerance: Tolerance | None) -> TextDifferenceOut:
    """Compare two texts; without a tolerance, lines must be identical (as for sources).

    Only the first 50,000 lines are aligned: if the rest is not identical, it is one changed line.
    """
    if a == b:
        return TextDifferenceOut()
    return compare_lines(text_lines(a), text_lines(b), tolerance)


def compare_lines(
    a: Sequence[str], b: Sequence[str], tolerance: Tolerance | None, *, context: int = _CONTEXT
) -> TextDifferenceOut:
    """Compare two lists of lines. ``context``: equal lines shown beside each difference."""
    left, right = _bounded(a), _bounded(b)
    largest = LargestDifference()
    rows = list[RowOut]()
    for one, other in aligned(
        [_key(line, tolerance) for line in left],
        [_key(line, tolerance) for line in right],
        lambda at, to: _same(left[at], right[to], tolerance),
    ):
        before = "" if one is None else left[one]
        after = "" if other is None else right[other]
        kind = _kind(one, other, before, after, tolerance)
        if kind == "changed" and tolerance is not None and _is_numeric(before, after):
            add_differences(before, after, tolerance, largest)
        rows.append(RowOut(kind=kind, a=before[:_LONGEST], b=after[:_LONGEST]))
    shown = _with_gaps(rows, context)
    return TextDifferenceOut(
        changed=sum(row.kind == "changed" for row in rows),
        removed=sum(row.kind == "removed" for row in rows),
        added=sum(row.kind == "added" for row in rows),
        close=sum(row.kind == "close" for row in rows),
        largest=largest.out(),
        rows=shown[:_MOST_ROWS],
        left_out=max(0, len(shown) - _MOST_ROWS),
    )


def one_sided(text: str, state: Literal["removed", "added"]) -> TextDifferenceOut:
    """Return the lines of a text that only one run has."""
    lines = text_lines(text)
    rows = [
        RowOut(kind="removed", a=line[:_LONGEST])
        if state == "removed"
        else RowOut(kind="added", b=line[:_LONGEST])
        for line in lines[:_MOST_ROWS]
    ]
    return TextDifferenceOut(
        removed=len(lines) if state == "removed" else 0,
        added=len(lines) if state == "added" else 0,
        rows=rows,
        left_out=max(0, len(lines) - _MOST_ROWS),
    )


def differs(found: TextDifferenceOut) -> bool:
    return found.changed + found.removed + found.added > 0


def _bounded(lines: Sequence[str]) -> Sequence[str]:
    if len(lines) <= _MOST_LINES:
        return lines
    return [*lines[:_MOST_LINES], "\n".join(lines[_MOST_LINES:])]


def _is_numeric(*lines: str) -> bool:
    return all(len(line) <= _LONGEST_NUMERIC for line in lines)


def _key(line: str, tolerance: Tolerance | None) -> object:
    """Return what must be equal in lines that belong together."""
    return line if tolerance is None or not _is_numeric(line) else numeric_text(line).between


def _same(a: str, b: str, tolerance: Tolerance | None) -> bool:
    if a == b or tolerance is None or not _is_numeric(a, b):
        return a == b
    return same_text(a, b, tolerance)


def _kind(
    one: int | None, other: int | None, before: str, after: str, tolerance: Tolerance | None
) -> Literal["same", "close", "changed", "removed", "added"]:
    if one is None:
        return "added"
    if other is None:
        return "removed"
    if before == after:
        return "same"
    return "close" if _same(before, after, tolerance) else "changed"


def _with_gaps(rows: Sequence[RowOut], context: int) -> list[RowOut]:
    """Replace equal lines far from any difference by gaps; all of them if nothing differs."""
    if context >= len(rows):
        return list(rows) if any(row.kind not in {"same", "close"} for row in rows) else []
    near = set[int]()
    for index, row in enumerate(rows):
        if row.kind not in {"same", "close"}:
            near.update(range(max(0, index - context), min(len(rows), index + context + 1)))
    found, hidden = list[RowOut](), 0
    for index, row in enumerate(rows):
        if index not in near:
            hidden += 1
            continue
        if hidden:
            found.append(RowOut(kind="gap", count=hidden))
            hidden = 0
        found.append(row)
    if hidden and found:
        found.append(RowOut(kind="gap", count=hidden))
    return found
