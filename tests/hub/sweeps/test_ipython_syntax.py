"""Magics are separated from the code of a cell, beside what IPython makes of them."""

from __future__ import annotations

import ast

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from carrel.hub.sweeps.ipython_syntax import parse_cell

CELLS = {
    "no magic": "x = 1\ny = x % 2\n",
    "a line magic": "%matplotlib inline\nx = 1",
    "several": "%load_ext autoreload\n%autoreload 2\nimport os\n!ls -l",
    "inside of a block": "if True:\n    !pip install x\n    y = 2\n",
    "assigned": "files = !ls\nhere = %pwd\nx = 3",
    "a continued command": "!pip install \\\n    numpy\nx = 1",
    "help": "x = 1\nx?\n?x\nprint??",
    "indented": "    x = 1\n    y = 2",
    "modulo over lines": "x = (7\n% 4)",
    "in a text": 'x = """\n%matplotlib\n"""',
}


@pytest.mark.parametrize("case", CELLS)
def test_names_are_those_of_the_code_that_ipython_runs(case: str) -> None:
    theirs = ast.parse(TransformerManager().transform_cell(CELLS[case]))
    ours = parse_cell(CELLS[case])
    assert ours.tree is not None

    def stored(tree: ast.AST) -> set[str]:
        names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
        return {each.id for each in names if isinstance(each.ctx, ast.Store)}

    assert stored(ours.tree) == stored(theirs)
    runs_magic = "get_ipython" in ast.dump(theirs)
    assert bool(ours.magics) is runs_magic


@pytest.mark.parametrize(
    ("source", "magics"),
    [
        ("%matplotlib inline", [("%matplotlib", True)]),
        ("%load_ext autoreload\n%autoreload 2", [("%load_ext", True), ("%autoreload", True)]),
        ("%load_ext tensorboard", [("%load_ext", False)]),
        ("%env A=1", [("%env", True)]),
        ("%env", [("%env", False)]),
        ("%cd {folder}", [("%cd", False)]),
        ("%run other.py", [("%run", False)]),
        ("%timeit f()", [("%timeit", False)]),
        ("!pip install x", [("!pip", False)]),
        ("x?", [("%?", True)]),
        ("%%bash\nls {a}", [("%%bash", False)]),
        ("%%writefile a.py\nx = 1", [("%%writefile", False)]),
        ("%%html\n<b>{x}</b>", [("%%html", True)]),
        ("\n\n%%time\nx = 1", []),
        ("%time x = 1", []),
        ("%%capture\nx = 1", []),
        ("%%capture out\n%%time\n!ls", [("!ls", False)]),
        ("%%capture --no-stderr out\nx = 1", []),
    ],
)
def test_magics_are_harmless_only_if_they_are_known(
    source: str, magics: list[tuple[str, bool]]
) -> None:
    found = parse_cell(source)
    assert found.tree is not None
    assert [(each.shown, each.harmless) for each in found.magics] == magics


def test_code_magics_keep_the_lines_of_their_code() -> None:
    tree = parse_cell("\n%%time\nx = 1\n\ny = 2").tree
    assert tree is not None
    assert [node.lineno for node in tree.body] == [3, 5]
    captured = parse_cell("%%capture out\nx = 1").tree
    assert captured is not None
    assert ast.unparse(captured) == "out = None\nx = 1"


@pytest.mark.parametrize("source", ["x = (", "/f 1 2", ">>> x", "print 1", "x = 1 +", "\0"])
def test_what_python_cannot_parse_has_no_tree(source: str) -> None:
    assert parse_cell(source).tree is None
