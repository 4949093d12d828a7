"""The syntax tree of a function, as far as its source is what runs."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType


@lru_cache(maxsize=256)
def source_of(code: CodeType) -> ast.FunctionDef | ast.Lambda | None:
    """Return the syntax tree of a function; None where it cannot be known.

    The source is compiled again and compared: a file may have changed since it was imported.
    """
    try:
        text = "".join(inspect.findsource(code)[0])
        found = _functions(text).get((code.co_name, code.co_firstlineno), [])
    except (OSError, TypeError, SyntaxError, ValueError, RecursionError):
        return None
    if len(found) != 1:
        return None
    node, statement = found[0]
    # IPython compiles each statement of a cell by itself, which calls imported names otherwise.
    made = [
        _compiled(text),
        compile(ast.Module([statement], []), "<source>", "exec", dont_inherit=True),
    ]
    same = any(_same_code(each, code) for module in made for each in _codes(module))
    return node if same else None


_Function = ast.FunctionDef | ast.Lambda


@lru_cache(maxsize=8)
def _functions(text: str) -> dict[tuple[str, int], list[tuple[_Function, ast.stmt]]]:
    """Return the functions of a source by name and first line, each with its statement."""
    found: dict[tuple[str, int], list[tuple[_Function, ast.stmt]]] = {}
    for statement in ast.parse(text).body:
        for node in ast.walk(statement):
            if isinstance(node, ast.FunctionDef):
                line = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                found.setdefault((node.name, line), []).append((node, statement))
            elif isinstance(node, ast.Lambda):
                found.setdefault(("<lambda>", node.lineno), []).append((node, statement))
    return found


@lru_cache(maxsize=8)
def _compiled(text: str) -> CodeType:
    return compile(text, "<source>", "exec", dont_inherit=True)


def _codes(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)


def _same_code(one: CodeType, two: CodeType) -> bool:
    constants = zip(one.co_consts, two.co_consts, strict=False)
    return (
        one.co_code == two.co_code
        and one.co_name == two.co_name
        and one.co_firstlineno == two.co_firstlineno
        and one.co_names == two.co_names
        and one.co_varnames == two.co_varnames
        and one.co_freevars == two.co_freevars
        and len(one.co_consts) == len(two.co_consts)
        and all(
            _same_code(a, b)
            if isinstance(a, CodeType) and isinstance(b, CodeType)
            else repr(a) == repr(b)
            for a, b in constants
        )
    )
