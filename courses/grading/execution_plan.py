"""What is run of a submission: the student's cells first, then the tests, each in its place.

The test cells run twice: in the student's phase in the form that the student saw, so that later
cells find the kernel as in nbgrader; and for the points in full, after all of the student's
cells have run, in the state that the kernel had at that place.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nbformat import NotebookNode

from ..sandbox.interface import CellStep
from .answer_key import KeyCell, NotebookKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A graded cell that is run.

    Attributes:
        index: of the cell in the sanitized notebook, and so the name of its snapshot.
        source: with the hidden part, for the student's kernel.
        examined: the same for the examiner; empty where it has to run in the student's kernel.
    """

    __test__ = False  # pytest: not one of its own

    index: int
    grade_id: str
    source: str
    examined: str

    @property
    def mark(self) -> str:
        return str(self.index)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionPlan:
    steps: tuple[CellStep, ...]
    tests: tuple[Test, ...]


def plan(
    node: NotebookNode, key: NotebookKey, *, only: frozenset[str] | None = None
) -> ExecutionPlan:
    """What to run of a sanitized notebook; ``only`` these tests are given points."""
    steps, tests = [], []
    for index, cell in enumerate(node.cells):
        if not _runs(cell):
            continue
        known = key.by_id.get(cell.metadata.get("nbgrader", {}).get("grade_id", ""))
        scored = known is not None and known.is_test and (only is None or known.grade_id in only)
        source = known.visible if known is not None and known.is_test else cell.source
        steps.append(CellStep(cell_id=str(index), source=source, mark=scored))
        if scored:
            assert known is not None
            tests.append(_test(index, known, key))
    return ExecutionPlan(steps=tuple(steps), tests=tuple(tests))


def _runs(cell: NotebookNode) -> bool:
    """As nbclient decides it."""
    tags = cell.metadata.get("tags", ())
    return cell.cell_type == "code" and cell.source.strip() != "" and "skip-execution" not in tags


def _test(index: int, cell: KeyCell, key: NotebookKey) -> Test:
    apart = cell.grade_id in key.apart
    return Test(
        index=index,
        grade_id=cell.grade_id,
        source=cell.source,
        examined=examined(key, cell) if apart else "",
    )


def examined(key: NotebookKey, test: KeyCell) -> str:
    """The test for a kernel without the student's code; empty if it cannot be one.

    Before it comes what the hand-out itself defines: its imports, and of locked cells the
    functions, classes and plain values. Everything else is asked for.
    """
    try:
        tree = ast.parse(test.source)
        before = list(_given(key, test))
    except SyntaxError:  # a magic, or a test with a mistake: IPython is to say which
        return ""
    body = [*_anew(key.taught), *before, *_Passing(key.taught).of(tree)]
    return ast.unparse(ast.fix_missing_locations(ast.Module(body=body, type_ignores=[])))


def _given(key: NotebookKey, test: KeyCell) -> Iterator[ast.stmt]:
    for cell in key.cells[: key.cells.index(test)]:
        if cell.cell_type != "code" or cell.is_test:
            continue
        try:
            body = ast.parse(cell.visible).body
        except SyntaxError:
            continue
        for statement in body:
            if isinstance(statement, ast.Import | ast.ImportFrom) or (
                cell.locked and _is_fixed(statement)
            ):
                yield statement


def _is_fixed(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return True
    if not isinstance(statement, ast.Assign):
        return False
    try:
        ast.literal_eval(statement.value)
    except ValueError:
        return False
    return True


def _anew(taught: Iterable[str]) -> Iterator[ast.stmt]:
    """Names of builtins that the course defines anew are the student's."""
    names = sorted(name for name in taught if hasattr(builtins, name))
    if names:
        yield from ast.parse(f"__taught__({', '.join(map(repr, names))})").body


class _Passing:
    """Setting and deleting a name that is taught happens in the student's kernel, too.

    Names of the test's own stay here: they may hold what is expected.
    """

    def __init__(self, taught: frozenset[str]) -> None:
        self._taught = taught

    def of(self, tree: ast.Module) -> list[ast.stmt]:
        return self._statements(tree.body)

    def _statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [new for statement in body for new in self._passed(statement)]

    def _passed(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement
            return
        if isinstance(statement, ast.Delete):
            yield from (new for target in statement.targets for new in self._deleted(target))
            return
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(statement, name, None)
            if isinstance(inner, list):
                setattr(statement, name, self._statements(inner))
        for handler in getattr(statement, "handlers", ()):
            handler.body = self._statements(handler.body)
        yield statement
        targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
        for target in targets:
            if isinstance(target, ast.Name) and target.id in self._taught:
                yield from ast.parse(f"__bind__({target.id!r}, {target.id})").body

    def _deleted(self, target: ast.expr) -> Iterator[ast.stmt]:
        if isinstance(target, ast.Name) and target.id in self._taught:
            yield from ast.parse(f"__unbind__(globals(), {target.id!r})").body
        else:
            yield ast.Delete(targets=[target])
