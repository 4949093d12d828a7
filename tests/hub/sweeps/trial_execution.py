"""Execute the trials of a sweep whole, as papermill does, and by the stages of its tree.

Both happen in a small world with its own clock, random numbers and files, in which each trial has
its own entropy: a stage that several trials share has another one, and writes files that no trial
reads, so that sharing what must not be shared changes a result.
"""

from __future__ import annotations

import builtins
import io
import os
import pickle
import random
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, GeneratorType, ModuleType
from typing import Any

from carrel.hub.sweeps.ipython_syntax import parse_cell
from carrel.hub.sweeps.stage_tree import Stage, StageTree
from carrel.hub.sweeps.trials import Trial

SHARED = 10**6
"""The entropy of a stage that several trials share."""


@dataclass(slots=True)
class World:
    """What a run sees beside its variables."""

    entropy: int
    seeded: bool = False
    printed: list[str] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    generator: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        self.generator.seed(self.entropy)

    def become(self, entropy: int) -> None:
        """From now on, belong to one trial."""
        if entropy != self.entropy and not self.seeded:
            self.generator.seed(entropy)
        self.entropy = entropy

    def seed(self, value: object = None) -> None:
        if not isinstance(value, int | float | str | None):
            raise TypeError(type(value))  # as random.seed does
        self.seeded = value is not None
        self.generator.seed(self.entropy if value is None else str(value))

    def modules(self) -> Mapping[str, ModuleType]:
        chance, clock = ModuleType("random"), ModuleType("time")
        vars(chance).update(seed=self.seed, randint=self.generator.randint)
        vars(clock).update(time=lambda: self.entropy)
        # It replaces a parameter if all its names are imported.
        numbers = ModuleType("math")
        vars(numbers).update(lr=9, pi=3)
        return {"random": chance, "time": clock, "math": numbers}

    def namespace(self) -> dict[str, Any]:
        modules = self.modules()

        def imported(name: str, *_: object) -> ModuleType:
            return modules[name]

        def opened(name: str, mode: str = "r") -> io.StringIO:
            if mode != "r":
                self.written.append(self.entropy)
            return io.StringIO(name)

        def shown(*values: object) -> None:
            self.printed.append(" ".join(map(repr, map(_plain, values))))

        own = {"__import__": imported, "open": opened, "print": shown}
        return {"__builtins__": vars(builtins) | own, "__name__": "__main__"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is left of a run.

    Attributes:
        failed: the index of the cell that raised, with the class of the error; None if none did.
        variables: the final variables with their structure, in which equal numbers stand for the
            same object.
    """

    failed: tuple[int, str] | None
    printed: tuple[str, ...]
    written: tuple[int, ...]
    variables: Mapping[str, object]


@dataclass(slots=True)
class _Run:
    world: World
    names: dict[str, Any]
    failed: tuple[int, str] | None = None

    @classmethod
    def begin(cls, entropy: int) -> _Run:
        world = World(entropy)
        return cls(world, world.namespace())

    def execute(self, index: int, source: str) -> None:
        """Execute a cell, unless one has failed."""
        tree = parse_cell(source).tree
        assert tree is not None, source
        try:
            exec(compile(tree, f"cell {index}", "exec"), self.names)  # noqa: S102  # the notebook
        except Exception as error:  # of any kind
            self.failed = index, type(error).__name__

    def outcome(self) -> Outcome:
        seen: dict[int, int] = {}
        names = self.names
        return Outcome(
            failed=self.failed,
            printed=tuple(self.world.printed),
            written=tuple(self.world.written),
            variables={
                name: _structure(names[name], seen)
                for name in sorted(names)
                if name != "__builtins__"
            },
        )


def run_whole(cells: Sequence[str], injection: int, trial: Trial) -> Outcome:
    """Execute all cells, with all parameters assigned in the place where papermill does it."""
    run = _Run.begin(trial.number)
    for index, source in enumerate([*cells, ""]):
        if index == injection and run.failed is None:
            run.names.update(trial.values)
        if run.failed is None:
            run.execute(index, source)
    return run.outcome()


def run_by_stages(cells: Sequence[str], tree: StageTree, trial: Trial) -> Outcome:
    """Execute the stages of one trial, one after the other in one namespace.

    To execute what a stage did before a branch again is the same as to fork there, since all that
    could differ is in the world.
    """
    run = _Run.begin(SHARED)
    for stage in tree.stages_of(trial.number):
        _execute_stage(run, cells, stage)
    return run.outcome()


def _execute_stage(run: _Run, cells: Sequence[str], stage: Stage) -> None:
    if len(stage.trials) == 1:
        run.world.become(stage.trials[0])
    for index in range(stage.first, stage.after + 1):
        if index == stage.assigned_before and run.failed is None:
            run.names.update(stage.assigned)
        if index < stage.after and run.failed is None:
            run.execute(index, cells[index])


def run_by_forks(cells: Sequence[str], tree: StageTree) -> Mapping[int, Outcome]:
    """Execute each stage once, and fork the process where trials branch."""
    run = _Run.begin(SHARED)
    return _forked(run, cells, tree.root)


def _forked(run: _Run, cells: Sequence[str], stage: Stage) -> Mapping[int, Outcome]:
    _execute_stage(run, cells, stage)
    if not stage.children:
        outcome = run.outcome()
        return dict.fromkeys(stage.trials, outcome)
    found: dict[int, Outcome] = {}
    for child in stage.children:
        receiving, sending = os.pipe()
        process = os.fork()
        if process == 0:
            try:
                with os.fdopen(sending, "wb") as pipe:
                    pickle.dump(_forked(run, cells, child), pipe)
            finally:
                os.kill(os.getpid(), signal.SIGKILL)  # it runs none of the test's own exits
        os.close(sending)
        with os.fdopen(receiving, "rb") as pipe:
            found |= pickle.load(pipe)  # noqa: S301  # from its own child
        os.waitpid(process, 0)
    return found


def _plain(value: object) -> object:
    return _structure(value, {})


def _structure(value: object, seen: dict[int, int]) -> object:
    """Return a value in which identical containers have the same number."""
    if isinstance(value, str):
        return re.sub("0x[0-9a-f]+", "0x…", value)
    if isinstance(value, int | float | None):
        return value
    if id(value) in seen:
        return ("same", seen[id(value)])
    number = seen[id(value)] = len(seen)
    match value:
        case list() | tuple():
            return (number, [_structure(each, seen) for each in value])
        case dict() if type(value) is dict:
            return (number, {key: _structure(value[key], seen) for key in value})
        case FunctionType():
            code = value.__name__, value.__code__.co_names, value.__code__.co_code
            return (number, *code, _structure(value.__defaults__, seen))
        case GeneratorType():
            return (number, "generator")
        case type() | ModuleType() | BuiltinFunctionType():
            return (number, value.__name__)
        case _:
            own = getattr(value, "__dict__", {}).items()
            inner = {key: _structure(each, seen) for key, each in own}
            return (number, type(value).__name__, inner)
