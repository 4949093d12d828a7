"""Obstacles to sharing a cell, each with a sentence and advice on what would remove it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from .code_events import FrameLookup, Mention, SpecialText, StarImport
from .effect_rules import SEED_CALLS, Effect, EffectKind
from .ipython_syntax import Magic

Why: TypeAlias = "Callable[[str], str]"
_TAG: Final = "add the tag carrel-share to the cell"
_BELOW: Final = "move the line below the first cell that uses a parameter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """A reason why each trial has to run a cell itself.

    Attributes:
        line: of the cell, from 1; 0 for the whole cell.
        why: part of a sentence: ``writes files (df.to_csv)``.
        advice: a sentence on what a line would have to change to be.
    """

    line: int
    why: str
    advice: str


TAGGED: Final = Obstacle(
    line=0, why="has the tag carrel-no-share", advice="Remove the tag to share the cell."
)
SYNTAX: Final = Obstacle(
    line=0,
    why="cannot be parsed as Python, or is nested too deeply",
    advice=f"Correct the cell, or {_TAG} if it is the same in all trials.",
)
LANGUAGE: Final = Obstacle(
    line=0, why="is not Python, which alone is analysed", advice="Only Python can be shared."
)

_ADVICE = {
    EffectKind.WRITES: f"To share the cell, {_BELOW}, or {_TAG} if one write is enough.",
    EffectKind.OPENS: "Open the file in a with statement, or read it in the same expression: a "
    "file that stays open has one position for all trials.",
    EffectKind.TIME: f"To share the cell, {_BELOW}, or use %%time to measure it.",
    EffectKind.PROCESS: f"To share the cell, {_BELOW}, or {_TAG} if once is enough.",
    EffectKind.NETWORK: f"Read a local copy, or {_TAG} if all trials may use one answer.",
    EffectKind.INPUT: "Use a parameter instead.",
    EffectKind.DYNAMIC: f"Write the code into the cell, or {_TAG} if it only computes.",
    EffectKind.NAMESPACE: f"Use variables by their names, or {_TAG} if this changes nothing.",
    EffectKind.SERVICE: f"To share the cell, {_BELOW}.",
    EffectKind.UNKNOWN: f"To share the cell, {_TAG} if this only computes.",
}
_VERBS = {
    EffectKind.WRITES: "writes files",
    EffectKind.OPENS: "opens a file and leaves it open",
    EffectKind.TIME: "reads the clock",
    EffectKind.PROCESS: "starts or ends a process or thread",
    EffectKind.NETWORK: "uses the network",
    EffectKind.INPUT: "asks for input",
    EffectKind.DYNAMIC: "runs code that is not in its text",
    EffectKind.NAMESPACE: "may use all variables and functions",
    EffectKind.SERVICE: "belongs to the trial that runs it",
    EffectKind.RANDOM: "draws random numbers without a seed",
}


def name_obstacle(effect: Effect, mention: Mention, line: int, why: Why) -> Obstacle:
    """Return the obstacle that a mention of a name is; ``why`` completes its sentence."""
    shown = mention.shown
    if effect.kind is EffectKind.UNKNOWN and effect.origin:
        return Obstacle(
            line=line,
            why=why(f"passes the module {shown} on, so that its uses cannot be found"),
            advice="Name the functions of the module where they are used.",
        )
    if effect.kind is EffectKind.UNKNOWN:
        what = f"uses {shown}, which is not known to the analysis"
        return Obstacle(line=line, why=why(what), advice=_ADVICE[effect.kind])
    advice = _ADVICE.get(effect.kind, "")
    if effect.kind is EffectKind.RANDOM:
        call = SEED_CALLS.get(effect.origin)
        pass_seed = "pass a seed, such as random_state=0 or a generator with a seed"  # noqa: S105
        advice = f"Call {call} above it, or {pass_seed}." if call else "Give it a fixed seed."
    return Obstacle(line=line, why=why(f"{_VERBS[effect.kind]} ({shown})"), advice=advice)


def magic_obstacle(magic: Magic) -> Obstacle:
    """Return the obstacle that a magic or a shell command is."""
    what = "runs a shell command" if magic.shell else "has a magic that is not known to be harmless"
    return Obstacle(
        line=magic.line,
        why=f"{what} ({magic.shown})",
        advice=f"To share the cell, {_TAG} if it does the same in all trials.",
    )


def lookup_obstacle(event: FrameLookup, line: int, why: Why) -> Obstacle:
    """Return the obstacle that a call with a computed text is, which looks up names."""
    return Obstacle(
        line=line,
        why=why(f"calls {event.call} with a computed text, which may name any variable"),
        advice=f"Write the text as a constant, or {_TAG} if it names no parameter.",
    )


def unbound_obstacle(mention: Mention, line: int) -> Obstacle:
    """Return the obstacle that a lone name is, which IPython may take for a magic."""
    return Obstacle(
        line=line,
        why=f"has {mention.root} alone, which IPython may take for a magic",
        advice="Define the name in the notebook, or write a magic with %.",
    )


def star_obstacle(event: StarImport, line: int, why: Why) -> Obstacle:
    """Return the obstacle that an import of all names is."""
    return Obstacle(
        line=line,
        why=why(f"imports all names of {event.module}, which is not known to the analysis"),
        advice="Import the names that you use one by one.",
    )


def text_obstacle(event: SpecialText, line: int, why: Why) -> Obstacle:
    """Return the obstacle that an address or a variable of the job is."""
    shown = event.text[:40]
    if event.address:
        advice = _ADVICE[EffectKind.NETWORK]
        return Obstacle(line=line, why=why(f"names the address {shown}"), advice=advice)
    return Obstacle(
        line=line,
        why=why(f"names {shown}, which each trial has for itself"),
        advice=_ADVICE[EffectKind.SERVICE],
    )
