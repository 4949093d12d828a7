"""Make the student version and the answer key from a teacher's nbgrader source.

The steps are the preprocessors of ``nbgrader generate_assignment``, in its order and without its
database. Mistakes that would make it fail are reported first, in sentences.
"""

from __future__ import annotations

import ast
import fnmatch
import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from nbformat import NotebookNode
from nbgrader.nbgraderformat import (
    MetadataValidator,
    SchemaTooNewError,
    SchemaTooOldError,
    ValidationError,
)
from nbgrader.preprocessors import (
    CheckCellMetadata,
    ClearHiddenTests,
    ClearMarkScheme,
    ClearOutput,
    ClearSolutions,
    ComputeChecksums,
    LockCells,
)

from ...hub.attempts.notebook_format import read_notebook
from ...hub.errors import InvalidInput
from ..grading.answer_key import AssignmentKey, KeyCell, NotebookKey
from ..notebooks import ipynb
from ..notebooks.imports import imports_of
from ..notebooks.python_code import parse

IGNORED = (".ipynb_checkpoints", "*.pyc", "__pycache__", ".pytest_cache")
"""Names of files and folders that nbgrader leaves out of a release."""
_BEFORE_THE_KEY = (LockCells, ClearSolutions, ClearOutput, CheckCellMetadata, ComputeChecksums)
_AFTER_THE_KEY = (ClearHiddenTests, ClearMarkScheme, ComputeChecksums, CheckCellMetadata)
_VERSION = MetadataValidator.schema_version


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The parts of a release.

    Attributes:
        files: what students get, by relative path.
        key: for grading; stays on the trusted side.
        masters: the notebooks of the key with hidden tests and without solutions, as nbgrader
            records them in its gradebook.
        imports: modules that the solution and the tests import.
        warnings: sentences for the teacher about probable mistakes.
    """

    files: Mapping[str, bytes]
    key: AssignmentKey
    masters: Mapping[str, NotebookNode]
    imports: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def prepare(assignment: str, source: Mapping[str, bytes]) -> Prepared:
    """Strip solutions and hidden tests, and keep the key.

    Raises:
        InvalidInput: one sentence for each mistake.
    """
    kept = {path: data for path, data in sorted(source.items()) if not _is_ignored(path)}
    names = [path for path in kept if "/" not in path and path.endswith(".ipynb")]
    if not names:
        raise InvalidInput(
            f"The assignment {assignment!r} has no notebook.",
            accepted="At least one .ipynb file in the assignment's folder.",
        )
    read = {name: read_notebook(name, kept[name]) for name in names}
    nodes = {name: each.node for name, each in read.items()}
    problems = [said for name, node in nodes.items() for said in _problems(name, node)]
    if problems:
        raise InvalidInput("\n".join(problems))
    files = dict(kept)
    keys: list[NotebookKey] = []
    masters: dict[str, NotebookNode] = {}
    warnings = [
        f"{name} was repaired: {' '.join(each.repairs)}"
        for name, each in read.items()
        if each.repairs
    ]
    for name, node in nodes.items():
        master, release = _master_and_release(name, node)
        stem = name.removesuffix(".ipynb")
        keys.append(_key(stem, node, master, release))
        masters[stem] = master
        files[name] = ipynb.written(release)
        warnings += _warnings(name, keys[-1])
    key = AssignmentKey(assignment=assignment, notebooks=tuple(keys))
    code = [cell.source for node in nodes.values() for cell in node.cells if _is_code(cell)]
    return Prepared(
        files=files,
        key=key,
        masters=masters,
        imports=imports_of(code, files),
        warnings=tuple(warnings),
    )


def key_of_visible(prepared: Prepared, checked: AssignmentKey) -> AssignmentKey:
    """The key for a student's own check: visible tests, isolated as in ``checked``."""
    visible = prepare(checked.assignment, prepared.files).key
    notebooks = tuple(
        replace(seen, apart=known.apart, taught=known.taught)
        for seen, known in zip(visible.notebooks, checked.notebooks, strict=True)
    )
    return replace(visible, notebooks=notebooks)


def _is_ignored(path: str) -> bool:
    return any(
        fnmatch.fnmatch(part, pattern) for part in PurePosixPath(path).parts for pattern in IGNORED
    )


def _is_code(cell: NotebookNode) -> bool:
    return bool(cell.cell_type == "code")


def _problems(name: str, node: NotebookNode) -> Iterator[str]:
    """The mistakes for which this notebook could not be released or graded."""
    kernel = node.metadata.get("kernelspec")
    if not kernel or not kernel.get("name"):
        yield f"{name} names no kernel: open it once with a Python kernel and save it."
    elif kernel.get("language", "python") != "python":
        yield f"{name} is written in {kernel['language']}; only Python notebooks can be graded."
    seen: dict[str, int] = {}
    for number, cell in enumerate(node.cells, start=1):
        role = cell.metadata.get("nbgrader") or {}
        where = f"cell {number} of {name}"
        if role and role.get("schema_version") != _VERSION:
            yield (
                f"The nbgrader metadata of {where} are of version {role.get('schema_version', 0)};"
                f" run `nbgrader update` to bring them to version {_VERSION}."
            )
            continue
        if any(role.get(flag) for flag in ("grade", "solution", "locked", "task")):
            yield from _problems_of_role(where, cell, role, seen, number)
        elif "BEGIN SOLUTION" in cell.source or "BEGIN HIDDEN TESTS" in cell.source:
            yield f"The {where} has a solution or hidden tests but no nbgrader role: set one."
        if cell.cell_type == "code" and "### AUTOTEST" in cell.source.replace("HASHED ", ""):
            yield f"The {where} uses AUTOTEST, which runs code at release: write the test out."


def _problems_of_role(
    where: str, cell: NotebookNode, role: Mapping[str, object], seen: dict[str, int], number: int
) -> Iterator[str]:
    grade_id = role.get("grade_id")
    if not isinstance(grade_id, str) or not grade_id:
        yield f"The {where} has a role but no id: give it one in nbgrader's toolbar."
        return
    if grade_id in seen:
        yield f"The id {grade_id!r} of {where} is also that of cell {seen[grade_id]}: change one."
    seen.setdefault(grade_id, number)
    if role.get("grade") or role.get("task"):
        points = role.get("points")
        if isinstance(points, bool) or not isinstance(points, int | float) or points < 0:
            yield f"The {where} ({grade_id!r}) has points {points!r}: give a number, 0 or more."
    if cell.cell_type == "markdown" and role.get("grade") and not role.get("solution"):
        yield f"The {where} ({grade_id!r}) is text and graded: make it a manually graded answer."


def _master_and_release(name: str, node: NotebookNode) -> tuple[NotebookNode, NotebookNode]:
    """The notebook without solutions: with hidden tests, and without."""
    try:
        master = _apply(_BEFORE_THE_KEY, node)
        return master, _apply(_AFTER_THE_KEY, master)
    except (RuntimeError, ValidationError, SchemaTooOldError, SchemaTooNewError) as error:
        # nbgrader's messages name nested or unclosed regions and wrong roles.
        raise InvalidInput(f"{name} cannot be released: {error}") from error


def _apply(steps: Sequence[type], node: NotebookNode) -> NotebookNode:
    copy = deepcopy(node)
    resources: dict[str, object] = {}
    for step in steps:
        copy, resources = step().preprocess(copy, resources)
    return copy


def _key(
    name: str, source: NotebookNode, master: NotebookNode, release: NotebookNode
) -> NotebookKey:
    cells = tuple(
        _key_cell(full, seen) for full, seen in zip(master.cells, release.cells, strict=True)
    )
    return NotebookKey(
        name=name,
        cells=cells,
        kernelspec=json.dumps(master.metadata.get("kernelspec", {})),
        taught=frozenset(_taught(source)),
    )


def _key_cell(full: NotebookNode, visible: NotebookNode) -> KeyCell:
    role = full.metadata.get("nbgrader") or {}
    has_role = any(role.get(flag) for flag in ("grade", "solution", "locked", "task"))
    graded = role.get("grade") or role.get("task")
    solution = bool(role.get("solution"))
    return KeyCell(
        grade_id=role["grade_id"] if has_role else "",
        cell_type=full.cell_type,
        source=full.source,
        visible=visible.source,
        grade=bool(role.get("grade")),
        solution=solution,
        task=bool(role.get("task")),
        # nbgrader.utils.is_locked: a test is locked whatever its metadata say.
        locked=not solution and bool(role.get("grade") or role.get("locked")),
        points=float(role["points"]) if graded else 0.0,
        checksum=str(role.get("checksum") or ""),
    )


def _taught(source: NotebookNode) -> Iterator[str]:
    """Names that the teacher's cells bind at their top level, without the tests."""
    for cell in source.cells:
        role = cell.metadata.get("nbgrader") or {}
        if cell.cell_type != "code" or (role.get("grade") and not role.get("solution")):
            continue
        tree = parse(cell.source)
        if tree is None:
            continue  # magics; a name bound beside one counts as the student's own
        for statement in tree.body:
            yield from bound_names(statement)


def bound_names(statement: ast.stmt) -> Iterator[str]:
    """The names that one statement binds in its own scope, without those in its functions."""
    remaining: list[ast.AST] = [statement]
    while remaining:
        node = remaining.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
            continue
        if isinstance(node, ast.comprehension):
            remaining += [node.iter, *node.ifs]  # its target belongs to a scope of its own
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name
        elif isinstance(node, ast.MatchMapping) and node.rest:
            yield node.rest
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)
        remaining += ast.iter_child_nodes(node)


def _warnings(name: str, key: NotebookKey) -> Iterator[str]:
    if not key.gradable:
        yield f"{name} has no cell with points: nothing in it will be graded."
    for cell in key.tests:
        if cell.points == 0:
            yield f"The test {cell.grade_id!r} of {name} gives 0 points."
