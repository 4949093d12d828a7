"""An assignment with hidden tests, and submissions that want its points without the work.

Each of them gets points for a wrong function in plain ``nbgrader autograde``: golden.json has
the proof, made by ``python -m tests.courses.grading.golden``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import nbformat
from nbformat import NotebookNode

from .ps1 import cell_of

_HIDDEN = "### BEGIN HIDDEN TESTS\n{}\n### END HIDDEN TESTS"
WRONG = "def double(n):\n    return 7"


def cell(grade_id: str, source: str, kind: str = "code", **role: object) -> NotebookNode:
    make = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
    flags = {"grade": False, "solution": False, "locked": False, "task": False, **role}
    metadata = {"nbgrader": {"grade_id": grade_id, "schema_version": 3, **flags}}
    return make(source, metadata=metadata)


@cache
def source() -> Mapping[str, bytes]:
    """Return a notebook with a function, tests with hidden and builtin parts, and a code answer."""
    solution = "### BEGIN SOLUTION\n{}\n### END SOLUTION"
    hidden = _HIDDEN.format("assert double(21) == 42\nassert double(-4) == -8, 'negative numbers'")
    cells = [
        cell("double", solution.format("def double(n):\n    return 2 * n"), solution=True),
        cell("test_double", f"assert double(1) == 2\n{hidden}", grade=True, points=3),
        cell(
            "test_all",
            _HIDDEN.format("assert all(double(n) == 2 * n for n in (3, 4))"),
            grade=True,
            points=2,
        ),
        cell("essay", solution.format("done = True"), grade=True, solution=True, points=5),
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    node = nbformat.v4.new_notebook(cells=cells, metadata=kernel)
    return {"secret.ipynb": nbformat.writes(node).encode()}


@cache
def released() -> Mapping[str, bytes]:
    from carrel.courses.releases.student_version import prepare  # noqa: PLC0415 - imports nbgrader's converters

    return prepare("secret", source()).files


def submission(
    function: str, edit: Callable[[NotebookNode], None] | None = None
) -> Mapping[str, bytes]:
    node = nbformat.reads(released()["secret.ipynb"].decode(), as_version=4)
    cell_of(node, "double").source = function
    cell_of(node, "essay").source = "done = 'by me'"
    if edit is not None:
        edit(node)
    return {"secret.ipynb": nbformat.writes(node).encode()}


def _as_a_test(node: NotebookNode) -> None:
    """Return a submission whose manually graded answer claims to be a passing test."""
    cell_of(node, "essay").metadata["nbgrader"]["solution"] = False


_EXPECTED = """
import re
def expected(text, n):
    for call, value in re.findall(r"assert double\\((.*?)\\) == (-?[0-9]+)", text):
        if int(call) == n:
            return int(value)
    return 0
"""

CHEATS: Mapping[str, Mapping[str, bytes]] = {
    "always equal": submission(
        "class Equal:\n    def __eq__(self, other):\n        return True\n"
        "def double(n):\n    return Equal()"
    ),
    "strips assertions": submission(
        f"{WRONG}\nimport ast\n"
        "class NoAssert(ast.NodeTransformer):\n"
        "    def visit_Assert(self, node):\n        return ast.Pass()\n"
        "get_ipython().ast_transformers.append(NoAssert())"
    ),
    "empties cells": submission(
        f"{WRONG}\nget_ipython().input_transformers_post.append(lambda lines: ['pass\\n'])"
    ),
    "patches all": submission(f"{WRONG}\nimport builtins\nbuiltins.all = lambda things: True"),
    "shows a score": submission(
        "import sys\ndef double(n):\n    sys.displayhook(3.0)\n    return 7"
    ),
    "reads the cell": submission(
        f"{_EXPECTED}\ndef double(n):\n    return expected(get_ipython().user_ns['In'][-1], n)"
    ),
    "reads the stack": submission(
        f"{_EXPECTED}\nimport sys\ndef double(n):\n"
        "    constants = sys._getframe(1).f_code.co_consts\n"
        "    class Any(int):\n        def __eq__(self, other):\n"
        "            return any(type(one) is int for one in constants)\n"
        "    return Any()"
    ),
    "reads the disk": submission(
        f"{_EXPECTED}\nimport json, pathlib\n"
        "cells = json.loads(pathlib.Path('secret.ipynb').read_text())['cells']\n"
        "text = '\\n'.join(''.join(cell['source']) for cell in cells)\n"
        "def double(n):\n    return expected(text, n)"
    ),
    "writes the gradebook": submission(
        WRONG + "\nimport sqlite3\n"
        "db = sqlite3.connect('../../../gradebook.db')\n"
        "db.execute('update grade ' + 'set manual_score = 3')\ndb.commit()\ndb.close()"
    ),
    "takes another's": submission(
        "import glob, json\ndef double(n):\n    return 7\n"
        "for path in glob.glob('../../../submitted/honest/*/secret.ipynb'):\n"
        "    exec(''.join(json.load(open(path))['cells'][0]['source']))"
    ),
    "is a test now": submission(WRONG, _as_a_test),
}
"""By what it tries."""
OTHERS: Mapping[str, Mapping[str, bytes]] = {
    "honest": submission("def double(n):\n    return 2 * n"),
    "wrong": submission(WRONG),
    "untouched": released(),
}
