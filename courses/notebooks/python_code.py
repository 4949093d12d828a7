"""Parse the Python code of cells, which anybody may have written."""

from __future__ import annotations

import ast


def parse(source: str) -> ast.Module | None:
    """Parse the code of a cell; None for a magic, a mistake, or code nested too deeply."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
