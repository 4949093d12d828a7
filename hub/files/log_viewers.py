"""Programs that show the logs of a training run, and which files of a job they read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class LogViewer:
    """A program that runs in the user's own session.

    Attributes:
        name: in addresses; also that of the Python package.
        pattern: names of the files that it reads, in any folder of the job's files.
        writes: what a job must do for it, as one clause.
        entry: its page that is opened, as a fragment of the address.
    """

    name: str
    title: str
    pattern: str
    writes: str
    entry: str = ""

    def reads(self, path: str) -> bool:
        """Return whether it reads a file of a job."""
        return fnmatchcase(path.rpartition("/")[2], self.pattern)


TENSORBOARD: Final = LogViewer(
    name="tensorboard",
    title="TensorBoard",
    pattern="events.out.tfevents*",
    writes="writes events.out.tfevents… files to $CARREL_OUTPUT_DIR",
)
MLFLOW: Final = LogViewer(
    name="mlflow",
    title="MLflow",
    pattern="mlflow.db",
    writes="logs to sqlite:///$CARREL_OUTPUT_DIR/mlflow.db",
    entry="#/experiments",
)
LOG_VIEWERS: Final = (TENSORBOARD, MLFLOW)


def viewers_of(paths: Iterable[str]) -> tuple[LogViewer, ...]:
    """Return the viewers that can show at least one of these files."""
    known = tuple(paths)
    return tuple(each for each in LOG_VIEWERS if any(map(each.reads, known)))
