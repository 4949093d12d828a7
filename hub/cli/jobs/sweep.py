"""``carrel sweep``: run one notebook with many parameters, and compute what is common once."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, Unpack

import click

from ...client import Client
from ...errors import InvalidInput
from ...files.trial_table import trials_csv
from ...schemas import MAX_NOTEBOOK_BYTES, SCRIPT, parsers
from ...schemas.sweeps import MOST_PARALLEL
from ...sweeps.explanation import SweepExplanation
from ...sweeps.notebook_cells import SweepNotebook, read_sweep_notebook
from ...sweeps.space import Pruner, Sampler, Space, check_together, trained_together
from ...sweeps.space_syntax import space_from_options
from ...sweeps.stage_description import analysed_sweep, one_run, sharing_out
from ...sweeps.trials import MOST_TRIALS
from ..common import display, exit_status
from ..common.client_command import ClientCommand, WaitingCommand, json_option, site_option
from .submit_options import (
    SubmitOptions,
    built_fields,
    built_job,
    job_options,
    notebook_fields,
    notebook_options,
    send,
)
from .sweep_display import show_expectation, show_sharing, show_trials

F = TypeVar("F", bound=Callable[..., object])

_SPACE_OPTIONS = (
    click.option(
        "--grid",
        multiple=True,
        metavar="NAME=VALUES",
        help="Values of a parameter, separated by commas; may be repeated, for all combinations. "
        "They are numbers, true, false, null or text, as with `carrel submit -p`.",
    ),
    click.option(
        "--list",
        "listed",
        metavar="JSON",
        help="The trials themselves: a JSON list of objects, or a file with one.",
    ),
    click.option(
        "--random",
        "sampled",
        multiple=True,
        metavar="NAME=RANGE",
        help="Random values of a parameter: 0.1..0.9, log:1e-4..1e-1, or values separated by "
        "commas; may be repeated. Whole bounds give whole numbers, unless the default has "
        "decimals.",
    ),
    click.option(
        "--search",
        "searched",
        multiple=True,
        metavar="NAME=RANGE",
        help="A range or values as for --random, from which Optuna chooses by what earlier trials "
        "have reported as --objective; may be repeated.",
    ),
    click.option(
        "--trials", type=int, metavar="N", help="Number of trials of --random or --search."
    ),
    click.option(
        "--seed",
        type=int,
        metavar="N",
        help="Seed of --random or --search, 0 by default; it repeats the trials.",
    ),
    click.option(
        "--sampler",
        type=click.Choice([str(each) for each in Sampler]),
        help="How --search chooses values: tpe, the default, or random.",
    ),
    click.option(
        "--prune",
        "pruner",
        type=click.Choice([str(each) for each in Pruner]),
        help="Stop trials of --search early if others report better values: the notebook calls "
        "carrel.report(NAME, value, step) after each step.",
    ),
)


_RUN_OPTIONS = (
    click.option(
        "--parallel",
        type=click.IntRange(1, MOST_PARALLEL),
        default=1,
        show_default=True,
        metavar="N",
        help="Trials that run at a time, each with --devices devices.",
    ),
    click.option(
        "--objective",
        default="",
        metavar="NAME",
        help="The value by which trials are compared: the notebook calls "
        "carrel.report(NAME, value). The smallest is the best.",
    ),
    click.option("--maximize", is_flag=True, help="The largest --objective is the best."),
    click.option(
        "--trial-time",
        metavar="SPAN",
        help=f"Time limit of one trial, its shared cells included: {parsers.TIME_HELP}.",
    ),
    click.option(
        "--no-share", is_flag=True, help="Run all cells in each trial, in a kernel of its own."
    ),
    click.option(
        "--together",
        is_flag=True,
        help="Run the notebook once for all trials: each parameter of the sweep is a list with one "
        "value a trial, as for carrel.execution.fuse_train.",
    ),
    click.option(
        "--explain",
        is_flag=True,
        help="Run nothing: show which cells trials share, and why others run in each of them.",
    ),
    click.option(
        "--dry-run",
        is_flag=True,
        help="Run nothing: show the likely start, run time, end and charge.",
    ),
)


class RunOptions(SubmitOptions):
    """The values of the options of a sweep beside those of a job."""

    parallel: int
    objective: str
    maximize: bool
    trial_time: str | None
    no_share: bool
    together: bool


def _options(function: F) -> F:
    for option in reversed((*_SPACE_OPTIONS, *_RUN_OPTIONS)):
        function = option(function)
    return function


@click.command("sweep", cls=WaitingCommand, epilog=exit_status.STATUS_HELP)
@click.argument("path", metavar="NOTEBOOK", type=click.Path(path_type=Path))
@_options
@notebook_options
@job_options
@json_option
@site_option
def sweep_command(
    *,
    path: Path,
    grid: tuple[str, ...],
    listed: str | None,
    sampled: tuple[str, ...],
    searched: tuple[str, ...],
    trials: int | None,
    seed: int | None,
    sampler: str | None,
    pruner: str | None,
    explain: bool,
    dry_run: bool,
    parameters: tuple[tuple[str, str], ...],
    raw: tuple[tuple[str, str], ...],
    results: tuple[tuple[str, str], ...],
    output: str,
    kernel: str,
    as_json: bool,
    site: str | None,
    **common: Unpack[RunOptions],
) -> None:
    """Run a notebook once for each set of parameter values, as one job.

    Trials share the cells up to the first one that may use a parameter in which they differ: these
    cells run once, then the kernel is forked. A cell that writes files, draws random numbers
    without a seed, reads the clock, or does what cannot be known, runs in each trial, with all
    cells after it. The tag carrel-share on a cell says that it is safe to share, carrel-no-share
    that it is not. With --explain, the notebook is read, not run, and no site is needed; if it has
    run before, its recorded times tell how much device time sharing saves. --dry-run asks the site:
    once the notebook has run alone, it knows how long the sweep will take, with stages that trials
    share counted once. Both say how many trials are trained as one, and why the others are not.

    A trial that fails stops no other one. Each trial has an executed notebook of its own among the
    files of the job; `carrel trials JOB` lists them with what they have reported. After a crash or
    `carrel resume`, trials that have succeeded do not run again. With --search, the values of a
    trial are chosen when it starts, and --prune stops bad trials early. --time is the limit of the
    sweep as a whole.

    With --together, one run of the notebook trains all trials: lr is a list with one value a trial,
    and carrel.report("loss", losses, step) takes one value a trial. If it fails, all trials fail.

    \b
    Examples:
      carrel sweep train.ipynb --grid lr=0.1,0.01 --grid depth=2,4 --explain
      carrel sweep train.ipynb --grid lr=0.1,0.01,0.001 --devices 1 --dry-run
      carrel sweep train.ipynb --grid lr=0.1,0.01,0.001 --devices 1 --parallel 3
      carrel sweep train.ipynb --random lr=log:1e-4..1e-1 --trials 20 --seed 7 --objective loss
      carrel sweep train.ipynb --search lr=log:1e-4..1e-1 --search depth=2..8 --trials 50 \\
        --objective loss --prune asha --parallel 4
      carrel sweep train.ipynb --grid lr=0.1,0.01,0.001 --together --objective loss
      carrel sweep train.ipynb --list trials.json --trial-time 10m --time 8h
      carrel sweep train.ipynb --list trials.json --explain --json | jq .cells
    """
    notebook = _notebook(path)
    space = space_from_options(
        grid=grid,
        listed=_listed(listed),
        sampled=sampled,
        searched=searched,
        trials=trials,
        seed=seed,
        sampler=sampler,
        pruner=pruner,
    ).check(notebook)
    if common["together"]:
        check_together(space)
    if explain and common["together"]:
        shown = one_run(notebook, space)
        if as_json:
            display.as_json({"notebook": notebook.name, "space": space.as_json(), **dict(shown)})
        else:
            show_sharing(shown)
        return
    if explain:
        found = analysed_sweep(notebook, space.trials())
        if as_json:
            display.as_json(_as_json(found, space))
        else:
            show_sharing(sharing_out(found))
            click.echo(trained_together(space, together=False))
        return
    what = notebook_fields(path, parameters, raw, results=results, output=output, kernel=kernel)
    what["sweep"] = {
        "space": space.as_json(),
        "parallel": common["parallel"],
        "share": not common["no_share"],
        "trial_seconds": parsers.seconds(common["trial_time"]) if common["trial_time"] else 0,
        "objective": common["objective"],
        "maximize": common["maximize"],
        "together": common["together"],
    }
    common["devices"] *= common["parallel"]
    if dry_run:
        fields = built_fields(what, path.parent, common, needs_files=False, site=site)
        with Client.from_environment(site) as client:
            answer = client.dry_run(built_job(client, fields, common))
        if as_json:
            display.as_json(answer)
        else:
            show_expectation(answer, time.time())
        return
    send(what, path.parent, common, needs_files=False, as_json=as_json, site=site)


@click.command("trials", cls=ClientCommand)
@click.argument("request_id", metavar="JOB")
@click.option("--csv", "as_csv", is_flag=True, help="Print a table for spreadsheets.")
@click.option(
    "--stop",
    "stopped",
    type=click.IntRange(1),
    multiple=True,
    metavar="N",
    help="Stop this trial first, if it runs or waits; may be repeated. The others go on.",
)
@json_option
@site_option
def trials_command(
    request_id: str, *, as_csv: bool, stopped: tuple[int, ...], as_json: bool, site: str | None
) -> None:
    """List the trials of a sweep, with their parameters and what they have reported.

    \b
    Examples:
      carrel trials j-7k2m4qpz
      carrel trials j-7k2m4qpz --csv > trials.csv
      carrel trials j-7k2m4qpz --stop 3 --stop 5
      carrel output j-7k2m4qpz --files
    """
    with Client.from_environment(site) as client:
        for number in stopped:
            client.stop_trial(request_id, number)
        found = client.trials(request_id)
    if as_json:
        display.as_json(found)
    elif as_csv:
        click.echo(trials_csv(found), nl=False)
    else:
        show_trials(found)


def _notebook(path: Path) -> SweepNotebook:
    if path.suffix == SCRIPT:
        raise InvalidInput(
            f"{path} is a script.",
            accepted="Give a notebook; jupytext --to ipynb FILE makes one of a script with cells.",
        )
    given = parsers.notebook(path)
    return read_sweep_notebook(given.name, given.content)


def _listed(given: str | None) -> str | None:
    """Return the JSON of --list, which may be in a file."""
    if given is None or given.lstrip().startswith(("[", "{")):
        return given
    return _text(Path(given))


def _text(path: Path) -> str:
    accepted = "Give a JSON list such as '[{\"lr\": 0.1}]', or the path of a file with one."
    try:
        if path.stat().st_size > MAX_NOTEBOOK_BYTES:
            raise InvalidInput(
                f"{path} is too large for a list of {MOST_TRIALS:,} trials.", accepted=accepted
            )
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InvalidInput(
            f"{str(path)[:200]} cannot be read: {why}.", accepted=accepted
        ) from error


def _as_json(found: SweepExplanation, space: Space) -> dict[str, object]:
    together = trained_together(space, together=False)
    about = {"notebook": found.notebook, "space": space.as_json(), "together": together}
    return {**about, **found.as_json()}


COMMANDS: dict[str, click.Command] = {"sweep": sweep_command, "trials": trials_command}
