"""Load the gradebook of the installation's engine by its entry point."""

from __future__ import annotations

from typing import cast

from ...hub.config.backend import backend_settings
from ...hub.config.settings import Settings
from ...hub.config.state_folder import StateFolder
from ...hub.plugins import load_entry_point
from .writer import GradebookSettings, GradebookWriter, OpenBook


def load_gradebook(state: StateFolder, settings: Settings, *, course: str) -> GradebookWriter:
    """Open the gradebook of a course for writing. Raises CarrelError."""
    found = backend_settings(state, settings, None)
    opened = cast(OpenBook, load_entry_point("carrel.gradebooks", settings.engine))
    return opened(
        GradebookSettings(
            folder=state.course(course),
            course=course,
            installation=found.installation,
            docker=found.docker,
        )
    )
