"""The direction of imports: packages in layers, lowest first, never upward and in no circle."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Packages (and the few modules of the root of ``hub``), lowest layer first. A package imports
# packages of lower layers only, never another one of its own layer. The name of a layer is what
# the picture of the packages says.
LAYERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("errors", ("hub.errors",)),
    ("pure decisions", ("hub.scheduling", "hub.schemas", "images")),
    ("stored values", ("hub.records",)),
    ("transitions", ("hub.transitions",)),
    ("protocols and messages", ("hub.interfaces", "hub.messages")),
    ("ground", ("hub.accounts", "hub.files", "hub.runtime", "hub.simulation")),
    ("one installation", ("hub.attempts", "hub.client", "hub.config", "hub.groups")),
    ("pool and past", ("hub.inventory", "hub.jupyterhub", "hub.plugins", "hub.usage")),
    ("store", ("hub.administration", "hub.insight", "hub.store")),
    ("admission", ("hub.admission",)),
    ("requests", ("hub.requests", "courses")),
    ("sessions", ("hub.sessions", "hub.supervisor", "hub.demo", "extensions")),
    ("loop, pages, engines", ("hub.controller", "hub.web", "hub.backup", "spawners")),
    ("put together", ("hub.app", "hub.cli")),
)
MOST_IN_A_LAYER = 5
MOST_IN_A_PACKAGE = 20
# Schemas have one module per feature, migrations one per change.
LARGE_PACKAGES = frozenset({"hub.store.migrations.versions"})
# JupyterHub and nbgrader run these by their paths: there is no package to be relative to.
RUN_BY_PATH = ("hub.jupyterhub.config", "extensions.nbgrader.etc.nbgrader_config")
# They only hold others, and import nothing of ours.
HOLDERS = ("", "hub")
# No clock, files, processes or chance in the core.
IMPURE = frozenset(
    {"asyncio", "logging", "os", "pathlib", "random", "socket", "subprocess", "threading", "time"}
)
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


def place(module: str) -> str:
    """The package of the table that a module belongs to; "" for the root and for ``hub`` itself.

    Both only hold others: everything may import them, and they import nothing.
    """
    if module in HOLDERS:
        return ""
    for _, names in LAYERS:
        for name in names:
            if module == name or module.startswith(f"{name}."):
                return name
    pytest.fail(f"{module} is in no layer: give it one in {Path(__file__).name}")


def layer(module: str) -> int:
    """The number of a module's layer; holders are below everything."""
    name = place(module)
    return next((at for at, (_, names) in enumerate(LAYERS) if name in names), -1)


def package(module: str) -> str:
    """The folder of a module; the modules in the root of ``hub`` stand for themselves."""
    own = modules()[module].name == "__init__.py"
    holder = module if own else module.rpartition(".")[0]
    return module if holder in HOLDERS else holder


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
    names = {each.name for each in imports("hub.scheduling.model.states") if each.ours}
    assert names == {"hub.errors"}
    assert "hub.scheduling.cycle.dispatch" in loaded_with("hub.scheduling.cycle.decision")


def test_a_layer_has_at_most_five_packages_and_a_package_at_most_twenty_modules() -> None:
    assert max(len(names) for _, names in LAYERS) <= MOST_IN_A_LAYER
    sizes = Counter(package(module) for module, path in modules().items() if path.stem[:2] != "__")
    large = {name: size for name, size in sizes.items() if size > MOST_IN_A_PACKAGE}
    assert set(large) <= LARGE_PACKAGES, large


def test_imports_go_to_lower_layers_or_stay_in_their_package() -> None:
    # The root names for type checkers what it hands out when it is asked for it.
    upward = {
        (module, each.name)
        for module in modules()
        for each in imports(module)
        if each.ours and (module not in HOLDERS or not each.typing)
        if place(each.name) != place(module) and layer(each.name) >= layer(module)
    }
    assert not upward


def test_what_is_imported_from_ourselves_exists() -> None:
    missing = {(module, each.name) for module in modules() for each in imports(module) if each.ours}
    assert {(module, name) for module, name in missing if name not in modules()} == set()


def test_no_package_imports_another_in_a_circle() -> None:
    graph: dict[str, set[str]] = {}
    for module in modules():
        for each in imports(module):
            if each.ours and not each.typing and package(each.name) != package(module):
                graph.setdefault(package(module), set()).add(package(each.name))
    _refuse_circles(graph)


def test_the_store_knows_no_sentences_for_people() -> None:
    loaded = {each for module in below("hub.store") for each in loaded_with(module)}
    assert not {each for each in loaded if each.startswith("hub.messages")}


def test_inside_the_package_imports_are_relative() -> None:
    absolute = {
        (module, each.name)
        for module in modules()
        for each in imports(module)
        if each.absolute and module not in RUN_BY_PATH
    }
    assert not absolute


def test_no_module_imports_another_in_a_circle() -> None:
    _refuse_circles(
        {
            module: {each.name for each in imports(module) if each.ours and not each.typing}
            for module in modules()
        }
    )


def _refuse_circles(graph: Mapping[str, Set[str]]) -> None:
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
