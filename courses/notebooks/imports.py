"""Find the modules that an assignment imports, before any student's code runs.

Sandboxes import them in advance, which saves seconds for each submission and each isolated test.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath
from typing import Final

from .python_code import parse

ALWAYS: Final = ("IPython.display",)
_MAGIC: Final = re.compile(r"^\s*[%!?].*$", re.MULTILINE)


def imports_of(cells: Iterable[str], files: Collection[str]) -> tuple[str, ...]:
    """The imported modules of a teacher's cells, by name; some may not be installed.

    Args:
        files: of the assignment. Modules with their names are the assignment's own, and are left
            out.
    """
    own = {PurePosixPath(name).parts[0].removesuffix(".py") for name in files}
    found = {name for cell in cells for name in _of(cell)}
    kept = (name for name in found if name.partition(".")[0] not in own)
    return tuple(sorted({*ALWAYS, *kept}))


def _of(cell: str) -> Iterator[str]:
    tree = parse(_MAGIC.sub("", cell))
    if tree is None:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            # Perhaps a module itself: ``from sklearn import datasets``.
            yield from (f"{node.module}.{alias.name}" for alias in node.names if alias.name != "*")
