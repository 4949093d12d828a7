"""``carrel sweep``: run one notebook with many parameters, and compute what is common once."""

from __future__ import annotations

from pathlib import Path

import click

from ...errors import InvalidInput
from ...schemas import MAX_NOTEBOOK_BYTES, SCRIPT, parsers
from ...sweeps.explanation import SweepExplanation, explain_sweep
from ...sweeps.notebook_analysis import analyse_notebook
from ...sweeps.notebook_cells import SweepNotebook, read_sweep_notebook
from ...sweeps.space import Space
from ...sweeps.space_syntax import space_from_options
from ...sweeps.trials import MOST_TRIALS, optional_parameters
from ..common import display
from ..common.client_command import ClientCommand, ListOptions, json_option
from .sweep_display import sweep_lines


@click.group("sweep", cls=ListOptions)
def sweep_command() -> None:
    """Sweeps: one notebook with many values of its parameters, whose common cells need to run
    only once.

    \b
    Examples:
      carrel sweep explain train.ipynb --grid lr=0.1,0.01 --grid depth=2,4
      carrel sweep explain --help
    """


@sweep_command.command(
    "explain", cls=ClientCommand, short_help="Show which cells trials can share, and why."
)
@click.argument("path", metavar="NOTEBOOK", type=click.Path(path_type=Path))
@click.option(
    "--grid",
    multiple=True,
    metavar="NAME=VALUES",
    help="Values of a parameter, separated by commas; may be repeated, for all combinations. They "
    "are numbers, true, false, null or text, as with `carrel submit -p`.",
)
@click.option(
    "--list",
    "listed",
    metavar="JSON",
    help="The trials themselves: a JSON list of objects, or a file with one.",
)
@click.option(
    "--random",
    "sampled",
    multiple=True,
    metavar="NAME=RANGE",
    help="Random values of a parameter: 0.1..0.9, log:1e-4..1e-1, or values separated by commas; "
    "may be repeated. Whole bounds give whole numbers, unless the default has decimals.",
)
@click.option("--trials", type=int, metavar="N", help="Number of trials of --random.")
@click.option(
    "--seed", type=int, metavar="N", help="Seed of --random, 0 by default; it repeats the trials."
)
@json_option
def explain_command(
    *,
    path: Path,
    grid: tuple[str, ...],
    listed: str | None,
    sampled: tuple[str, ...],
    trials: int | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Show which cells of a notebook are the same for several trials, and why others are not.

    The notebook is read, not run, and no site is needed. Trials share the cells up to the first
    one that may use a parameter in which they differ, and branch there. A cell that writes files,
    draws random numbers without a seed, reads the clock, or does what cannot be known, runs in each
    trial, with all cells after it. The tag carrel-share on a cell says that it is safe to share,
    carrel-no-share that it is not.

    If the notebook has run before, its recorded times tell how much device time sharing saves.

    \b
    Examples:
      carrel sweep explain train.ipynb --grid lr=0.1,0.01 --grid depth=2,4
      carrel sweep explain train.ipynb --random lr=log:1e-4..1e-1 --trials 20 --seed 7
      carrel sweep explain train.ipynb --list trials.json --json | jq .cells
    """
    notebook = _notebook(path)
    space = _space(grid, listed, sampled, trials, seed).check(notebook)
    planned = space.trials()
    analysis = analyse_notebook(notebook, optional=optional_parameters(planned))
    found = explain_sweep(notebook, analysis, planned)
    if as_json:
        display.as_json(_as_json(found, space))
        return
    for line in sweep_lines(found):
        click.echo(line)


def _notebook(path: Path) -> SweepNotebook:
    if path.suffix == SCRIPT:
        raise InvalidInput(
            f"{path} is a script.",
            accepted="Give a notebook; jupytext --to ipynb FILE makes one of a script with cells.",
        )
    given = parsers.notebook(path)
    return read_sweep_notebook(given.name, given.content)


def _space(
    grid: tuple[str, ...],
    listed: str | None,
    sampled: tuple[str, ...],
    trials: int | None,
    seed: int | None,
) -> Space:
    if listed is not None and not listed.lstrip().startswith(("[", "{")):
        listed = _text(Path(listed))
    return space_from_options(grid=grid, listed=listed, sampled=sampled, trials=trials, seed=seed)


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
    return {"notebook": found.notebook, "space": space.as_json(), **found.as_json()}
