"""The architecture: layers of packages, directions of imports, and rules for the tests."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping, Set
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType

import pytest

from .code_rules import (
    code_of_tests,
    foreign_private_names,
    imported_tests,
    started_with_own_folder,
)
from .source_tree import (
    HOLDERS,
    LAYERS,
    ROOT,
    below,
    imports,
    layer,
    loaded_with,
    modules,
    others_of,
    package,
    place,
)

MOST_IN_A_LAYER = 5
MOST_IN_A_PACKAGE = 20
# Schemas have one module per feature, migrations one per change.
LARGE_PACKAGES = frozenset({"hub.store.migrations.versions"})
# JupyterHub, nbgrader and Jupyter run these by path: relative imports do not work in them.
RUN_BY_PATH = (
    "hub.jupyterhub.config",
    "extensions.nbgrader.etc.nbgrader_config",
    "extensions.notebook_jobs.etc.jupyter_jupyter_scheduler_config",
)
# Modules of the standard library that the scheduler core must not import.
IMPURE = frozenset(
    {"asyncio", "logging", "os", "pathlib", "random", "socket", "subprocess", "threading", "time"}
)
PURE_FOR_SWEEPS = frozenset(
    {"", "hub", "hub.admission", "hub.admission.parameters", "hub.errors", "hub.records"}
    | {"hub.records.json_value"}
)
# The plain install, without extras, must be enough to import these.
CLIENT_SIDE = ("hub.client", "hub.cli")
IMPORTED_AS = MappingProxyType({"pyyaml": "yaml"})
# The runner runs inside the image of a session, where the hub is not installed.
RUNNER = "spawners.runner"
ONLY_IN_THE_HUB = frozenset({"alembic", "fastapi", "jupyterhub", "sqlalchemy", "uvicorn"})


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
    # For type checkers, the root names the modules that it imports lazily.
    upward = {
        (module, each.name)
        for module in modules()
        for each in imports(module)
        if each.ours and (module not in HOLDERS or not each.typing)
        if place(each.name) != place(module) and layer(each.name) >= layer(module)
    }
    assert not upward


def test_imported_modules_of_the_package_exist() -> None:
    missing = {(module, each.name) for module in modules() for each in imports(module) if each.ours}
    assert {(module, name) for module, name in missing if name not in modules()} == set()


def test_packages_have_no_circular_imports() -> None:
    graph: dict[str, set[str]] = {}
    for module in modules():
        for each in imports(module):
            if each.ours and not each.typing and package(each.name) != package(module):
                graph.setdefault(package(module), set()).add(package(each.name))
    _refuse_circles(graph)


def test_the_store_does_not_import_messages() -> None:
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


def test_modules_have_no_circular_imports() -> None:
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


def test_the_hub_does_not_import_engines() -> None:
    hub = {
        (module, each.name)
        for module in below("hub")
        for each in imports(module)
        if each.ours and each.name.partition(".")[0] == "spawners"
    }
    assert not hub


def test_the_scheduler_core_is_pure() -> None:
    """It imports nothing installed, and nothing of the standard library with side effects."""
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
        if not each.ours and each.name.partition(".")[0] not in sys.stdlib_module_names - IMPURE
    }
    assert foreign | installed == set()


def test_the_analysis_of_sweeps_is_pure() -> None:
    """It reads no file and asks no service; its random numbers come from a recorded seed."""
    loaded = {each for module in below("hub.sweeps") for each in loaded_with(module)}
    others = {each for each in loaded if not each.startswith(("hub.sweeps", "hub.schemas"))}
    assert others <= PURE_FOR_SWEEPS | loaded_with("hub.messages.units")  # amounts as text
    installed = {
        (module, each.name)
        for module in below("hub.sweeps")
        for each in imports(module)
        if not each.ours
        and each.name.partition(".")[0] not in sys.stdlib_module_names - (IMPURE - {"random"})
    }
    assert not installed


@pytest.mark.parametrize("entry", CLIENT_SIDE)
def test_the_client_needs_only_the_plain_install(entry: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = (requirement.partition(">")[0] for requirement in project["dependencies"])
    plain = {IMPORTED_AS.get(name, name) for name in names}
    begin = below(entry) if entry == "hub.client" else below(entry)[:1]

    needed = {
        (module, other)
        for first in begin
        for module in loaded_with(first)
        for other in others_of(module)
    }
    assert {(module, other) for module, other in needed if other not in plain} == set()


def test_the_runner_needs_no_packages_of_the_hub() -> None:
    needed = {
        (module, other)
        for first in below(RUNNER)
        for module in loaded_with(first)
        for other in others_of(module)
    }
    assert {(module, other) for module, other in needed if other in ONLY_IN_THE_HUB} == set()


def test_pyproject_lists_all_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = project["tool"]["setuptools"]["packages"]
    packages = [
        f"carrel.{name}".removesuffix(".")
        for name, path in modules().items()
        if path.name == "__init__.py"
    ]

    assert sorted(listed) == sorted(packages)


def test_a_started_python_imports_nothing_from_the_folder_it_starts_in() -> None:
    """A file such as ``random.py`` in a home, or where ``carrel up`` is called, is not imported."""
    found = {
        name: lines
        for name, path in modules().items()
        if (lines := started_with_own_folder(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert not found, "add -P (or -I) to the command"


def test_no_module_imports_a_test_module() -> None:
    found = {name: imported for name, tree in code_of_tests() if (imported := imported_tests(tree))}
    assert not found, "move what they share into a module of its own"


def test_tests_use_public_names() -> None:
    found = {name: used for name, tree in code_of_tests() if (used := foreign_private_names(tree))}
    assert not found, "use a public name, or test the outcome"


def test_the_rules_for_test_code_find_violations() -> None:
    assert imported_tests(ast.parse("from .e2e.test_desk import at")) == ["test_desk"]
    assert imported_tests(ast.parse("import tests.test_docs")) == ["test_docs"]
    code = """
from carrel.hub.app import _service
loop._decide()
monkeypatch.setattr("carrel.hub.app._SECONDS", 1.0)
class Fake:
    def __init__(self):
        self._own = 1
made._own = made.__dict__
"""
    assert foreign_private_names(ast.parse(code)) == [
        "line 2: _service",
        "line 3: _decide",
        "line 4: _SECONDS",
    ]


def test_the_rule_for_started_pythons_finds_violations() -> None:
    code = """
run([sys.executable, "-m", "carrel"])
run((sys.executable, "-P", "-m", "carrel"))
COMMAND = ("python", "-c", CODE)
COMMAND = f"exec python -m carrel {FOLDER}"
"""
    assert started_with_own_folder(ast.parse(code)) == ["line 2", "line 4", "line 5"]
