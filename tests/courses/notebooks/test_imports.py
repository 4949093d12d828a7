"""The imports of an assignment are found in its cells, and loaded before a sandbox opens."""

from __future__ import annotations

import shutil

import pytest

from carrel.courses.notebooks.imports import ALWAYS, imports_of
from carrel.courses.sandbox.interface import CellStatus, CellStep, SandboxLimits, SandboxSettings
from carrel.courses.sandbox.local.engine import LocalSandboxes

from ...requirements import need


def found(*cells: str, files: tuple[str, ...] = ()) -> set[str]:
    return set(imports_of(cells, files)) - set(ALWAYS)


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        ("import numpy as np, csv", {"numpy", "csv"}),
        ("import matplotlib.pyplot as plt", {"matplotlib.pyplot"}),
        ("from sklearn import datasets", {"sklearn", "sklearn.datasets"}),
        ("from math import *", {"math"}),
        ("def f():\n    import zlib", {"zlib"}),
        ("%matplotlib inline\n!ls\nimport numpy", {"numpy"}),
        ("from . import helper", set()),
        ("this is no Python", set()),
    ],
)
def test_the_imports_of_a_cell_are_found(cell: str, names: set[str]) -> None:
    assert found(cell) == names


def test_a_module_of_the_assignment_is_not_that_of_the_environment() -> None:
    cells = "import helper, numpy", "from parts.one import two"
    assert found(*cells, files=("ps1.ipynb", "helper.py", "parts/one.py")) == {"numpy"}


def test_sandboxes_open_without_missing_or_failing_modules() -> None:
    need("bwrap", shutil.which("bwrap"), "bubblewrap is not installed")
    # idlelib's idle starts a program as it is imported; in a sandbox there is no display.
    names = ("no_such_module", "idlelib.idle", "wave")
    engine = LocalSandboxes(SandboxSettings(imports=names))
    try:
        sandbox = engine.open(SandboxLimits())
        step = CellStep(cell_id="0", source="import sys; 'wave' in sys.modules")
        (seen,) = sandbox.run([step])
        sandbox.close()
    finally:
        engine.close()
    assert seen.status is CellStatus.OK
    assert "True" in str(seen.outputs)
