"""Measured steps of training jobs, checked: what the model of step times is fitted to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..errors import InvalidInput
from .measurement_table import MeasuredRow, MeasurementColumns, measured_rows
from .past_runs import LONGEST

MOST_WORKERS = 100_000
_LARGEST_BATCH = 1e12
_COLUMNS = MeasurementColumns(
    names=("workers", "seconds", "nodes", "batch", "model"),
    required=("workers", "seconds"),
    accepted="A CSV file with the columns workers and seconds, and, where you know them, nodes, "
    "batch (of one worker) and model.",
    most_rows=5000,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSample:
    """One measured step of a job; also a whole run, as one step with all of its work.

    Attributes:
        workers: number of workers, usually devices.
        seconds: time of the step.
        batch: the work of one worker, in examples or in parts of a run.
        nodes: number of nodes that the workers are on.
        model: the device model; empty where it is not known.
    """

    workers: int
    seconds: float
    batch: float
    nodes: int = 1
    model: str = ""

    @property
    def total_batch(self) -> float:
        """The work of all workers in the step."""
        return self.workers * self.batch


def samples_from_csv(lines: Iterable[str]) -> list[StepSample]:
    """Read samples from the lines of a CSV file.

    Without a column ``batch`` all steps do the same work, which the workers divide.

    Raises:
        InvalidInput: a column is missing or unknown, or a value is not usable.
    """
    return [_sample(row) for row in measured_rows(lines, _COLUMNS)]


def _sample(row: MeasuredRow) -> StepSample:
    workers = row.count("workers", MOST_WORKERS)
    nodes = row.count("nodes", MOST_WORKERS) if "nodes" in row.values else 1
    if nodes > workers:
        raise InvalidInput(
            f"Line {row.line}: {workers} workers cannot be on {nodes} nodes.",
            accepted="At most as many nodes as workers.",
        )
    has_batch = "batch" in row.values
    return StepSample(
        workers=workers,
        nodes=nodes,
        seconds=row.number("seconds", LONGEST),
        batch=row.number("batch", _LARGEST_BATCH) if has_batch else 1 / workers,
        model=row.values.get("model", "").strip(),
    )


def of_one_model(samples: Sequence[StepSample], model: str = "") -> list[StepSample]:
    """Return the samples of one device model; ``model`` may be empty if there is only one.

    Raises:
        InvalidInput: no sample is of this model, or there are several and none was chosen.
    """
    known = dict.fromkeys(each.model for each in samples)
    names = ", ".join(name or "(unknown)" for name in known)
    if not model and len(known) > 1:
        raise InvalidInput(
            f"The samples are of several device models: {names}.",
            accepted="The name of one of them as the model.",
        )
    chosen = [each for each in samples if not model or each.model == model]
    if samples and not chosen:
        raise InvalidInput(f"No sample is of the device model {model}.", accepted=names)
    return chosen
