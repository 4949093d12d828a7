"""TODO."""

from __future__ import annotations

from typing import cast

from ...hub.config.backend import backend_settings
from ...hub.config.settings import Settings
from ...hub.config.state_folder import StateFolder
from ...hub.plugins import _load
from .writer import GradebookSettings, GradebookWriter, OpenBook


def book(state: StateFolder, settings: Settings, *, course: str) -> GradebookWriter:
    """The gradebook of a course, to be written. Raises CarrelError."""
    found = backend_settings(state, settings, None)
    opened = cast(OpenBook, _load("carrel.gradebooks", settings.engine))
    return opened(
        GradebookSettings(
            folder=state.course(course),
            course=course,
            installation=found.installation,
            docker=found.docker,
        )
    )
