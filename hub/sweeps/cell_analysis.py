"""The result of the analysis of a notebook, cell by cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .obstacles import Obstacle


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterUse:
    """Where and how a cell may use a parameter.

    Attributes:
        line: of the cell, from 1; 0 if it is no single line.
        why: part of a sentence: ``uses lr``, ``uses train, whose code uses lr``.
    """

    line: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CellAnalysis:
    """What a cell does.

    Attributes:
        defines: global names that it binds or deletes.
        uses: global names that it reads, also through functions.
        mutates: names whose objects it is known to change in place. This list is for people: it
            cannot be complete, and no decision depends on it.
        parameters: the parameters that it may use, after they have been assigned.
        obstacles: why trials with equal parameters must still run it each for itself.
        shared_by_tag: the tag ``carrel-share`` removed obstacles or uses that are not certain.
    """

    number: int
    defines: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()
    mutates: frozenset[str] = frozenset()
    parameters: Mapping[str, ParameterUse] = field(default_factory=dict)
    obstacles: tuple[Obstacle, ...] = ()
    shared_by_tag: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookAnalysis:
    """The analysis of all code cells of a notebook.

    Attributes:
        injection: number of cells that run before parameters are assigned.
        imported: names that stand only for modules, or names of modules.
    """

    cells: tuple[CellAnalysis, ...]
    injection: int
    imported: frozenset[str] = frozenset()
