"""Find violations of rules for code.

For test code: imported test modules, and private names in use. For the product: started Python
processes that import from the folder in which they start.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from .source_tree import ROOT

FOREIGN_PRIVATE = {
    "_handle_custom_msg": "ipywidgets calls it for a message of a browser; nothing public does",
    "_replace": "public in named tuples; the underscore only keeps it apart from fields",
    "_repr_html_": "IPython's protocol for rich output",
}
"""Names with an underscore, of other projects, that tests may use, each with its reason."""


def code_of_tests() -> Iterator[tuple[str, ast.Module]]:
    """Yield the path and the syntax tree of each module below ``tests``."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        yield name, ast.parse(path.read_text(encoding="utf-8"), filename=name)


def imported_tests(tree: ast.Module) -> list[str]:
    """Return the names of imported modules that pytest collects."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            names = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
            found += [part for name in names for part in name.split(".")]
    # Not each such name is a module: test functions may be shared, as those of a contract are.
    return [name for name in found if name in _test_modules()]


@cache
def _test_modules() -> frozenset[str]:
    return frozenset(path.stem for path in (ROOT / "tests").rglob("test_*.py"))


def foreign_private_names(tree: ast.Module) -> list[str]:
    """Return private names that a module uses and does not define itself."""
    own = set(FOREIGN_PRIVATE)
    used: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                own.add(node.name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                own.add(name)
            # ``self`` may also be of a class that inherits from one of the product.
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                own.add(name)
            case ast.Attribute(attr=name):
                used.append((node.lineno, name))
            case ast.ImportFrom(names=names):
                used += [(node.lineno, alias.name) for alias in names]
            case ast.Call(func=ast.Attribute(attr="setattr" | "delattr"), args=args):
                # monkeypatch.setattr(place, "_name", …) or setattr("package.module._name", …)
                used += [
                    (node.lineno, arg.value.rpartition(".")[2])
                    for arg in args
                    if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
                ]
    return [
        f"line {line}: {name}"
        for line, name in sorted(used)
        if name.startswith("_") and not name.startswith("__") and name not in own
    ]


_PYTHONS = ("sys.executable", "'python'", "'python3'")
_IN_SHELL = re.compile(r"exec python3? -[mc]\b")


def started_with_own_folder(tree: ast.Module) -> list[str]:
    """Return the lines of commands that start Python with ``-m`` or ``-c`` and no isolation."""
    found: list[int] = []
    for node in ast.walk(tree):
        match node:
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                words = [ast.unparse(element) for element in elements]
                if any(
                    program in _PYTHONS and option in {"'-m'", "'-c'"}
                    for program, option in pairwise(words)
                ):
                    found.append(node.lineno)
            case ast.Constant(value=str(text)) if _IN_SHELL.search(text):
                found.append(node.lineno)
    return [f"line {line}" for line in sorted(found)]
