"""Finds the engine that makes cages by its entry point: courses imports no engine of containers."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import cast

from ...hub.errors import BackendFailed
from .interface import ENGINES, CageEngine, CageSettings, EngineFactory


def cage_engine(name: str, settings: CageSettings) -> CageEngine:
    """Raises BackendFailed where it is not installed, or misses what it needs."""
    found = entry_points(group=ENGINES, name=name)
    if not found:
        raise BackendFailed(f"No engine called {name!r} makes cages for grading.")
    factory = cast("EngineFactory", next(iter(found)).load())
    return factory(settings)
