"""Detect changes by a student's code to functions that tests rely on.

It runs in the same process, and so finds accidental and simple changes only. Tests that must not
be deceived run in a sandbox of their own.
"""

from __future__ import annotations

import ast
import builtins
import sys
from types import ModuleType
from typing import Final

from IPython.core.interactiveshell import InteractiveShell

from . import shell as own_shell

MODULES: Final = (
    *("builtins", "math", "operator", "numbers", "unittest.case", "numpy", "numpy.testing"),
    *("numpy.linalg", "pandas", "pandas.testing", "IPython.display"),
)
_MOST: Final = 10
_builtin_names: Final = frozenset(vars(builtins))
_OF_THE_SESSION: Final = frozenset({"_", "display", "get_ipython", "exit", "quit"})
_OF_THIS_SHELL: Final = ("run_cell", "run_code", "run_ast_nodes", "showtraceback")


class TamperCheck:
    """Compares functions and names with those before the first cell."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._before = self._look()
        self._own = self._shadowing()

    def changes(self, test: str = "") -> tuple[str, ...]:
        """What has changed, in words; also builtin names in the test that were redefined."""
        now = self._look()
        found = [where for where, value in self._before.items() if now.get(where) is not value]
        used = _names_used(test)
        found += [
            f"the name {name}, which the test uses"
            for name, value in self._shadowing().items()
            if name in used and self._own.get(name) is not value
        ]
        if sys.gettrace() is not None or sys.getprofile() is not None:
            found.append("a trace function that sees each step")
        return tuple(found[:_MOST])

    def _look(self) -> dict[str, object]:
        """The checked values by description. They are kept, so that no address is reused."""
        found: dict[str, object] = {}
        for name in MODULES:
            module = sys.modules.get(name)
            if isinstance(module, ModuleType):
                found.update(_members(module, name))
        for owner in (InteractiveShell, own_shell.SandboxShell):
            for name, value in vars(owner).items():
                if callable(value):
                    found[f"{name} of the shell"] = value
        for name in _OF_THIS_SHELL:
            found[f"{name} of this shell"] = vars(self._shell).get(name)
        found["the kind of the shell"] = type(self._shell)
        found["how cells are changed before they run"] = bool(self._shell.ast_transformers)
        manager = self._shell.input_transformer_manager
        steps = [*manager.cleanup_transforms, *manager.line_transforms]
        found.update(
            (f"step {place} of how cells are read", one) for place, one in enumerate(steps)
        )
        found["how cells are read"] = len(steps) + len(self._shell.input_transformers_post)
        return found

    def _shadowing(self) -> dict[str, object]:
        """Redefined builtins. A number called ``sum`` breaks a test; a function may pass it."""
        space = self._shell.user_ns
        return {
            name: space[name]
            for name in sorted(_builtin_names.intersection(space) - _OF_THE_SESSION)
            if callable(space[name])
        }


def _members(module: ModuleType, name: str) -> dict[str, object]:
    before = "the builtin " if name == "builtins" else f"{name}."
    skipped = _OF_THE_SESSION if name == "builtins" else frozenset()
    return {
        f"{before}{key}": value
        for key, value in vars(module).items()
        if callable(value) and key not in skipped
    }


def _names_used(source: str) -> set[str]:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return set()
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
