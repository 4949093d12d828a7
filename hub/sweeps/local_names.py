"""Tell the global names of code from those that are local to a function, class or comprehension."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .syntax_tree import child_nodes

_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSION = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(slots=True)
class LocalNames:
    """The names that the code of one scope binds, without those of inner scopes.

    Attributes:
        bound: names that are local.
        declared_global: names that a ``global`` statement makes global.
        imports: the dotted name that each imported local name stands for.
    """

    bound: set[str] = field(default_factory=set)
    declared_global: set[str] = field(default_factory=set)
    imports: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Scopes:
    """The scopes around the current code, the innermost last; none for the code of a cell.

    Attributes:
        inner: the local names of each, with the name of the class for the body of one.
    """

    inner: list[tuple[LocalNames, str]] = field(default_factory=list)

    @contextmanager
    def inside(self, node: ast.AST) -> Iterator[None]:
        """Enter the scope of a function, lambda expression, class or comprehension."""
        self.inner.append((local_names(node), getattr(node, "name", "") if _is_class(node) else ""))
        try:
            yield
        finally:
            self.inner.pop()

    @property
    def in_class(self) -> bool:
        """Whether the current code is directly in the body of a class."""
        return bool(self.inner) and bool(self.inner[-1][1])

    def resolved(self, name: str, *, loaded: bool) -> tuple[str, str]:
        """Return the global name, or an empty one with the module of a local import.

        Args:
            loaded: the name is read, not bound.
        """
        around = next((each for _, each in reversed(self.inner) if each), "")
        if around and name.startswith("__") and not name.endswith("__"):
            name = f"_{around.lstrip('_')}{name}"
        for depth, (names, class_name) in enumerate(reversed(self.inner)):
            if name in names.declared_global:
                return name, ""
            if class_name:
                # A class may read a global name before it binds its own; inner functions do not
                # see the names of a class.
                if depth == 0 and not loaded and name in names.bound:
                    return "", ""
                continue
            if name in names.bound:
                return "", names.imports.get(name, "")
        return name, ""


def _is_class(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef)


def local_names(scope: ast.AST) -> LocalNames:
    """Return the local names of a function, lambda expression, class or comprehension."""
    found = LocalNames()
    outside: set[str] = set()
    if isinstance(scope, _COMPREHENSION):
        # A name that := binds in a comprehension belongs to the scope around it.
        for each in scope.generators:
            _collect([each.target], found, outside)
        return found
    if isinstance(scope, (*_FUNCTION, ast.Lambda)):
        arguments = scope.args
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        found.bound |= {each.arg for each in named}
        found.bound |= {each.arg for each in (arguments.vararg, arguments.kwarg) if each}
    body = getattr(scope, "body", [])
    _collect(body if isinstance(body, list) else [body], found, outside)
    found.bound -= outside | found.declared_global
    return found


def _collect(nodes: Iterable[ast.AST | None], found: LocalNames, outside: set[str]) -> None:
    for node in nodes:
        if node is not None:
            _collect_one(node, found, outside)


def _collect_one(node: ast.AST, found: LocalNames, outside: set[str]) -> None:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            found.bound.add(name)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            found.bound.add(node.name)
            inner = node.args
            _collect([*node.decorator_list, *inner.defaults, *inner.kw_defaults], found, outside)
        case ast.ClassDef():
            found.bound.add(node.name)
            _collect([*node.decorator_list, *node.bases, *node.keywords], found, outside)
        case ast.Lambda():
            _collect([*node.args.defaults, *node.args.kw_defaults], found, outside)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            _collect_walrus(node, found)
        case ast.AnnAssign(target=ast.Name(), value=None, simple=0):
            pass  # (name): int binds nothing
        case ast.Global(names=names):
            found.declared_global |= set(names)
        case ast.Nonlocal(names=names):
            outside |= set(names)
        case ast.Import() | ast.ImportFrom():
            for name, module in imported_names(node):
                found.bound.add(name)
                found.imports[name] = module
        case _:
            if captured := _captured(node):
                found.bound.add(captured)
            _collect(child_nodes(node), found, outside)


def _captured(node: ast.AST) -> str | None:
    """Return the name that an except clause or a pattern binds."""
    match node:
        case ast.ExceptHandler(name=name) | ast.MatchAs(name=name) | ast.MatchStar(name=name):
            return name
        case ast.MatchMapping(rest=name):
            return name
        case _:
            return None


def imported_names(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """Yield the names that an import binds, with the dotted names that they stand for."""
    if isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        yield from ((each.asname or each.name, f"{module}.{each.name}") for each in node.names)
        return
    for each in node.names:
        root = each.name.partition(".")[0]
        yield (each.asname, each.name) if each.asname else (root, root)


def _collect_walrus(node: ast.AST, found: LocalNames) -> None:
    """Add the names that := binds inside a comprehension, not inside inner functions."""
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, ast.NamedExpr):
        found.bound.add(node.target.id)
    for child in child_nodes(node):
        _collect_walrus(child, found)
