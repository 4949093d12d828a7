"""Load the sandbox engine of an installation by entry point."""

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


def load_sandbox_engine(name: str, settings: SandboxSettings) -> SandboxEngine:
    """Load an engine by name. Raises BackendFailed if it is missing or lacks what it needs."""
    found = entry_points(group=ENGINES, name=name)
    if not found:
        raise BackendFailed(f"The sandbox engine {name!r} for grading is not installed.")
    factory = cast("EngineFactory", next(iter(found)).load())
    return factory(settings)


def load_sandbox(
    state: StateFolder, settings: Settings, *, course: str, image: str, imports: tuple[str, ...]
) -> SandboxEngine:
    """Load the engine that runs the submissions of a course: a ``SandboxFactory``."""
    found = backend_settings(state, settings, None)
    data = state.course_data(course)
    return load_sandbox_engine(
        settings.engine,
        SandboxSettings(
            data={f"{COURSES}/{safe_name(course)}": data} if data.is_dir() else {},
            installation=found.installation,
            docker=found.docker,
            image=image,
            imports=imports,
        ),
    )
