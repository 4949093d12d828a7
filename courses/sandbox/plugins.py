"""Finds the engine that makes cages by its entry point: courses imports no engine of containers."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import cast

from ...hub.config.backend import backend_settings
from ...hub.config.settings import Settings
from ...hub.config.state_folder import StateFolder
from ...hub.errors import BackendFailed
from ...hub.files.filenames import safe_name
from ...hub.interfaces.backend_settings import COURSES
from .interface import ENGINES, EngineFactory, SandboxEngine, SandboxSettings


def cage_engine(name: str, settings: SandboxSettings) -> SandboxEngine:
    """Raises BackendFailed where it is not installed, or misses what it needs."""
    found = entry_points(group=ENGINES, name=name)
    if not found:
        raise BackendFailed(f"No engine called {name!r} makes cages for grading.")
    factory = cast("EngineFactory", next(iter(found)).load())
    return factory(settings)


def cages(
    state: StateFolder, settings: Settings, *, course: str, image: str, imports: tuple[str, ...]
) -> SandboxEngine:
    """Where submissions run: a ``MakeCages``."""
    found = backend_settings(state, settings, None)
    data = state.course_data(course)
    return cage_engine(
        settings.engine,
        SandboxSettings(
            data={f"{COURSES}/{safe_name(course)}": data} if data.is_dir() else {},
            installation=found.installation,
            docker=found.docker,
            image=image,
            imports=imports,
        ),
    )
