"""Finds the engine of an installation by its entry point: the hub side imports none."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import cast

from .config.backend import backend_settings
from .config.settings import EngineKind, Settings
from .config.state_folder import StateFolder
from .errors import BackendFailed
from .interfaces.backend import Backend
from .interfaces.backend_settings import BackendSettings
from .interfaces.host import HostSetup


def backend(state: StateFolder, settings: Settings, simulated: int | None) -> Backend:
    """Raises BackendFailed where the engine is not installed."""
    factory = _load("carrel.backends", settings.engine)
    return cast(Backend, factory(backend_settings(state, settings, simulated)))


def ground(state: StateFolder, settings: Settings) -> HostSetup | None:
    """What is below the three processes; None for the local engine, which stands on nothing."""
    if settings.engine is EngineKind.LOCAL:
        return None
    factory = _load("carrel.host_setups", settings.engine)
    return cast(HostSetup, factory(backend_settings(state, settings, settings.simulated_devices)))


def _load(group: str, name: str) -> Callable[[BackendSettings], object]:
    for entry in entry_points(group=group, name=name):
        return cast(Callable[[BackendSettings], object], entry.load())
    raise BackendFailed(
        f"The engine {name!r} is not installed.",
        accepted="Install Carrel anew: its entry points lack.",
    )
