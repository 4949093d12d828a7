"""Score the submissions of a leaderboard: the process that runs under its lease.

Run as ``python -m carrel.courses.leaderboards.worker``.

The weights of a batch, the teacher's files and the program that scores them go into one grading
sandbox, whose image has PyTorch; this process does not import it. A batch is scored in groups. The
result file is written after each of them, so that an attempt that ends early loses one group, and
the next attempt scores the others only.

Where the time of a group is over, all groups after it become as small as its halves, which come
next: models that are slow are so in each group. Where the sandbox ended in a group, its halves are
scored after all others, so that one file does not cost others their score.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ...hub.config.settings import Settings
from ...hub.config.state_folder import StateFolder
from ...hub.errors import InvalidInput, NotFound
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
from ..model.leaderboards import SCORED_AT_ONCE
from ..sandbox.interface import (
    CellRun,
    CellStatus,
    CellStep,
    Sandbox,
    SandboxEngine,
    SandboxLimits,
    StopReason,
)
from ..sandbox.plugins import load_sandbox

BATCH_BYTES: Final = 256 << 20
"""Weights in one sandbox."""
_MEMORY_BYTES: Final = 6 << 30
_LONGEST: Final = 500
"""Characters of a sentence for a student: a file may have thousands of names."""
_PREPARE: Final = """\
import os, sys
sys.path.insert(0, os.getcwd())
from carrel.extensions.leaderboard.program import prepare
evaluation = prepare()
"""
_STOPPED: Final = "Its evaluation was stopped."
_SOURCES: Final = (
    "__init__.py",
    "courses/__init__.py",
    "courses/leaderboards/__init__.py",
    "courses/leaderboards/weights_file.py",
    "extensions/__init__.py",
    "extensions/execution/**/*.py",
    "extensions/leaderboard/*.py",
    "extensions/runtime/__init__.py",
    "extensions/runtime/report.py",
    "hub/__init__.py",
    "hub/attempts/__init__.py",
    "hub/attempts/compile_cache_fallback.py",
    "hub/attempts/compile_cache_side.py",
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

    def store(result: LeaderboardResultOut) -> None:
        write_into(attempt, LEADERBOARD_RESULT, result.model_dump_json())

    try:
        result = scored(
            engine,
            order,
            teachers=contents(blobs, order.files),
            weights=weights,
            known=earlier_scores(attempt),
            store=store,
        )
    finally:
        engine.close()
    print(f"{len(result.scores)} submissions evaluated. {result.failure}".strip(), flush=True)


def earlier_scores(attempt: Path) -> list[EntryScoreOut]:
    """Return the scores of earlier attempts at the same request, without faults."""
    found: list[EntryScoreOut] = []
    for path in sorted(attempt.parent.glob(f"*/{LEADERBOARD_RESULT}")):
        with suppress(OSError, ValidationError):
            found += LeaderboardResultOut.model_validate_json(path.read_bytes()).scores
    return [each for each in found if not each.fault]


def scored(
    engine: SandboxEngine,
    order: LeaderboardOrderOut,
    *,
    teachers: Mapping[str, bytes],
    weights: Callable[[WeightsRefOut], bytes],
    known: Sequence[EntryScoreOut] = (),
    store: Callable[[LeaderboardResultOut], None],
) -> LeaderboardResultOut:
    """Score all submissions of an order, each with a verdict.

    Args:
        known: scores of earlier attempts, which are kept.
        store: called with what is scored so far, after each group of submissions.

    Raises:
        BackendFailed, Unavailable: there is no sandbox.
    """
    scores = {each.entry: each for each in known}

    def result(failure: str = "") -> LeaderboardResultOut:
        """What is scored so far; without the submissions that are not evaluated yet."""
        there = [scores[each.entry] for each in order.entries if each.entry in scores]
        return LeaderboardResultOut(scores=there, failure=failure)

    def left() -> list[WeightsRefOut]:
        return [each for each in order.entries if each.entry not in scores]

    store(result())
    sandbox = _BatchSandbox(engine=engine, order=order, teachers=teachers)
    try:
        for batch in batches(left()):
            there = {}
            for each in batch:
                try:
                    there[each.entry] = weights(each)
                except (OSError, NotFound) as error:
                    print(f"{each.entry}: {error}", flush=True)
                    scores[each.entry] = _fault(each.entry, "Its file cannot be read any more.")
            for group in sandbox.scores(there):
                scores |= {each.entry: each for each in group}
                store(result())
    except InvalidInput as error:  # of the teacher's files: no other batch would do better
        why = "The files of the leaderboard failed, which your teacher has to correct."
        for each in left():
            scores[each.entry] = _fault(each.entry, why)
        store(result(error.message))
        return result(error.message)
    store(result())
    return result()


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


@dataclass(slots=True, kw_only=True)
class _BatchSandbox:
    """Scores batches, each in a sandbox of its own.

    Attributes:
        at_once: submissions of a group, which becomes less where the time of one is over.
    """

    engine: SandboxEngine
    order: LeaderboardOrderOut
    teachers: Mapping[str, bytes]
    at_once: int = SCORED_AT_ONCE

    def scores(self, batch: Mapping[str, bytes]) -> Iterator[list[EntryScoreOut]]:
        """Score a batch, and yield the scores of each group once it has them.

        Raises InvalidInput for the teacher's files; BackendFailed, Unavailable.
        """
        alone = {each.entry for each in self.order.entries if each.alone}
        groups = split([name for name in batch if name not in alone], self.at_once)
        groups += [[name] for name in batch if name in alone]
        while groups:
            run = _SandboxRun()
            yield from self._run(batch, groups, run)
            if not run.prepared:
                why = f"The files of the leaderboard could not be loaded. {run.sentence}"
                yield [_fault(name, why) for group in groups for name in group]
                return
            if len(run.not_run) == len(groups):
                yield [_fault(name, run.sentence) for group in groups for name in group]
                return
            stopped = [group[0] for group in run.failed if len(group) == 1]
            if stopped:
                yield [_fault(name, run.sentence, stopped=True) for name in stopped]
            self.at_once = min([self.at_once, *map(_half, run.too_slow)])
            groups = [
                part
                for group in (*run.too_slow, *run.not_run)
                for part in split(group, self.at_once)
            ]
            groups += [
                half
                for group in run.failed
                if len(group) > 1
                for half in split(group, min(self.at_once, _half(group)))
            ]

    def _run(
        self, batch: Mapping[str, bytes], groups: Sequence[Sequence[str]], run: _SandboxRun
    ) -> Iterator[list[EntryScoreOut]]:
        """Score groups in one sandbox; ``run`` gets those that have no scores."""
        sandbox = self._open({name: batch[name] for group in groups for name in group}, len(groups))
        steps = [CellStep(cell_id="prepare", source=_PREPARE)]
        steps += [
            CellStep(cell_id=f"group-{number}", source=f"evaluation.score({list(group)!r})")
            for number, group in enumerate(groups)
        ]
        try:
            ran = iter(sandbox.run(steps))
            run.prepared = _result(next(ran)) is not None
            for number, group in enumerate(groups if run.prepared else ()):
                each = next(ran)
                found = _result(each)
                if found is not None and found.keys() >= set(group):
                    yield [_score(name, found[name]) for name in group]
                elif each.status is CellStatus.NOT_RUN:
                    run.not_run.append(group)
                elif len(group) > 1 and _was_too_slow(each):
                    run.too_slow.append(group)
                    run.not_run += groups[number + 1 :]
                    break
                else:
                    run.failed.append(group)
        finally:
            run.sentence = sandbox.close().sentence or _STOPPED

    def _open(self, batch: Mapping[str, bytes], groups: int) -> Sandbox:
        """Open a sandbox with a batch, the teacher's files and the program."""
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
            seconds=seconds * (1 + groups),
            cell_seconds=seconds,
            memory_bytes=_MEMORY_BYTES,
            disk_bytes=max(SandboxLimits().disk_bytes, 2 * size),
        )
        return self.engine.open(limits, files)


@dataclass(slots=True, kw_only=True)
class _SandboxRun:
    """How one sandbox ended.

    Attributes:
        prepared: whether the teacher's files were loaded.
        too_slow: the group, of several submissions, whose time was over; no other ran after it.
        failed: the groups that it was stopped in.
        not_run: the groups that it did not come to.
    """

    prepared: bool = False
    too_slow: list[Sequence[str]] = field(default_factory=list)
    failed: list[Sequence[str]] = field(default_factory=list)
    not_run: list[Sequence[str]] = field(default_factory=list)
    sentence: str = ""


def _was_too_slow(ran: CellRun) -> bool:
    """Whether the time of a step was over; its kernel is killed where it does not react."""
    return ran.status is CellStatus.TIMEOUT or (
        ran.status is CellStatus.KILLED and ran.cause is StopReason.TIME
    )


def _half(group: Sequence[str]) -> int:
    return (len(group) + 1) // 2


def split(names: Sequence[str], most: int) -> list[Sequence[str]]:
    """Split names into groups of at most so many."""
    return [names[start : start + most] for start in range(0, len(names), most)]


def program_files() -> dict[str, bytes]:
    """The sources of the program, by their place in the folder of a sandbox."""
    package = Path(__file__).parents[2]
    return {
        f"carrel/{path.relative_to(package).as_posix()}": path.read_bytes()
        for pattern in _SOURCES
        for path in sorted(package.glob(pattern))
    }


def _result(ran: CellRun) -> dict[str, dict[str, object]] | None:
    """The scores that a step printed; None where it did not come to its end.

    Raises InvalidInput: the teacher's files failed.
    """
    printed = "".join(
        str(each.get("text", ""))
        for each in ran.outputs
        if each.get("output_type") == "stream" and each.get("name") == "stdout"
    )
    if ran.status is not CellStatus.OK:
        for each in ran.outputs:
            print(each.get("evalue") or each.get("text") or "", flush=True)
        return None
    # The teacher's files may print too, also after the result.
    for line in reversed(printed.splitlines()):
        with suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict) and "failure" in found:
                raise InvalidInput(str(found["failure"]))
            if isinstance(found, dict) and "scores" in found:
                scores: dict[str, dict[str, object]] = found["scores"]
                return scores
    return None


def _fault(name: str, sentence: str, *, stopped: bool = False) -> EntryScoreOut:
    return EntryScoreOut(entry=name, problem=sentence, fault=True, stopped=stopped)


def _score(name: str, found: Mapping[str, object]) -> EntryScoreOut:
    problem = str(found["problem"])
    if len(problem) > _LONGEST:
        problem = f"{problem[:_LONGEST]} …"
    return EntryScoreOut.model_validate({**found, "entry": name, "problem": problem})


if __name__ == "__main__":
    sys.exit(main())
