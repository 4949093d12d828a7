"""The direction of imports, as the design draws it: lowest layer first, never upward."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# A name stands for the module and everything below it. Modules of one layer may import each
# other as long as there is no circle.
LAYERS = (
    ("images.labels", "hub.errors"),
    (
        "hub.scheduling",
        "hub.config",
        "hub.folders",
        "hub.garbage",
        "hub.site_file",
        "hub.naming",
        "hub.pulse",
        "hub.logs",
    ),
    (
        "hub.simulation",
        "hub.ports",
        "hub.wire",
        "hub.wording",
        "hub.change_words",
        "hub.waiting_words",
        "hub.calendar_words",
        "hub.usage_words",
        "hub.dated_words",
        "hub.mistakes",
    ),
    (
        *(
            "hub.store",
            "hub.accounts",
            "hub.files",
            "hub.homes",
            "hub.home_files",
            "hub.hubapi",
            "hub.client",
        ),
        *("hub.views", "hub.board", "hub.progress", "hub.notebooks", "hub.admission"),
        *(
            "hub.intake",
            "hub.expecting",
            "hub.endings",
            "hub.tokens",
            "hub.archives",
            "hub.listing",
            "hub.showing",
        ),
        *("hub.claims", "hub.changing", "hub.extending", "hub.quotes", "hub.explaining"),
        *("hub.history", "hub.regrouping", "hub.past", "hub.figures", "hub.vitals"),
        "hub.catalogue",
        *("hub.repeating", "hub.typed_parameters", "hub.idling", "hub.planning"),
        *("hub.outputs", "hub.placing"),
        *("hub.administration", "hub.people", "hub.pool_care", "hub.quota_tree", "hub.faults"),
        *("hub.looking", "hub.commands", "hub.actions", "hub.watching", "hub.loop"),
        *("hub.reclaiming", "hub.silence", "hub.budgeting", "hub.budget_views", "hub.agenda"),
        "hub.audited",
    ),
    ("hub.web", "spawners", "extensions", "courses", "images"),
    ("hub.engines", "hub.app", "hub.demo", "hub.demo_course", "hub.grader", "hub.checker"),
    ("hub.supervisor", "hub.backup", "hub.cli", "hub.jupyterhub_config"),
)
# JupyterHub and nbgrader run these by their paths: there is no package to be relative to.
RUN_BY_PATH = ("hub.jupyterhub_config", "extensions.nbgrader.etc.nbgrader_config")
# Packages that only hold others: they import nothing of ours.
HOLDERS = ("", "hub")
# What installs without extras: these modules, and all that they import when they are imported.
CLIENT_SIDE = ("hub.client", "hub.cli")
# The runner lives inside the image of a session, far from the hub.
RUNNER = "spawners.runner"
ONLY_IN_THE_HUB = frozenset({"alembic", "fastapi", "jupyterhub", "sqlalchemy", "uvicorn"})
OUTSIDE_THE_PACKAGE = frozenset({"tests", "docs", "build", "dist", "node_modules"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One imported module: ``name`` is ours without ``carrel.``, or that of somebody else.

    Attributes:
        late: inside a function: made when it is called, not when the module is imported.
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
    """Every module of the package by its name below ``carrel``; the root's is empty."""
    found: dict[str, Path] = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[0] in OUTSIDE_THE_PACKAGE or any(part.startswith(".") for part in parts):
            continue
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports(module: str) -> tuple[Import, ...]:
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
    """The modules that a statement names, and whether they were named relatively."""
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


def layer(module: str) -> int:
    """The number of a module's layer; holders are below everything."""
    if module in HOLDERS:
        return -1
    for number, names in enumerate(LAYERS):
        if any(module == name or module.startswith(f"{name}.") for name in names):
            return number
    pytest.fail(f"{module} is in no layer: give it one in {Path(__file__).name}")


def loaded_with(begin: str) -> set[str]:
    """Our modules that are imported when this one is, their packages included."""
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
    """Top-level names that a module imports when it is imported, ours and Python's left out."""
    return {
        each.name.partition(".")[0]
        for each in imports(module)
        if not each.ours and not each.late and not each.typing
    } - sys.stdlib_module_names


def below(prefix: str) -> list[str]:
    found = [name for name in modules() if name == prefix or name.startswith(f"{prefix}.")]
    assert found, f"There is no module {prefix}: has it moved?"
    return sorted(found)


def test_the_reader_of_imports_resolves_relative_ones() -> None:
    names = {each.name for each in imports("hub.scheduling.lifecycle") if each.ours}
    assert names == {"hub.errors"}
    assert "hub.scheduling.walk" in loaded_with("hub.scheduling.cycle")


def test_imports_never_go_upward() -> None:
    # The package itself names for type checkers what it hands out when it is asked for it.
    upward = {
        (module, each.name)
        for module in modules()
        for each in imports(module)
        if each.ours and layer(each.name) > layer(module) and (module or not each.typing)
    }
    assert not upward


def test_what_is_imported_from_ourselves_exists() -> None:
    missing = {
        (module, each.name)
        for module in modules()
        for each in imports(module)
        if each.ours and each.name not in modules()
    }
    assert not missing


def test_inside_the_package_imports_are_relative() -> None:
    absolute = {
        (module, each.name)
        for module in modules()
        for each in imports(module)
        if each.absolute and module not in RUN_BY_PATH
    }
    assert not absolute


def test_no_imports_go_in_circles() -> None:
    graph = {
        module: {each.name for each in imports(module) if each.ours and not each.typing}
        for module in modules()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_the_hub_finds_engines_by_entry_point_and_never_imports_them() -> None:
    hub = {
        (module, each.name)
        for module in below("hub")
        for each in imports(module)
        if each.ours and each.name.partition(".")[0] == "spawners"
    }
    assert not hub


def test_the_scheduler_core_needs_only_the_standard_library() -> None:
    foreign = {
        (module, each.name)
        for module in below("hub.scheduling")
        for each in imports(module)
        if each.ours and not f"{each.name}.".startswith(("hub.scheduling.", "hub.errors."))
    }
    installed = {
        (module, each.name)
        for module in below("hub.scheduling")
        for each in imports(module)
        if not each.ours and each.name.partition(".")[0] not in sys.stdlib_module_names
    }
    assert foreign | installed == set()


IMPURE = frozenset(
    {"asyncio", "logging", "os", "pathlib", "random", "socket", "subprocess", "threading", "time"}
)


def test_the_scheduler_core_has_no_clock_files_processes_or_chance() -> None:
    impure = {
        (module, each.name)
        for module in below("hub.scheduling")
        for each in imports(module)
        if each.name.partition(".")[0] in IMPURE
    }
    assert not impure


@pytest.mark.parametrize("entry", CLIENT_SIDE)
def test_the_client_side_needs_no_more_than_the_plain_install(entry: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    plain = {requirement.partition(">")[0] for requirement in project["dependencies"]}
    begin = below(entry) if entry == "hub.client" else below(entry)[:1]

    needed = {
        (module, other)
        for first in begin
        for module in loaded_with(first)
        for other in others_of(module)
    }
    assert {(module, other) for module, other in needed if other not in plain} == set()


def test_the_runner_needs_nothing_of_the_hub() -> None:
    needed = {
        (module, other)
        for first in below(RUNNER)
        for module in loaded_with(first)
        for other in others_of(module)
    }
    assert {(module, other) for module, other in needed if other in ONLY_IN_THE_HUB} == set()


def test_the_packages_in_pyproject_are_those_of_the_tree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = project["tool"]["setuptools"]["packages"]
    packages = [
        f"carrel.{name}".removesuffix(".")
        for name, path in modules().items()
        if path.name == "__init__.py"
    ]

    assert sorted(listed) == sorted(packages)
