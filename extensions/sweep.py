"""Sweeps from Python: ``carrel.sweep`` and ``carrel.explain_sweep``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from ..hub.errors import InvalidInput
from ..hub.schemas import parsers
from ..hub.schemas.sweeps import SharingOut
from ..hub.sweeps.notebook_cells import read_sweep_notebook
from ..hub.sweeps.space import check_together, trained_together
from ..hub.sweeps.space_syntax import space_from_json
from ..hub.sweeps.stage_description import analysed_sweep, one_run, sharing_out
from .job import Job, submit


def sweep(
    notebook: str | Path,
    grid: Mapping[str, Sequence[JsonValue]] | None = None,
    *,
    trials: Sequence[Mapping[str, JsonValue]] | None = None,
    random: Mapping[str, JsonValue] | None = None,
    search: Mapping[str, JsonValue] | None = None,
    number: int | None = None,
    seed: int = 0,
    sampler: str = "tpe",
    prune: str = "none",
    devices: int = 0,
    parallel: int = 1,
    objective: str = "",
    maximize: bool = False,
    trial_time: str | int = 0,
    share: bool = True,
    together: bool = False,
    **options: Any,
) -> Job:
    """Run a notebook once for each set of parameter values, as one job.

    >>> study = carrel.sweep("train.ipynb", {"lr": [0.1, 0.01]}, devices=1, objective="loss")
    >>> study.wait().frame()
    >>> carrel.sweep("train.ipynb", search={"lr": {"log": [1e-4, 0.1]}}, number=50,
    ...              objective="loss", prune="asha")

    Args:
        grid: the values of each parameter, for all combinations.
        trials: the trials themselves, instead of a grid.
        random: random values by parameter, instead of a grid: ``{"uniform": [0, 1]}``,
            ``{"log": [1e-4, 0.1]}`` or a list of values.
        search: as ``random``, but Optuna chooses the values by what earlier trials have reported
            as the objective.
        number: how many random trials, or trials of the search.
        seed: of these trials; it repeats them.
        sampler: of the search: ``"tpe"`` or ``"random"``.
        prune: stop trials of the search early: ``"asha"``, ``"hyperband"``, ``"median"`` or
            ``"none"``. The notebook calls ``carrel.report(NAME, value, step)`` after each step.
        devices: of one trial.
        parallel: how many trials run at a time.
        objective: name of the value by which trials are compared; the notebook reports it by
            ``carrel.report(NAME, value)``. The smallest is the best.
        maximize: the largest is the best.
        trial_time: limit of one trial, as ``"10m"`` or in seconds; 0 for none.
        share: whether cells that are the same for several trials run once.
        together: run the notebook once for all trials: each parameter of the sweep is a list with
            one value a trial, and ``carrel.report`` takes one value a trial. Not for a search.
        options: as for ``carrel.submit``; ``time`` is the limit of the sweep as a whole.

    Raises:
        carrel.hub.errors.CarrelError: one of its classes, with a message that says why.
    """
    space = _space(grid, trials, random, search, number=number, seed=seed)
    if search is not None:
        space |= {"sampler": sampler, "pruner": prune}
    limit = parsers.seconds(trial_time) if isinstance(trial_time, str) else trial_time
    found = {
        "space": space,
        "parallel": parallel,
        "share": share,
        "trial_seconds": limit,
        "objective": objective,
        "maximize": maximize,
        "together": together,
    }
    return submit(notebook, devices=devices * parallel, sweep=found, **options)


def explain_sweep(
    notebook: str | Path,
    grid: Mapping[str, Sequence[JsonValue]] | None = None,
    *,
    trials: Sequence[Mapping[str, JsonValue]] | None = None,
    random: Mapping[str, JsonValue] | None = None,
    search: Mapping[str, JsonValue] | None = None,
    number: int | None = None,
    seed: int = 0,
    together: bool = False,
) -> SharingOut:
    """Return which cells trials would share, and why not the others; run nothing.

    >>> print(carrel.explain_sweep("train.ipynb", {"lr": [0.1, 0.01]}))

    The arguments are those of ``carrel.sweep``; no site is needed. The last note says how many
    trials are trained as one, and why the others are not.

    Raises:
        carrel.hub.errors.InvalidInput: the space does not fit the notebook, or it is none; or one
            run of the notebook cannot train its trials.
    """
    given = parsers.notebook(Path(notebook))
    found = read_sweep_notebook(given.name, given.content)
    space = space_from_json(_space(grid, trials, random, search, number=number, seed=seed))
    space = space.check(found)
    if together:
        check_together(space)
        shown = one_run(found, space)
    else:
        shown = sharing_out(analysed_sweep(found, space.trials()))
    told = trained_together(space, together=together)
    return shown.model_copy(update={"notes": [*shown.notes, told]})


def _space(
    grid: Mapping[str, Sequence[JsonValue]] | None,
    trials: Sequence[Mapping[str, JsonValue]] | None,
    random: Mapping[str, JsonValue] | None,
    search: Mapping[str, JsonValue] | None,
    *,
    number: int | None,
    seed: int,
) -> dict[str, object]:
    """Return the space as REST takes it. Raises InvalidInput unless there is exactly one."""
    given = [each for each in (grid, trials, random, search) if each is not None]
    if len(given) != 1:
        raise InvalidInput(
            "A sweep has a grid, a list of trials, random values, or a search.",
            accepted="Exactly one of grid, trials, random and search.",
        )
    if grid is not None:
        return {"grid": {name: list(values) for name, values in grid.items()}}
    if trials is not None:
        return {"list": [dict(each) for each in trials]}
    if random is not None:
        return {"random": dict(random), "trials": number, "seed": seed}
    return {"search": dict(search or {}), "trials": number, "seed": seed}
