"""Train with many schedules of hyper-parameters, whose common steps run once: ``carrel.stages``."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..runtime.checkpoint import job_folder
from .checkpoint_store import CheckpointFiles
from .fingerprint import fingerprint
from .stage_runner import Step
from .study import StageStudy, checked_count

_FORMAT = 1
"""Of checkpoints and records; another one shares nothing with it."""
_SEEDS = 1 << 32


def stages(
    start: Callable[[], Any],
    step: Step,
    schedules: Sequence[Mapping[str, Any]],
    *,
    steps: int,
    objective: str = "",
    maximize: bool = False,
    prune: Mapping[int, int] | None = None,
    seed: int = 0,
    name: str = "",
    folder: str | os.PathLike[str] | None = None,
    memory: int = 1 << 30,
    disk: int = 8 << 30,
) -> StageStudy:
    """Train once per schedule, but run the steps that schedules have in common only once.

    >>> def start():
    ...     model = Net()
    ...     return {"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1)}
    >>> def step(state, values, number):
    ...     state["optimizer"].param_groups[0]["lr"] = values["lr"]
    ...     return train_epoch(state["model"], state["optimizer"])  # the loss
    >>> schedules = [{"lr": 0.1}, {"lr": [(0, 0.1), (50, 0.01)]}]
    >>> study = carrel.stages(start, step, schedules, steps=100, objective="loss")
    >>> study.best, study.saved, pandas.DataFrame(study.trials())

    Two schedules share all steps up to the first one at which a value differs, in type too. There,
    training goes on from a checkpoint: the state dicts of all objects in the state, everything else
    in it as pickle copies it, and the random states of ``random``, NumPy and PyTorch. The result is
    the same as if each schedule ran alone from the seed, as long as steps change only the state.

    In a job, finished stages are recorded, and checkpoints that are still needed are files: after a
    crash or a preemption, and in a job that resumes it, no finished stage runs again.

    Args:
        start: makes the state: an object with ``state_dict()`` and ``load_state_dict()``, a value
            that pickle can copy, or a dict, list or tuple of these.
        step: runs step ``number`` (from 0) with ``values``, changes the state, and returns a number
            (the objective), a dict of numbers by name, or None.
        schedules: per trial a dict of parameters. A value is constant, or a list of ``(step,
            value)`` pairs from step 0 on. All trials have the same parameters.
        steps: of each trial.
        objective: name of the value by which trials are compared, by the last one that each has
            returned; the smallest is the best, and NaN is the worst.
        maximize: the largest is the best.
        prune: successive halving: ``{10: 48, 30: 16}`` goes on with the best 48 trials after 10
            steps, and with the best 16 after 30.
        seed: of ``random``, NumPy and PyTorch before ``start``; your own generators belong into the
            state.
        name: of the code and data, by which a resumed job recognises its results. Without one, a
            digest of ``start``, ``step`` and the globals that they name.
        folder: for records and checkpoints, also outside of a job; later studies go on from there.
        memory: the most bytes of checkpoints in memory, outside of a job; the rest goes to files.
        disk: the most bytes of checkpoints in files that only later schedules could use.

    Raises:
        TypeError, ValueError: an argument is malformed, or the state cannot be copied.
        Exception: what ``start`` or ``step`` raises, with a note on where it did.
    """
    for function, what in ((start, "start"), (step, "step")):
        if not callable(function):
            raise TypeError(f"{what} is a function, not {function!r}.")
    steps = checked_count(steps, "steps")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < _SEEDS:
        raise ValueError(f"seed is a whole number from 0 to {_SEEDS - 1}, not {seed!r}.")
    rungs = {
        checked_count(at, "A step of prune"): checked_count(count, "A number of trials of prune")
        for at, count in (prune or {}).items()
    }
    if rungs and not objective:
        raise ValueError('prune needs an objective, such as stages(…, objective="loss").')
    if rungs and max(rungs) >= steps:
        raise ValueError(f"prune: step {max(rungs)} is not before the end, {steps}.")
    files = CheckpointFiles(
        folder=job_folder("stages") if folder is None else Path(folder).expanduser().resolve(),
        keep=folder is not None,
        memory=memory,
        disk=disk,
    )
    code = ""  # the digest of large data takes time, and only a later process needs it
    if files.folder is not None:
        code = f"name {name}" if name else f"code {fingerprint(start, step)}"
    study = StageStudy(
        start,
        step,
        key=hashlib.sha256(f"{_FORMAT} {seed} {code}".encode()).hexdigest()[:32],
        steps=steps,
        objective=objective,
        maximize=maximize,
        prune=rungs,
        seed=seed,
        files=files,
    )
    study.extend(schedules)
    return study
