"""Bodies of reported values and of sweeps, which compare trials by them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Annotated, Final

from pydantic import Field, JsonValue

from .base import In, Out

MOST_PARALLEL = 64
"""Trials of one sweep that run at a time."""
_WIDTH: Final = 100
_INDENT: Final = " " * 12


class SweepIn(In):
    """The trials of a job, and how they run."""

    space: Annotated[
        dict[str, JsonValue],
        Field(
            description='`{"grid": {"lr": [0.1, 0.01]}}`, `{"list": [{"lr": 0.1}]}`, '
            '`{"random": {"lr": {"log": [1e-4, 0.1]}}, "trials": 20, "seed": 0}` or '
            '`{"search": {"lr": {"log": [1e-4, 0.1]}}, "trials": 50, "seed": 0, "sampler": "tpe", '
            '"pruner": "asha"}`.'
        ),
    ]
    parallel: Annotated[
        int,
        Field(
            ge=1,
            le=MOST_PARALLEL,
            description="How many trials run at a time; the devices of the job are divided among "
            "them.",
        ),
    ] = 1
    share: Annotated[
        bool, Field(description="Whether cells that are the same for several trials run once.")
    ] = True
    trial_seconds: Annotated[
        int, Field(ge=0, le=10**9, description="Time limit of one trial; 0 for none.")
    ] = 0
    objective: Annotated[
        str,
        Field(
            max_length=100,
            description="Name of the value, reported by `carrel.report`, by which trials are "
            "compared.",
        ),
    ] = ""
    maximize: Annotated[
        bool, Field(description="Whether the best trial has the largest value.")
    ] = False
    together: Annotated[
        bool,
        Field(
            description="Whether the notebook runs once for all trials: each parameter of the "
            "sweep is a list with one value a trial. Not for a search."
        ),
    ] = False


class ReportOut(Out):
    """The values that a job has reported under one name, thinned out for a curve."""

    name: str
    steps: list[int]
    values: list[float | None]
    """One for each step; null for one that is no finite number."""
    last: float | None
    least: float | None
    most: float | None


class CompilationObstacleOut(Out):
    """A line that the compiler could not take, and what to write instead."""

    place: str
    source: str
    reason: str
    rewrite: str


class AcceleratedFunctionOut(Out):
    """A function that a job has given to `carrel.execution.accelerate`."""

    function: str
    place: str
    outcome: str
    obstacles: list[CompilationObstacleOut]


class ReportsOut(Out):
    """What a job has reported by `carrel.report`, over its attempts."""

    reports: list[ReportOut]
    compilations: list[AcceleratedFunctionOut] = []
    """The newest attempt's functions, with the lines that keep them from being compiled."""
    compile_cache: list[str] = []
    """What the newest attempt has loaded from a compile cache and left in it, as sentences."""


class SweepOut(Out):
    """How a sweep runs; its trials are a list of their own."""

    trials: int
    parallel: int
    share: bool
    trial_seconds: int
    objective: str
    maximize: bool
    together: bool = False
    """Whether the notebook runs once, with the values of all trials as lists."""


class TrialOut(Out):
    """A trial of a sweep."""

    number: int
    values: dict[str, JsonValue]
    """Its parameters, without those that are the same in all trials."""
    state: str
    """`waiting`, `running`, `succeeded`, `failed`, `pruned` if a search has stopped it early,
    `stopped` by a user, or `not_run` if the sweep has ended before it."""
    at: float | None = None
    """When it started or ended."""
    seconds: float = 0.0
    """What its cells took, those that it shares with other trials included."""
    message: str = ""
    """Why it failed, or when it was pruned."""
    reported: dict[str, float | None] = {}
    """The last value of each name that it has reported so far; null for one that is no number."""
    notebook: str = ""
    """Name of its executed notebook among the files of the job."""


class TrialsOut(Out):
    """The trials of a sweep."""

    trials: list[TrialOut]
    """Of a search, those whose values have been chosen."""
    planned: int = 0
    """How many trials the sweep has."""
    parameters: list[str]
    """Names of the parameters that the sweep sets."""
    logarithmic: list[str] = []
    """Those that a logarithmic axis suits."""
    names: list[str]
    """Names of the reported values, the objective first."""
    objective: str = ""
    maximize: bool = False
    best: int | None = None
    """Number of the trial with the best objective."""
    note: str = ""
    """What is wrong with the objective, as a sentence."""
    together: bool = False
    """Whether all trials are trained as one, by one run of the notebook."""

    def best_trial(self) -> TrialOut | None:
        return next((trial for trial in self.trials if trial.number == self.best), None)


class CellSharingOut(Out):
    """How often a code cell of a sweep runs, and why."""

    number: int
    """From 1, among the code cells."""
    runs: int
    """For all trials together."""
    why: str
    advice: str = ""
    """What would have to change for it to run less often."""


class SharingOut(Out):
    """What the trials of a sweep share, by the analysis of its notebook."""

    summary: str
    """Notebook, trials and cells, as a sentence."""
    tree: list[str]
    """The stages and their trials, drawn line by line; empty if sharing is off."""
    cells: list[CellSharingOut]
    notes: list[str]
    """What sharing saves, and what may prevent it, as sentences."""
    expected: list[str] = []
    """Of a sweep that has not ended: its run time, critical path and end, as sentences."""

    def lines(self, width: int = _WIDTH) -> Iterator[str]:
        """Yield the description as text; the cells are wrapped to a number of columns."""
        yield self.summary
        yield ""
        if self.cells:
            yield from self.tree
            yield ""
            yield "CELL  RUNS  WHY"
        for cell in self.cells:
            begin = f"{cell.number:>4}  {cell.runs:>4}  "
            for text in filter(None, [cell.why, cell.advice]):
                yield from textwrap.wrap(
                    text, width, initial_indent=begin, subsequent_indent=_INDENT
                )
                begin = _INDENT
        if self.cells:
            yield ""
        yield from self.notes
        yield from self.expected

    def __str__(self) -> str:
        return "\n".join(self.lines())
