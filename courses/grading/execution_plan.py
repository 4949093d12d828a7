"""Plan what to run of a submission: the student's cells, then the tests.

Test cells run twice. With the student's cells they run in their visible form, so that later cells
find the kernel as in nbgrader. After all cells of the student they run in full, for points, in the
state that the kernel had at their position.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nbformat import NotebookNode

from ..notebooks.python_code import parse
from ..sandbox.interface import CellStep
from .answer_key import KeyCell, NotebookKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A graded cell that is run.

    Attributes:
        index: of the cell in the sanitized notebook, and the name of its snapshot.
        source: with the hidden part, for the student's kernel.
        isolated_source: the same for an isolated test; empty if it must run in the student's
            kernel.
    """

    __test__ = False  # for pytest: not a test class

    index: int
    grade_id: str
    source: str
    isolated_source: str

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
    """Plan a sanitized notebook. With ``only``, only these tests run for points."""
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
    """Whether nbclient would run the cell."""
    tags = cell.metadata.get("tags", ())
    return cell.cell_type == "code" and cell.source.strip() != "" and "skip-execution" not in tags


def _test(index: int, cell: KeyCell, key: NotebookKey) -> Test:
    apart = cell.grade_id in key.apart
    return Test(
        index=index,
        grade_id=cell.grade_id,
        source=cell.source,
        isolated_source=isolated_source(key, cell) if apart else "",
    )


def isolated_source(key: NotebookKey, test: KeyCell) -> str:
    """The test for a kernel without the student's code; empty if it cannot run there.

    It starts with the definitions of the released version: its imports, and the functions, classes
    and plain values of locked cells. All other names are asked of the student's kernel.
    """
    tree = parse(test.source)
    if tree is None:  # a magic or a mistake: IPython reports which
        return ""
    before = list(_definitions(key, test))
    body = [*_redefined_builtins(key.taught), *before, *_NameForwarding(key.taught).of(tree)]
    return ast.unparse(ast.fix_missing_locations(ast.Module(body=body, type_ignores=[])))


def _definitions(key: NotebookKey, test: KeyCell) -> Iterator[ast.stmt]:
    for cell in key.cells[: key.cells.index(test)]:
        if cell.cell_type != "code" or cell.is_test:
            continue
        tree = parse(cell.visible)
        for statement in tree.body if tree is not None else ():
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


def _redefined_builtins(taught: Iterable[str]) -> Iterator[ast.stmt]:
    """Use the student's definitions of builtin names that the course redefines."""
    names = sorted(name for name in taught if hasattr(builtins, name))
    if names:
        yield from ast.parse(f"__taught__({', '.join(map(repr, names))})").body


class _NameForwarding:
    """Repeat in the student's kernel where a test sets or deletes a taught name.

    The test's own names stay here: they may hold expected values.
    """

    def __init__(self, taught: frozenset[str]) -> None:
        self._taught = taught

    def of(self, tree: ast.Module) -> list[ast.stmt]:
        return self._statements(tree.body)

    def _statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [new for statement in body for new in self._forwarded(statement)]

    def _forwarded(self, statement: ast.stmt) -> Iterator[ast.stmt]:
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
