"""Execute the trials of a sweep whole, as papermill does, and by the stages of its tree.

Both happen in a small world with its own clock, random numbers and files, in which each trial has
its own entropy: a stage that several trials share has another one, and writes files for nobody, so
that sharing what must not be shared changes a result.
"""

from __future__ import annotations

import builtins
import io
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, GeneratorType, ModuleType
from typing import Any

from carrel.hub.sweeps.ipython_syntax import parse_cell
from carrel.hub.sweeps.stage_tree import StageTree
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


def run_whole(cells: Sequence[str], injection: int, trial: Trial) -> Outcome:
    """Execute all cells, with all parameters assigned in the place where papermill does it."""
    world = World(trial.number)
    return _run(cells, world, lambda index, names: _assign(names, trial.values, index == injection))


def run_by_stages(cells: Sequence[str], tree: StageTree, trial: Trial) -> Outcome:
    """Execute the stages of one trial, one after the other in one namespace.

    To execute what a stage did before a branch again is the same as to fork there, since all that
    could differ is in the world.
    """
    stages = tree.stages_of(trial.number)
    world = World(SHARED)

    def before(index: int, names: dict[str, Any]) -> None:
        for stage in stages:
            if stage.first <= index < stage.after and len(stage.trials) == 1:
                world.become(trial.number)
            if stage.assigned_before == index and (index < stage.after or not stage.children):
                names.update(stage.assigned)

    return _run(cells, world, before)


def _assign(names: dict[str, Any], values: Mapping[str, object], now: bool) -> None:
    if now:
        names.update(values)


def _run(
    cells: Sequence[str], world: World, before: Callable[[int, dict[str, Any]], None]
) -> Outcome:
    names = world.namespace()
    failed = None
    for index, source in enumerate([*cells, ""]):
        before(index, names)
        tree = parse_cell(source).tree
        assert tree is not None, source
        try:
            exec(compile(tree, f"cell {index}", "exec"), names)  # noqa: S102  # the notebook
        except Exception as error:  # of any kind
            failed = index, type(error).__name__
            break
    seen: dict[int, int] = {}
    return Outcome(
        failed=failed,
        printed=tuple(world.printed),
        written=tuple(world.written),
        variables={
            name: _structure(names[name], seen) for name in sorted(names) if name != "__builtins__"
        },
    )


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
