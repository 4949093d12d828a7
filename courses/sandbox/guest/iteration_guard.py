"""Keep a StopIteration of the student's code from ending an iteration of a test.

``map``, ``filter`` and other iterators take a StopIteration that a function raises for their end:
``all(map(check, cases))`` would pass. As in generators (PEP 479) it becomes a RuntimeError.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Final, TypeVar

NAME: Final = "__carrel_guard__"
_ENDS: Final = (StopIteration, StopAsyncIteration)
_END_NAMES: Final = frozenset(kind.__name__ for kind in _ENDS)
_ITERATORS: Final = frozenset(
    (
        *("map", "filter", "iter", "itertools", "accumulate", "dropwhile", "filterfalse"),
        *("groupby", "starmap", "takewhile", "__next__", "__anext__"),
    )
)
_FUNCTIONS: Final = (FunctionType, MethodType, functools._lru_cache_wrapper)

_T = TypeVar("_T")


def end_as_error(error: BaseException) -> RuntimeError:
    """Return the error that a test gets instead of a StopIteration."""
    return RuntimeError(f"your code raised {type(error).__name__}: {error}".removesuffix(": "))


def guard(value: _T) -> _T | Callable[..., object]:
    """Wrap a function; return any other value, such as a class or a generator function."""
    if (
        not isinstance(value, _FUNCTIONS)
        or inspect.isgeneratorfunction(value)
        or inspect.iscoroutinefunction(value)
        or inspect.isasyncgenfunction(value)
    ):
        return value

    @functools.wraps(value)
    def guarded(*arguments: object, **keywords: object) -> object:
        __tracebackhide__ = True  # for IPython
        try:
            return value(*arguments, **keywords)
        except _ENDS as error:
            raise end_as_error(error) from error

    return guarded


class IterationGuard(ast.NodeTransformer):
    """Guards the functions that a test names, where it uses iterators that swallow the exception.

    A test that itself names the exception is left alone.
    """

    def visit_Module(self, node: ast.Module) -> ast.AST:
        names = {
            name
            for each in ast.walk(node)
            for name in (getattr(each, "id", ""), getattr(each, "name", ""))
        }
        if names & _END_NAMES or not names & _ITERATORS:
            return node
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return _guarded(node) if isinstance(node.ctx, ast.Load) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        # ``function.attribute`` needs the function itself.
        if not isinstance(node.value, ast.Name):
            self.generic_visit(node)
        return _guarded(node) if isinstance(node.ctx, ast.Load) else node


def _guarded(node: ast.expr) -> ast.expr:
    function = ast.Name(id=NAME, ctx=ast.Load())
    call = ast.Call(func=function, args=[node], keywords=[])
    return ast.fix_missing_locations(ast.copy_location(call, node))
