"""Show in a terminal what trials of a sweep share, and the trials."""

from __future__ import annotations

import shutil
from functools import partial

import click

from ...client.pipeline_preview import job_preview, pipeline_preview
from ...files.trial_table import state_text, states_text, value_of
from ...messages import units
from ...schemas.programs.bodies import DryRunOut
from ...schemas.sweeps import SharingOut, TrialOut, TrialsOut
from ..common import display
from ..common.display import printable

_NARROWEST, _WIDEST = 60, 120


def show_sharing(found: SharingOut) -> None:
    """Print the tree, the cells, and what sharing saves."""
    width = min(max(shutil.get_terminal_size().columns, _NARROWEST), _WIDEST)
    for line in found.lines(width):
        click.echo(printable(line))


def show_expectation(found: DryRunOut, now: float) -> None:
    """Print when a sweep would start and end on the present queue, and its likely charge."""
    click.echo(f"Start: {found.sentence}")
    if found.run_time is not None:
        click.echo(f"Run time: {found.run_time.sentence}")
        if found.run_time.critical_path:
            click.echo(f"Critical path: {found.run_time.critical_path}")
    end = pipeline_preview([job_preview("sweep", (), found, now)])
    if end.ends_in is None:
        click.echo("End: not known, since its start is not known.")
    else:
        span = end.ends_in
        low, typical, high = (units.about(each) for each in (span.low, span.typical, span.high))
        by_limit = "; by its time limit" if end.unknown else ""
        click.echo(f"End: in about {typical} ({low} to {high}{by_limit}).")
    charge = "nothing: it holds no device." if found.cost is None else found.cost.sentence
    click.echo(f"Charge: {charge}")
    if found.together:
        click.echo(found.together)


def show_trials(found: TrialsOut) -> None:
    """Print a line for each trial, and which one is the best."""
    heading = ["TRIAL", *found.parameters, "STATE", "TIME", *found.names, "MESSAGE"]
    right = ",".join(["TRIAL", "TIME", *found.names])
    display.table(heading, map(partial(_trial_row, found), found.trials), right=right)
    click.echo(states_text(found))
    best = found.best_trial()
    if best is not None:
        value = units.number_text(best.reported[found.objective])
        click.echo(f"The best one is trial {best.number}: {printable(found.objective)} = {value}.")
    if found.note:
        click.echo(printable(found.note))


def _trial_row(found: TrialsOut, trial: TrialOut) -> list[str]:
    values = [value_of(trial, name) for name in found.parameters]
    reported = [units.number_text(trial.reported.get(name)) for name in found.names]
    took = units.duration(trial.seconds) if trial.at is not None and trial.seconds else ""
    row = [str(trial.number), *values, state_text(trial.state), took, *reported, trial.message]
    return [printable(text) for text in row]
