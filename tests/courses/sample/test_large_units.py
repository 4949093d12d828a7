"""The units that need large packages: each exercise is graded in a kernel, and in the sandbox.

Where the packages are installed, the solution gets every point and an unchanged submission none in
every run of the tests; the others are slow.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from carrel.courses.releases.solution_check import check_release
from carrel.courses.releases.student_version import prepare
from carrel.courses.sandbox.interface import SandboxEngine, SandboxSettings
from carrel.courses.sandbox.local import bubblewrap
from carrel.courses.sandbox.local.engine import create

from ... import jax_packages, torch_packages
from ...extra_packages import ExtraPackages
from .unit_notebooks import JAX, SOURCE, STRIPPED, TREES, LockCells, Mistake, graded, made, unit


class LargeUnit(NamedTuple):
    name: str
    packages: ExtraPackages
    points: float


LARGE = [
    LargeUnit(JAX, jax_packages.PACKAGES, 29.0),
    LargeUnit(TREES, torch_packages.PACKAGES, 24.0),
]
MISTAKES = [
    Mistake(JAX, "deposit", ".add(amounts)", ".set(balances[places] + amounts)", 0),
    Mistake(JAX, "slopes", "jax.value_and_grad(loss)", "jax.value_and_grad(loss, 1)", 2),
    Mistake(JAX, "step", "jax.jit(one_step)", "one_step", 0),
    Mistake(JAX, "each", "in_axes=(None, 0, 0)", "in_axes=(None, 0, None)", 0),
    Mistake(JAX, "written", "count,", "2 * count,", 0),
    Mistake(JAX, "split", '("rows")', "()", 0),
    Mistake(TREES, "steps", "1 + max(height", "max(height", 1),
    Mistake(TREES, "cells", "keep_left.sigmoid() * c_left", "keep_left * c_left", 2),
    Mistake(TREES, "encode-plainly", "encode_plainly(tree[0]", "encode_plainly(tree[1]", 0),
    Mistake(TREES, "encode", "h, _ in", "_, h in", 0),
    Mistake(TREES, "train", "range(steps)", "range(25)", 3),
]
UNROLLED = """
    weights, losses = {"a": jnp.float32(1.0), "b": jnp.float32(0.0)}, []
    for _ in range(steps):
        before, gradient = slopes(weights, times, sizes)
        losses.append(before)
        weights = {name: weights[name] - rate * gradient[name] for name in weights}
    return weights, jnp.stack(losses)
"""


@pytest.fixture(params=LARGE, ids=lambda large: large.name)
def large(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> LargeUnit:
    found: LargeUnit = request.param
    with_packages(found.packages, monkeypatch)
    return found


def with_packages(packages: ExtraPackages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let kernels and sandboxes find the packages, or skip the test."""
    packages.need()
    folder = str(packages.folder)
    monkeypatch.setenv("PYTHONPATH", folder)
    begin = f"import sys; sys.path.append({folder!r}); {bubblewrap.START_CODE}"
    monkeypatch.setattr(bubblewrap, "START_CODE", begin)


@contextmanager
def sandboxes(imports: tuple[str, ...]) -> Iterator[SandboxEngine]:
    engine = create(SandboxSettings(imports=imports))
    yield engine
    engine.close()


@pytest.mark.parametrize("name", [JAX, TREES])
def test_a_session_without_the_image_is_told_which_one_it_needs(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = unit(name).cells
    image = {JAX: "jax", TREES: "torch"}[name]
    assert f"the image *{image}*" in cells[0].source
    code = next(cell.source for cell in cells if cell.cell_type == "code")
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match=f"start a session with the image {image}"):
        exec(code, {})  # noqa: S102  # a cell of ours


def test_the_solution_gets_every_point(large: LargeUnit, tmp_path: Path) -> None:
    notebook = made(large.name, (LockCells,))
    points = graded(notebook, tmp_path)
    assert {cell: given for cell, (given, most) in points.items() if given != most} == {}
    assert sum(most for _, most in points.values()) == large.points
    outputs = [each for cell in notebook.cells for each in cell.get("outputs", ())]
    assert [each for each in outputs if "ename" in each] == []
    assert notebook.cells[-1].id == "receipt"


def test_an_unchanged_submission_gets_no_point(large: LargeUnit, tmp_path: Path) -> None:
    points = graded(made(large.name, STRIPPED), tmp_path)
    assert {cell for cell, (given, _) in points.items() if given} == set()


@pytest.mark.slow
def test_a_large_unit_may_be_released(large: LargeUnit) -> None:
    source = {f"{large.name}.ipynb": (SOURCE / large.name / f"{large.name}.ipynb").read_bytes()}
    prepared = prepare(large.name, source)
    assert prepared.warnings == ()
    with sandboxes(prepared.imports) as engine:
        found = check_release(engine, prepared, source)
    assert found.problems == ()
    assert found.in_kernel == (), "every test looks at plain data only"


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.exercise)
def test_a_typical_mistake_in_a_large_unit_loses_points(
    mistake: Mistake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (packages,) = (each.packages for each in LARGE if each.name == mistake.unit)
    with_packages(packages, monkeypatch)
    assert points_with(mistake, tmp_path) == mistake.left


def points_with(mistake: Mistake, folder: Path) -> float:
    """Return the points of the exercise, executed without the tests of the others."""
    notebook = copy.deepcopy(unit(mistake.unit))
    (solution,) = (cell for cell in notebook.cells if cell.id == mistake.exercise)
    assert mistake.right in solution.source
    solution.source = solution.source.replace(mistake.right, mistake.wrong)
    test = f"test-{mistake.exercise}"
    notebook.cells = [
        cell
        for cell in notebook.cells
        if cell.id == test or (not cell.id.startswith("test-") and not cell.id.endswith("-shown"))
    ]
    return graded(notebook, folder)[test][0]


@pytest.mark.slow
def test_the_recursive_model_runs_in_batches_of_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_packages(torch_packages.PACKAGES, monkeypatch)
    notebook = unit(TREES)
    notebook.cells = [cell for cell in notebook.cells if not cell.id.startswith("test-")]
    graded(notebook, tmp_path)
    (measured,) = (cell for cell in notebook.cells if cell.id == "measured")
    said = "".join(each.text for each in measured.outputs)
    assert "batches of nodes" in said


@pytest.mark.slow
def test_a_loop_that_is_unrolled_loses_a_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_packages(jax_packages.PACKAGES, monkeypatch)
    (fit,) = (cell for cell in unit(JAX).cells if cell.id == "fit")
    solution = fit.source.partition("### BEGIN SOLUTION\n")[2]
    assert points_with(Mistake(JAX, "fit", solution, UNROLLED, 4), tmp_path) == 4


@pytest.mark.slow
def test_a_kernel_in_which_jax_has_computed_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_packages(jax_packages.PACKAGES, monkeypatch)
    notebook = copy.deepcopy(unit(JAX))
    last = next(number for number, cell in enumerate(notebook.cells) if cell.id == "test-deposit")
    notebook.cells = notebook.cells[: last + 1]
    notebook.cells[last - 1].source += "\nprint(deposit(jnp.ones(2), jnp.array([0]), 1.0))\n"
    assert graded(notebook, tmp_path)["test-deposit"][0] == 0
    (problem,) = (each for each in notebook.cells[last].outputs if "ename" in each)
    assert "JAX has computed in this kernel itself" in problem.evalue
