"""Which modules the work on an assignment will import: known before any student's code runs.

A cage that has them already costs milliseconds; one that does not imports them anew, and so does
each test that runs apart.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath
from typing import Final

ALWAYS: Final = ("IPython.display",)
_MAGIC: Final = re.compile(r"^\s*[%!?].*$", re.MULTILINE)


def imports_of(cells: Iterable[str], files: Collection[str]) -> tuple[str, ...]:
    """By name, of the code of a teacher's cells; names that nobody has are among them.

    Args:
        files: of the assignment: what they are named after is the assignment's own, and is not
            what the environment has by that name.
    """
    own = {PurePosixPath(name).parts[0].removesuffix(".py") for name in files}
    found = {name for cell in cells for name in _of(cell)}
    kept = (name for name in found if name.partition(".")[0] not in own)
    return tuple(sorted({*ALWAYS, *kept}))


def _of(cell: str) -> Iterator[str]:
    try:
        tree = ast.parse(_MAGIC.sub("", cell))
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            # Perhaps a module itself: ``from sklearn import datasets``.
            yield from (f"{node.module}.{alias.name}" for alias in node.names if alias.name != "*")
