"""The student version is that of nbgrader, and mistakes are reported in sentences."""

from __future__ import annotations

import ast
from collections.abc import Callable

import nbformat
import pytest
from nbformat import NotebookNode

from carrel.courses.grading.answer_key import NotebookKey
from carrel.courses.grading.execution_plan import isolated_source, plan
from carrel.courses.grading.sanitizer import CellRepair, sanitize
from carrel.courses.releases.student_version import bound_names, prepare
from carrel.hub.errors import InvalidInput

from ..grading import cheats, ps1


def edited(edit: Callable[[NotebookNode], object]) -> dict[str, bytes]:
    node = nbformat.reads(cheats.source()["secret.ipynb"].decode(), as_version=4)
    edit(node)
    return {"secret.ipynb": nbformat.writes(node).encode()}


def secret() -> NotebookKey:
    return prepare("secret", cheats.source()).key.notebooks[0]


def test_the_student_version_is_that_of_nbgrader() -> None:
    for name in ("problem1.ipynb", "problem2.ipynb"):
        ours = nbformat.reads(prepare("ps1", ps1.source()).files[name].decode(), as_version=4)
        theirs = nbformat.read(ps1.GUIDE / "release/ps1" / name, as_version=4)
        # The guide's has a header of its own before.
        count = len(ours.cells)
        assert [cell.source for cell in ours.cells] == [
            cell.source for cell in theirs.cells[-count:]
        ]


def test_hidden_parts_are_in_the_key_and_not_in_the_student_version() -> None:
    prepared = prepare(
        "secret", {**cheats.source(), "a/.ipynb_checkpoints/x": b"", "data.csv": b"1"}
    )
    assert sorted(prepared.files) == ["data.csv", "secret.ipynb"]
    assert b"double(21)" not in prepared.files["secret.ipynb"]
    assert b"return 2 * n" not in prepared.files["secret.ipynb"]
    test = secret().by_id["test_double"]
    assert "assert double(21) == 42" in test.source
    assert (test.points, test.is_test, test.has_hidden_part) == (3.0, True, True)


def test_cells_keep_their_ids_from_release_to_release() -> None:
    def ids() -> list[str]:
        node = nbformat.reads(prepare("ps1", ps1.source()).files["problem1.ipynb"], as_version=4)
        return [cell.id for cell in node.cells]

    assert ids() == ids()
    assert len(set(ids())) == len(ids())


def _role(cell: str, /, **changes: object) -> Callable[[NotebookNode], object]:
    return lambda node: ps1.cell_of(node, cell).metadata["nbgrader"].update(changes)


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (lambda node: node.metadata.pop("kernelspec"), "names no kernel"),
        (lambda node: node.metadata.kernelspec.update(language="R"), "only Python"),
        (_role("essay", grade_id="double"), "is also that of cell 1"),
        (_role("essay", grade_id=""), "has a role but no id"),
        (_role("essay", points=-1), "has points -1"),
        (_role("essay", points="many"), "has points 'many'"),
        (_role("essay", schema_version=1), "nbgrader update"),
        (lambda node: ps1.cell_of(node, "double").metadata.clear(), "but no nbgrader role"),
        (
            lambda node: ps1.cell_of(node, "double").update(source="### BEGIN SOLUTION\nx = 1"),
            "no end solution statement found",
        ),
        (
            lambda node: ps1.cell_of(node, "test_all").update(source="### AUTOTEST double(2)"),
            "uses AUTOTEST",
        ),
    ],
)
def test_mistakes_of_a_release_are_reported(
    edit: Callable[[NotebookNode], object], sentence: str
) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        prepare("secret", edited(edit))


def test_an_assignment_without_a_notebook_is_refused() -> None:
    with pytest.raises(InvalidInput, match="has no notebook"):
        prepare("empty", {"data.csv": b"1"})
    with pytest.raises(InvalidInput, match="is not a notebook: it is not JSON"):
        prepare("broken", {"x.ipynb": b"{"})


@pytest.mark.parametrize("flag", ["grade", "solution", "locked", "task"])
@pytest.mark.parametrize("value", [True, False])
def test_a_changed_role_is_restored(flag: str, *, value: bool) -> None:
    def edit(node: NotebookNode) -> None:
        for cell in node.cells:
            cell.metadata["nbgrader"][flag] = value
            cell.metadata["nbgrader"]["points"] = 1000

    data = cheats.submission("def double(n):\n    return 1", edit)["secret.ipynb"]
    sheet = sanitize(data, secret())
    for cell, known in zip(sheet.node.cells, secret().cells, strict=True):
        role = cell.metadata["nbgrader"]
        found = (role["grade"], role["solution"], role["locked"], role["task"])
        assert found == (known.grade, known.solution, known.locked, known.task)
        assert role.get("points", 0) == known.points


def test_missing_duplicated_and_changed_cells_are_found() -> None:
    key = prepare("ps1", ps1.source()).key.notebooks[0]
    data = ps1.submission(
        ps1.RIGHT,
        ps1.SUM,
        ps1.deleted("correct_squares"),
        ps1.duplicated("squares"),
        ps1.text("squares_invalid_input", "pass"),
    )["problem1.ipynb"]
    sheet = sanitize(data, key)
    assert sheet.has("correct_squares", CellRepair.MISSING)
    assert sheet.has("squares", CellRepair.DUPLICATED)
    assert sheet.has("squares_invalid_input", CellRepair.CHANGED)
    assert "ValueError" in ps1.cell_of(sheet.node, "squares_invalid_input").source


def test_no_hidden_part_runs_with_the_students_cells() -> None:
    key = secret()
    sheet = sanitize(cheats.OTHERS["honest"]["secret.ipynb"], key)
    planned = plan(sheet.node, key)
    assert [step.mark for step in planned.steps] == [False, True, True, False]
    assert "21" not in "".join(step.source for step in planned.steps)
    assert [test.grade_id for test in planned.tests] == ["test_double", "test_all"]


def test_setting_and_deleting_a_taught_name_reaches_the_students_kernel() -> None:
    key = prepare("ps1", ps1.source()).key.notebooks[0]
    source = isolated_source(key, key.by_id["sum_of_squares_uses_squares"])
    assert "__unbind__(globals(), 'squares')" in source
    assert "__bind__('squares', squares)" in source
    assert "__bind__('orig_squares'" not in source


def test_names_inside_a_class_are_not_taught() -> None:
    def edit(node: NotebookNode) -> None:
        code = "if True:\n    class Grid:\n        def map(self):\n            inner = 1\n"
        node.cells.insert(0, nbformat.v4.new_code_cell(code))

    taught = prepare("secret", edited(edit)).key.notebooks[0].taught
    assert "Grid" in taught
    assert not {"map", "inner"} & taught


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("rows = [id for id in [1] if (last := id)]", {"rows", "last"}),
        ("pairs = {a: b for a, b in zip(x, y)}", {"pairs"}),
        ("try:\n    pass\nexcept ValueError as error:\n    found = 1", {"error", "found"}),
        (
            "match x:\n    case [first, *others]: pass\n    case {'a': 1, **rest} as whole: pass",
            {"first", "others", "rest", "whole"},
        ),
    ],
    ids=["comprehension", "dictionary", "except", "match"],
)
def test_names_are_bound_as_python_binds_them(code: str, expected: set[str]) -> None:
    assert set(bound_names(ast.parse(code).body[0])) == expected
