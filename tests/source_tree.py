"""The package as source code: its layers, its modules, and what each module imports."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

LAYERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("errors", ("hub.errors",)),
    ("pure decisions", ("hub.scheduling", "hub.schemas", "images")),
    ("stored values", ("hub.records",)),
    ("signed documents", ("hub.provenance",)),
    ("transitions, comparison", ("hub.comparison", "hub.proofs", "hub.transitions")),
    ("protocols and messages", ("hub.interfaces", "hub.messages")),
    ("ground", ("hub.accounts", "hub.files", "hub.runtime", "hub.simulation")),
    ("one installation", ("hub.attempts", "hub.client", "hub.config", "hub.groups")),
    (
        "pool and past",
        (
            "hub.inventory",
            "hub.jupyterhub",
            "hub.open_links",
            "hub.plugins",
            "hub.usage",
        ),
    ),
    ("store", ("hub.administration", "hub.insight", "hub.store")),
    (
        "admission",
        ("hub.admission", "hub.forecasts", "hub.programs", "hub.secrets", "hub.shadow_order"),
    ),
    ("sweeps, efficiency", ("hub.efficiency", "hub.notifications", "hub.sweeps")),
    ("requests", ("hub.requests", "hub.results", "courses")),
    ("receipts", ("hub.receipts", "hub.transparency")),
    ("gallery", ("hub.gallery",)),
    ("sessions", ("hub.sessions", "hub.workflows", "hub.supervisor", "hub.demo", "extensions")),
    (
        "loop, pages, engines",
        ("hub.controller", "hub.web", "hub.backup", "hub.mcp_server", "spawners"),
    ),
    ("put together", ("hub.app", "hub.cli", "execution")),
)
"""Packages (and the few modules of the root of ``hub``) in layers, lowest first.

A package imports packages of lower layers only, never another one of its own layer. The picture of
the packages shows the names of the layers.
"""
HOLDERS = ("", "hub")
"""Packages that only hold others and import none of our modules."""
OUTSIDE_THE_PACKAGE = frozenset({"tests", "docs", "build", "dist", "node_modules"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One imported module.

    Attributes:
        name: without ``carrel.`` for a module of the package.
        ours: whether it is a module of the package.
        late: inside a function, so that it is imported when that is called.
        typing: for type checkers only.
        absolute: written as ``carrel.…``.
    """

    name: str
    ours: bool
    late: bool
    typing: bool
    absolute: bool = False


@cache
def modules() -> dict[str, Path]:
    """Return the path of each module by its name below ``carrel``; that of the root is empty."""
    found: dict[str, Path] = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[0] in OUTSIDE_THE_PACKAGE or any(part.startswith(".") for part in parts):
            continue
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports(module: str) -> tuple[Import, ...]:
    """Return the imports of a module, those inside functions included."""
    path = modules()[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    return tuple(_imports(tree, package, late=False, typing=False))


def _imports(node: ast.AST, package: str, *, late: bool, typing: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        for name, relative in _targets(node, package):
            head, _, rest = name.partition(".")
            absolute = not relative and head == "carrel"
            yield Import(
                name=rest if absolute else name,
                ours=relative or absolute,
                late=late,
                typing=typing,
                absolute=absolute,
            )
        return
    late = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    for child in ast.iter_child_nodes(node):
        guarded = (
            isinstance(node, ast.If)
            and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
            and child not in node.orelse
        )
        yield from _imports(child, package, late=late, typing=typing or guarded)


def _targets(node: ast.Import | ast.ImportFrom, package: str) -> Iterator[tuple[str, bool]]:
    """Yield the modules that a statement names, and whether they are named relatively."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, False) for alias in node.names)
        return
    if node.level == 0:
        base, prefix = node.module or "", "carrel."
    else:
        parts = package.split(".") if package else []
        parts = parts[: len(parts) - (node.level - 1)]
        base = ".".join([*parts, *filter(None, [node.module])])
        prefix = ""
    for alias in node.names:
        below = f"{base}.{alias.name}".removeprefix(".")
        is_module = below.removeprefix(prefix) in modules()
        yield (below if is_module else base), node.level > 0


def place(module: str) -> str:
    """Return the package in ``LAYERS`` that contains a module; "" for the root and for ``hub``.

    All modules may import these two.
    """
    if module in HOLDERS:
        return ""
    for _, names in LAYERS:
        for name in names:
            if module == name or module.startswith(f"{name}."):
                return name
    pytest.fail(f"{module} is in no layer: give it one in {Path(__file__).name}")


def layer(module: str) -> int:
    """Return the number of a module's layer; holders are below all layers."""
    name = place(module)
    return next((at for at, (_, names) in enumerate(LAYERS) if name in names), -1)


def package(module: str) -> str:
    """Return the package of a module; a module in the root of ``hub`` counts as its own."""
    own = modules()[module].name == "__init__.py"
    holder = module if own else module.rpartition(".")[0]
    return module if holder in HOLDERS else holder


def loaded_with(begin: str) -> set[str]:
    """Return our modules that are imported with this one, their packages included."""
    found: set[str] = set()
    edge = {begin}
    while edge:
        edge |= {
            ".".join(module.split(".")[:depth])
            for module in edge
            for depth in range(module.count(".") + 1)
        }
        found |= edge
        edge = {
            each.name
            for module in edge
            for each in imports(module)
            if each.ours and not each.late and not each.typing
        } - found
    return found


def others_of(module: str) -> set[str]:
    """Return the installed top-level packages that a module imports when it is imported."""
    return {
        each.name.partition(".")[0]
        for each in imports(module)
        if not each.ours and not each.late and not each.typing
    } - sys.stdlib_module_names


def below(prefix: str) -> list[str]:
    """Return the names of a package's modules, itself included."""
    found = [name for name in modules() if name == prefix or name.startswith(f"{prefix}.")]
    assert found, f"There is no module {prefix}: has it moved?"
    return sorted(found)
