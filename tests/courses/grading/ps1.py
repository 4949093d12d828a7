"""nbgrader's example assignment ps1, and submissions of it that differ in what matters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import nbformat
import nbgrader
from nbformat import NotebookNode

GUIDE = Path(nbgrader.__file__).parent / "docs/source/user_guide"
RIGHT = "if n < 1:\n        raise ValueError('n')\n    return [i**2 for i in range(1, n + 1)]"
SUM = "return sum(squares(n))"
CHECK = "if n < 1:\n        raise ValueError"
ARRAY = f"import numpy as np\n    {CHECK}"
Edit = Callable[[NotebookNode], None]


@cache
def source() -> Mapping[str, bytes]:
    return _files(GUIDE / "source/ps1")


@cache
def released() -> Mapping[str, bytes]:
    """Return the student version, as ``nbgrader generate_assignment`` creates it."""
    from carrel.courses.releases.student_version import prepare  # noqa: PLC0415 - imports nbgrader's converters

    return prepare("ps1", source()).files


def _files(folder: Path) -> Mapping[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def shipped(student: str) -> Mapping[str, bytes]:
    """Return one of the two submissions in nbgrader's guide."""
    return _files(GUIDE / "submitted" / student / "ps1")


def cell_of(node: NotebookNode, grade_id: str) -> NotebookNode:
    return next(c for c in node.cells if c.metadata.get("nbgrader", {}).get("grade_id") == grade_id)


def submission(squares: str = RIGHT, sums: str = SUM, *edits: Edit) -> Mapping[str, bytes]:
    """Return the student version with these bodies of its two functions and further changes."""
    node = nbformat.reads(released()["problem1.ipynb"].decode(), as_version=4)
    cell_of(node, "squares").source = f"def squares(n):\n    {squares}"
    cell_of(node, "sum_of_squares").source = f"def sum_of_squares(n):\n    {sums}"
    for edit in edits:
        edit(node)
    return {**released(), "problem1.ipynb": nbformat.writes(node).encode()}


def text(grade_id: str, source: str) -> Edit:
    """Replace the text of a cell."""

    def edit(node: NotebookNode) -> None:
        cell_of(node, grade_id).source = source

    return edit


def before(grade_id: str, source: str) -> Edit:
    """Insert a cell of the student before another cell."""

    def edit(node: NotebookNode) -> None:
        place = node.cells.index(cell_of(node, grade_id))
        node.cells.insert(place, nbformat.v4.new_code_cell(source))

    return edit


def deleted(grade_id: str) -> Edit:
    def edit(node: NotebookNode) -> None:
        node.cells.remove(cell_of(node, grade_id))

    return edit


def duplicated(grade_id: str, source: str | None = None) -> Edit:
    """Insert a copy of a cell before it, optionally with another text."""

    def edit(node: NotebookNode) -> None:
        cell = cell_of(node, grade_id)
        copy = nbformat.v4.new_code_cell(cell.source if source is None else source)
        copy.metadata["nbgrader"] = nbformat.from_dict(dict(cell.metadata["nbgrader"]))
        node.cells.insert(node.cells.index(cell), copy)

    return edit


SOLUTIONS: Mapping[str, Mapping[str, bytes]] = {
    "right": submission(),
    "untouched": released(),
    "own sum": submission(RIGHT, "return sum(i * i for i in range(1, n + 1))"),
    "formula": submission(RIGHT, "return n * (n + 1) * (2 * n + 1) // 6"),
    "no check": submission("return [i**2 for i in range(1, n + 1)]"),
    "off by one": submission(f"{CHECK}\n    return [i**2 for i in range(n)]"),
    "other error": submission(RIGHT.replace("ValueError", "TypeError")),
    "own error": submission(
        RIGHT.replace("ValueError", "TooSmall"),
        SUM,
        before("squares", "class TooSmall(ValueError):\n    pass"),
    ),
    "tuple": submission(
        RIGHT.replace(
            "return [i**2 for i in range(1, n + 1)]", "return tuple(i**2 for i in range(1, n + 1))"
        )
    ),
    "floats": submission(f"{CHECK}\n    return [float(i)**2 for i in range(1, n+1)]"),
    "numpy array": submission(f"{ARRAY}\n    return np.arange(1, n + 1) ** 2"),
    "numpy to list": submission(f"{ARRAY}\n    return (np.arange(1, n + 1) ** 2).tolist()"),
    "list of numpy": submission(f"{ARRAY}\n    return list(np.arange(1, n + 1) ** 2)"),
    "generator": submission(f"{CHECK}\n    return (i**2 for i in range(1, n + 1))"),
    "recursion": submission(f"{CHECK}\n    return [1] if n == 1 else squares(n - 1) + [n * n]"),
    "no end": submission("return squares(n + 1)"),
    "none": submission("print('thinking')", "pass"),
    "prints": submission("print(n)\n    " + RIGHT, "print('sum')\n    return sum(squares(n))"),
    "prints to stderr": submission("import sys\n    print('x', file=sys.stderr)\n    " + RIGHT),
    "warns": submission("import warnings\n    warnings.warn('old')\n    " + RIGHT),
    "assertion": submission(
        "assert n > 0, 'n is small'\n    return [i**2 for i in range(1, n + 1)]"
    ),
    "syntax": submission("return [i**2 for i in range(1, n + 1)"),
    "deleted test": submission(RIGHT, SUM, deleted("correct_squares")),
    "deleted solution": submission(RIGHT, SUM, deleted("squares")),
    "changed test": submission("return 1", SUM, text("correct_squares", "assert True")),
    "input": submission("n = int(input('n? '))\n    " + RIGHT),
    "counts calls": submission(
        "global calls\n    calls += 1\n    " + RIGHT, SUM, before("squares", "calls = 0")
    ),
    "rebinds later": submission(RIGHT, SUM, before("correct_sum_of_squares", "squares = len")),
    "magic": submission(RIGHT, SUM, before("squares", "%matplotlib inline\n!echo hello")),
    "answers": submission(
        RIGHT,
        SUM,
        text("sum_of_squares_equation", "$x^2$"),
        text("sum_of_squares_application", "print(sum_of_squares(3))"),
    ),
    "one notebook": {k: v for k, v in submission().items() if k != "problem2.ipynb"},
    "bitdiddle": shipped("bitdiddle"),
    "hacker": shipped("hacker"),
}
"""By a name that says what is different; each is another notebook."""
TWICE: Mapping[str, Mapping[str, bytes]] = {
    "two of a test": submission("return [1]", SUM, duplicated("correct_squares", "pass")),
    "two of a solution": submission(RIGHT, SUM, duplicated("squares")),
}
"""Each stops ``nbgrader autograde`` for all who come after it."""
