"""Find the calls in a notebook that set a seed, as they are written there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Final

from ..provenance.receipt import SeedOut

MOST_SEEDS: Final = 50
_LONGEST: Final = 200
_NAMES: Final = frozenset(
    {"seed", "manual_seed", "manual_seed_all", "set_seed", "seed_everything", "set_random_seed"}
    | {"default_rng", "RandomState", "PRNGKey", "SeedSequence"}
)
_ARGUMENTS: Final = frozenset({"random_state", "seed"})


def seeds_of(sources: Sequence[str]) -> list[SeedOut]:
    """Return the calls in the code cells; a cell that is no Python has none."""
    found = [
        SeedOut(cell=number, call=call)
        for number, source in enumerate(sources, 1)
        for call in _calls(source)
    ]
    return found[:MOST_SEEDS]


def _calls(source: str) -> Iterator[str]:
    # Magics are no Python; the other lines of their cell are.
    lines = ["" if line.lstrip()[:1] in ("%", "!") else line for line in source.split("\n")]
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        given = bool(node.args or node.keywords)
        if (name in _NAMES and given) or any(key.arg in _ARGUMENTS for key in node.keywords):
            yield ast.unparse(node)[:_LONGEST]
