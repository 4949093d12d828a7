"""Bodies of reported values and of sweeps, which compare trials by them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, JsonValue

from .base import In, Out

MOST_PARALLEL = 64
"""Trials of one sweep that run at a time."""


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


class ReportOut(Out):
    """The values that a job has reported under one name, thinned out for a curve."""

    name: str
    steps: list[int]
    values: list[float | None]
    """One for each step; null for one that is no finite number."""
    last: float | None
    least: float | None
    most: float | None


class ReportsOut(Out):
    """What a job has reported by `carrel.report`, over its attempts."""

    reports: list[ReportOut]


class SweepOut(Out):
    """How a sweep runs; its trials are a list of their own."""

    trials: int
    parallel: int
    share: bool
    trial_seconds: int
    objective: str
    maximize: bool


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

    def best_trial(self) -> TrialOut | None:
        return next((trial for trial in self.trials if trial.number == self.best), None)
