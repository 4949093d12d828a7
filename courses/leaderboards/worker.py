"""Score the submissions of a leaderboard: the process that runs under its lease.

Run as ``python -m carrel.courses.leaderboards.worker``.

The weights of a batch, the teacher's files and the program that scores them go into one grading
sandbox, whose image has PyTorch; this process does not import it. Where a sandbox does not survive
a batch, its halves are scored apart, so that one file does not cost others their score.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ...hub.config.settings import Settings
from ...hub.config.state_folder import StateFolder
from ...hub.errors import InvalidInput
from ...hub.files.local import INPUT
from ...hub.files.safe_fs import write_into
from ...hub.schemas.coursework.leaderboards import (
    LEADERBOARD_RESULT,
    EntryScoreOut,
    LeaderboardOrderOut,
    LeaderboardResultOut,
    WeightsRefOut,
)
from ..files.blobs import FolderBlobs
from ..files.transfer import contents
from ..grading_runs.worker import run
from ..sandbox.interface import CellRun, CellStatus, CellStep, SandboxEngine, SandboxLimits
from ..sandbox.plugins import load_sandbox

BATCH_BYTES: Final = 256 << 20
"""Weights in one sandbox."""
_MEMORY_BYTES: Final = 6 << 30
_LONGEST: Final = 500
"""Characters of a sentence for a student: a file may have thousands of names."""
_CELL: Final = """\
import os, sys
sys.path.insert(0, os.getcwd())
from carrel.extensions.leaderboard.program import main
main()
"""
_SOURCES: Final = (
    "__init__.py",
    "courses/__init__.py",
    "courses/leaderboards/__init__.py",
    "courses/leaderboards/weights_file.py",
    "extensions/__init__.py",
    "extensions/execution/**/*.py",
    "extensions/leaderboard/*.py",
    "hub/__init__.py",
    "hub/errors.py",
)
"""The program and what it imports of Carrel: a sandbox may have no Carrel, or another version."""


def main() -> int:
    return run(evaluate)


def evaluate() -> None:
    """Score what the order of this attempt names. Raises CarrelError."""
    attempt = Path(os.environ["CARREL_OUTPUT_DIR"]).parent
    state = StateFolder.at(os.environ["CARREL_STATE"])
    order = LeaderboardOrderOut.model_validate_json((attempt.parent / INPUT).read_bytes())
    blobs = FolderBlobs(state.blobs)
    engine = load_sandbox(
        state, Settings.load(state), course=order.course, image=order.image, imports=("torch",)
    )

    def weights(entry: WeightsRefOut) -> bytes:
        with blobs.open(entry.sha256) as file:
            return file.read()

    try:
        result = scored(engine, order, teachers=contents(blobs, order.files), weights=weights)
    finally:
        engine.close()
    write_into(attempt, LEADERBOARD_RESULT, result.model_dump_json())
    print(f"{len(result.scores)} submissions evaluated. {result.failure}".strip(), flush=True)


def scored(
    engine: SandboxEngine,
    order: LeaderboardOrderOut,
    *,
    teachers: Mapping[str, bytes],
    weights: Callable[[WeightsRefOut], bytes],
) -> LeaderboardResultOut:
    """Score all submissions of an order, each with a verdict.

    Raises:
        BackendFailed, Unavailable: there is no sandbox.
    """
    scores: list[EntryScoreOut] = []
    try:
        for batch in batches(order.entries):
            sandbox = _BatchSandbox(engine=engine, order=order, teachers=teachers)
            scores += sandbox.scores({each.entry: weights(each) for each in batch})
    except InvalidInput as error:  # of the teacher's files: no other batch would do better
        done = {each.entry for each in scores}
        why = "The files of the leaderboard failed, which your teacher has to correct."
        scores += [
            EntryScoreOut(entry=each.entry, problem=why, fault=True)
            for each in order.entries
            if each.entry not in done
        ]
        return LeaderboardResultOut(scores=scores, failure=error.message)
    return LeaderboardResultOut(scores=scores)


def batches(
    entries: Sequence[WeightsRefOut], most_bytes: int = BATCH_BYTES
) -> Iterator[list[WeightsRefOut]]:
    """Split submissions into batches of at most so many bytes, or of one submission."""
    batch: list[WeightsRefOut] = []
    size = 0
    for each in entries:
        if batch and size + each.size > most_bytes:
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += each.size
    if batch:
        yield batch


@dataclass(frozen=True, slots=True, kw_only=True)
class _BatchSandbox:
    """Scores batches, each in a sandbox of its own."""

    engine: SandboxEngine
    order: LeaderboardOrderOut
    teachers: Mapping[str, bytes]

    def scores(self, batch: Mapping[str, bytes]) -> list[EntryScoreOut]:
        """Raises InvalidInput for the teacher's files; BackendFailed, Unavailable."""
        found = self._run(batch)
        if not isinstance(found, str):
            return found
        if len(batch) > 1:
            names = list(batch)
            middle = len(names) // 2
            halves = names[:middle], names[middle:]
            return [each for half in halves for each in self.scores({n: batch[n] for n in half})]
        return [EntryScoreOut(entry=name, problem=found, fault=True) for name in batch]

    def _run(self, batch: Mapping[str, bytes]) -> list[EntryScoreOut] | str:
        """The scores of a batch, or the sentence why its sandbox has none."""
        order = {
            "metric": self.order.metric,
            "public_percent": self.order.public_percent,
            "seed": self.order.seed,
        }
        files = {
            "order.json": json.dumps(order).encode(),
            **program_files(),
            **{f"teacher/{name}": content for name, content in self.teachers.items()},
            **{f"weights/{name}": content for name, content in batch.items()},
        }
        seconds = float(self.order.seconds)
        size = sum(map(len, files.values()))
        limits = replace(
            SandboxLimits(),
            seconds=seconds,
            cell_seconds=seconds,
            memory_bytes=_MEMORY_BYTES,
            disk_bytes=max(SandboxLimits().disk_bytes, 2 * size),
        )
        sandbox = self.engine.open(limits, files)
        try:
            (ran,) = sandbox.run([CellStep(cell_id="evaluation", source=_CELL)])
        finally:
            end = sandbox.close()
        result = _result(ran)
        if result is None:
            return end.sentence or "Its evaluation was stopped."
        if "failure" in result:
            raise InvalidInput(str(result["failure"]))
        return [_score(name, result["scores"][name]) for name in batch]


def program_files() -> dict[str, bytes]:
    """The sources of the program, by their place in the folder of a sandbox."""
    package = Path(__file__).parents[2]
    return {
        f"carrel/{path.relative_to(package).as_posix()}": path.read_bytes()
        for pattern in _SOURCES
        for path in sorted(package.glob(pattern))
    }


def _result(ran: CellRun) -> dict[str, dict[str, dict[str, object]]] | None:
    """What the program printed last; None where it did not come to its end."""
    printed = "".join(
        str(each.get("text", ""))
        for each in ran.outputs
        if each.get("output_type") == "stream" and each.get("name") == "stdout"
    )
    if ran.status is not CellStatus.OK:
        for each in ran.outputs:
            print(each.get("evalue") or each.get("text") or "", flush=True)
        return None
    found: dict[str, dict[str, dict[str, object]]] = json.loads(printed.strip().splitlines()[-1])
    return found


def _score(name: str, found: Mapping[str, object]) -> EntryScoreOut:
    problem = str(found["problem"])
    if len(problem) > _LONGEST:
        problem = f"{problem[:_LONGEST]} …"
    return EntryScoreOut.model_validate({**found, "entry": name, "problem": problem})


if __name__ == "__main__":
    sys.exit(main())
