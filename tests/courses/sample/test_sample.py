"""The sample course: solutions get every point, empty hand-ins none, typical mistakes lose some."""

from __future__ import annotations

import ast
import json
import re
import resource
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from nbformat import NotebookNode
from nbgrader.nbgraderformat import MetadataValidator
from nbgrader.preprocessors import LockCells
from nbgrader.utils import is_grade, is_solution, is_task

from .unit_notebooks import (
    ARRAYS,
    BATCHES,
    DIGITS,
    JAX,
    PLAIN,
    RELEASED,
    SLOPES,
    SOURCE,
    STRIPPED,
    TREES,
    UNITS,
    Mistake,
    graded,
    graded_cells,
    made,
    unit,
)

MOST_CPU_SECONDS = 30
MODULES = {
    *("carrel", "importlib", "math", "matplotlib", "numpy", "os", "pandas", "random", "sklearn"),
    "time",
}
MORE_MODULES = {JAX: {"jax", "multiprocessing", "traceback", "warnings"}, TREES: {"torch"}}


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_is_a_clean_source_notebook(name: str) -> None:
    path = SOURCE / name / f"{name}.ipynb"
    raw = json.loads(path.read_text())
    notebook = unit(name)
    nbformat.validate(notebook)
    MetadataValidator().validate_nb(notebook)
    assert (raw["nbformat"], raw["nbformat_minor"]) == (4, 5)
    ids = [cell.get("id") for cell in raw["cells"]]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    for cell in raw["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
    assert notebook.metadata.kernelspec.name == "python3"


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_needs_no_more_than_its_packages_and_no_network(name: str) -> None:
    asked = set()
    for cell in unit(name).cells:
        if cell.cell_type == "code":
            for node in ast.walk(ast.parse(cell.source)):
                if isinstance(node, ast.Import):
                    asked |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    asked.add(str(node.module).partition(".")[0])
    assert asked <= MODULES | MORE_MODULES.get(name, set())


@pytest.mark.parametrize("name", UNITS)
def test_the_student_version_shows_no_solution_no_hidden_test_and_no_marks(name: str) -> None:
    notebook = made(name, RELEASED)
    text = nbformat.writes(notebook)
    for word in ("BEGIN SOLUTION", "HIDDEN TESTS", "MARK SCHEME", "For whoever grades"):
        assert word not in text
    for cell in notebook.cells:
        if cell.cell_type == "code" and is_solution(cell):
            assert "raise NotImplementedError()" in cell.source


@pytest.mark.parametrize("name", PLAIN)
def test_the_solution_gets_every_point_in_time(name: str, tmp_path: Path) -> None:
    before = _cpu_seconds()
    notebook = made(name, (LockCells,))
    points = graded(notebook, tmp_path)
    assert {cell: given for cell, (given, most) in points.items() if given != most} == {}
    assert _cpu_seconds() - before < MOST_CPU_SECONDS
    said = {cell.id: cell.get("outputs") for cell in notebook.cells if cell.cell_type == "code"}
    assert [cell for cell, outputs in said.items() for each in outputs if "ename" in each] == []
    assert "Carrel" in said["receipt"][0].text
    assert notebook.cells[-1].id == "receipt"


@pytest.mark.parametrize("name", PLAIN)
def test_an_unchanged_submission_gets_no_point_in_any_test(name: str) -> None:
    points = points_without_a_kernel(made(name, STRIPPED))
    assert {cell for cell, given in points.items() if given} == set()
    assert len(points) == len(graded_cells(unit(name)))


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_the_course_has_every_form_of_grading() -> None:
    cells = [cell for name in UNITS for cell in unit(name).cells]
    assert any(is_task(cell) for cell in cells), "a task"
    assert any(is_grade(cell) and is_solution(cell) for cell in cells), "an answer in words"
    assert any("HIDDEN TESTS" in cell.source for cell in cells)
    assert any(_is_partial(cell) for cell in cells if cell.cell_type == "code" and is_grade(cell))


def _is_partial(cell: NotebookNode) -> bool:
    return isinstance(ast.parse(cell.source).body[-1], ast.Expr)


@pytest.mark.parametrize("name", UNITS)
def test_the_table_at_the_top_adds_up(name: str) -> None:
    notebook = unit(name)
    title = notebook.cells[0].source
    rows = re.findall(r"^\| \d [^|]*\| (\d+) \| (\d+) \|$", title, flags=re.MULTILINE)
    (minutes,) = re.findall(r"about (\d+) minutes", title)
    points = sum(cell.metadata.get("nbgrader", {}).get("points", 0) for cell in notebook.cells)
    assert sum(int(row[0]) for row in rows) == int(minutes)
    assert sum(int(row[1]) for row in rows) == points
    assert 45 <= int(minutes) <= 90


MISTAKES = [
    Mistake(ARRAYS, "brightness", "axis=(1, 2)", "axis=(0, 1)", 0),
    Mistake(ARRAYS, "distances", ".sum(axis=2)", ".sum(axis=1)", 0),
    Mistake(ARRAYS, "counts", "n * k + k * m + n * m", "n * k + k * m", 0),
    Mistake(ARRAYS, "counts", "return 2 * n, 2 * n * itemsize", "return 2 * n, 16 * n", 0),
    Mistake(ARRAYS, "stored-error", "np.where(size == 0, 1.0, size)", "size", 0),
    Mistake(ARRAYS, "roofline", "np.minimum(machine", "min(machine", 0),
    Mistake(ARRAYS, "roofline", "traffic < ridge", "traffic <= ridge", 0),
    Mistake(ARRAYS, "worth-moving", "traffic / link + ", "", 0),
    Mistake(ARRAYS, "worth-moving", "return there <", "return True or there <", 0),
    Mistake(DIGITS, "softmax", " - scores.max(axis=1, keepdims=True)", "", 0),
    Mistake(DIGITS, "softmax", "scores.max(axis=1, keepdims=True)", "scores.max()", 0),
    Mistake(DIGITS, "cross-entropy", "np.maximum(right, 1e-12)", "right", 0),
    Mistake(DIGITS, "gradients", ") / len(x)", ")", 0),
    Mistake(DIGITS, "train", "epochs=30", "epochs=0", 0),
    Mistake(
        DIGITS, "confusion", "np.add.at(table, (meant, read), 1)", "table[meant, read] += 1", 0
    ),
    Mistake(DIGITS, "backward", " * (hidden > 0)", "", 2),
    Mistake(SLOPES, "numeric-slopes", "at | {name: number - step}", "at", 0),
    Mistake(SLOPES, "multiply", "(a, b.data), (b, a.data)", "(a, a.data), (b, b.data)", 0),
    Mistake(SLOPES, "operations", "exponent * a.data ** (exponent - 1)", "2 * a.data", 3),
    Mistake(SLOPES, "order", "elif id(value) not in seen", "else", 0),
    Mistake(SLOPES, "backward", "parent.grad +=", "parent.grad =", 1),
    Mistake(SLOPES, "backward", "value.grad = 0.0", "pass", 4),
    Mistake(SLOPES, "worst-difference", " / max(", " + 0 * max(", 0),
    Mistake(SLOPES, "fit", "rate * at_a.grad", "0.05 * at_a.grad", 3),
    Mistake(BATCHES, "batches", "min(start + size, n)", "start + size", 0),
    Mistake(BATCHES, "best-batch", 'device["memory_items"])', "10**9)", 0),
    Mistake(BATCHES, "shards", "size + (number < more)", "size", 0),
    Mistake(BATCHES, "average", "count / total", "1 / len(counts)", 0),
    Mistake(BATCHES, "average", " if count]", "]", 0),
    Mistake(BATCHES, "train", "average(gradients, counts)", "np.mean(gradients, axis=0)", 0),
    Mistake(BATCHES, "scaling", "gradient_bytes, link) / devices", "gradient_bytes, link)", 3),
    Mistake(BATCHES, "device-seconds", 'min(lease["released_at"], now)', 'lease["released_at"]', 0),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy warns for some of them
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_typical_mistake_loses_points(mistake: Mistake) -> None:
    notebook = unit(mistake.unit)
    (solution,) = (cell for cell in notebook.cells if cell.id == mistake.exercise)
    assert mistake.right in solution.source
    solution.source = solution.source.replace(mistake.right, mistake.wrong)
    test = f"test-{mistake.exercise}"
    assert points_without_a_kernel(notebook, until=test)[test] == mistake.left


def points_without_a_kernel(notebook: NotebookNode, until: str = "") -> dict[str, float]:
    """Return the points of each test (or of one) after running the cells in order."""
    names: dict[str, object] = {"__name__": "student"}
    points: dict[str, float] = {}
    for cell in notebook.cells:
        if cell.cell_type != "code" or cell.id.endswith("-shown") or cell.id == "measured":
            continue
        is_test = is_grade(cell)
        if is_test and until not in ("", cell.id):
            continue
        try:
            value = _value_of(cell.source, names)
        except Exception:
            value = 0.0
        if is_test:
            points[cell.id] = cell.metadata.nbgrader.points if value is None else value
        if cell.id == until:
            break
    return points


def _value_of(source: str, names: dict[str, object]) -> float | None:
    """Run a cell; return the value of its last line if it is a number, as for partial credit."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)  # noqa: S102 - our own cells
    if not isinstance(last, ast.Expr):
        return None
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307
    return None if value is None else float(value)


class StandInTorch:
    """The part of PyTorch that unit 4 uses, with a simulated device."""

    def __init__(self, *, available: bool) -> None:
        self.waited = 0
        self.cuda = SimpleNamespace(is_available=lambda: available, synchronize=self._wait)

    def tensor(self, values: object, *, device: str) -> object:
        assert device == "cuda"
        return values

    def _wait(self) -> None:
        self.waited += 1


@pytest.mark.parametrize(
    ("lent", "torch", "said"),
    [
        ("", None, "No device is lent to this notebook: it computes on the CPU."),
        ("Simulated GPU 0 (simulated)", True, "Simulated devices compute nothing"),
        ("NVIDIA H200 #0", False, "PyTorch does not see it: what follows is measured on the CPU."),
        ("NVIDIA H200 #0", None, "PyTorch does not see it: what follows is measured on the CPU."),
        ("NVIDIA H200 #0", True, "What follows is measured on the first of them."),
    ],
)
def test_the_last_unit_says_where_it_computes_and_uses_a_device_that_is_lent(
    lent: str, torch: bool | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = None if torch is None else StandInTorch(available=torch)
    monkeypatch.setitem(sys.modules, "torch", stand_in)  # None: it cannot be imported
    monkeypatch.setenv("CARREL_DEVICES", lent)
    names: dict[str, object] = {}
    for cell in unit(BATCHES).cells:
        if cell.id in {"imports", "where"}:
            exec(cell.source, names)  # noqa: S102 - our own cells
        elif cell.id == "measured":
            exec(cell.source.replace("(1, 4, 16, 64, 256, 1024)", "(1, 4)"), names)  # noqa: S102
    assert said in names["where"]()  # type: ignore[operator]
    used = stand_in is not None and stand_in.waited > 0
    assert used == (lent.startswith("NVIDIA") and torch is True)
