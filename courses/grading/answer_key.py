"""The answer key of an assignment: what the teacher's notebooks say of each cell.

It is made at release from the source notebooks. The process that runs student code never gets it,
only the visible form of each cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyCell:
    """One cell of the released notebook.

    Attributes:
        grade_id: nbgrader's id of the cell; empty for a cell without a role.
        source: the full text with its hidden tests; of a solution cell, the stub.
        visible: the text that students get.
        grade, solution, task, locked: its role, from nbgrader's metadata.
        points: the maximum.
        checksum: nbgrader's, over ``source`` and the role; empty without a role.
    """

    grade_id: str
    cell_type: str
    source: str
    visible: str
    grade: bool = False
    solution: bool = False
    task: bool = False
    locked: bool = False
    points: float = 0.0
    checksum: str = ""

    @property
    def is_test(self) -> bool:
        """Whether it is graded by running it."""
        return self.grade and not self.solution and self.cell_type == "code"

    @property
    def has_hidden_part(self) -> bool:
        return self.is_test and self.visible != self.source


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookKey:
    """All cells of one notebook of an assignment, in order; ``name`` is without ``.ipynb``.

    Attributes:
        kernelspec: the metadata that replace those of a submission, as JSON.
        apart: ids of the tests that can run isolated from the student's kernel, as the release
            check found; the others run in it.
        taught: names that the teacher's cells outside the tests bind, including the solutions.
            Tests can set and delete only these in the student's kernel.
    """

    name: str
    cells: tuple[KeyCell, ...]
    kernelspec: str = "{}"
    apart: frozenset[str] = frozenset()
    taught: frozenset[str] = frozenset()
    by_id: Mapping[str, KeyCell] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        named = {cell.grade_id: cell for cell in self.cells if cell.grade_id}
        object.__setattr__(self, "by_id", named)

    @property
    def tests(self) -> tuple[KeyCell, ...]:
        return tuple(cell for cell in self.cells if cell.is_test)

    @property
    def gradable(self) -> tuple[KeyCell, ...]:
        """All cells with points: tests, answers that a person grades, and tasks."""
        return tuple(cell for cell in self.cells if cell.grade or cell.task)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentKey:
    """The keys of an assignment's notebooks, in the order of their names."""

    assignment: str
    notebooks: tuple[NotebookKey, ...]
