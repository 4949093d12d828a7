"""Load the backend and the host setup of an installation by entry point."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from typing import cast

from .config.backend import backend_settings
from .config.settings import EngineKind, Settings
from .config.site import SiteFile
from .config.state_folder import StateFolder
from .errors import BackendFailed
from .interfaces.backend import Backend
from .interfaces.backend_settings import BackendSettings
from .interfaces.host import ClusterUsage, HostSetup, QuotaMirror
from .records.diagnostics import Finding


def load_backend(state: StateFolder, settings: Settings, simulated: int | None) -> Backend:
    """Load the configured backend. Raises BackendFailed if it is not installed."""
    factory = load_entry_point("carrel.backends", settings.engine)
    return cast(Backend, factory(backend_settings(state, settings, simulated)))


def load_host_setup(
    state: StateFolder, settings: Settings, *, site: SiteFile | None = None
) -> HostSetup | None:
    """Load what prepares the host for containers; None for the local engine.

    ``site``: contents instead of those of carrel.toml.
    """
    if settings.engine is EngineKind.LOCAL:
        return None
    factory = load_entry_point("carrel.host_setups", settings.engine)
    simulated = settings.simulated_devices
    return cast(HostSetup, factory(backend_settings(state, settings, simulated, site=site)))


def load_quota_mirror(state: StateFolder, settings: Settings) -> QuotaMirror:
    """Load what mirrors quotas to a cluster. Raises BackendFailed if the engine has no accounts."""
    factory = load_entry_point("carrel.quota_mirrors", settings.engine)
    return cast(QuotaMirror, factory(backend_settings(state, settings, None)))


def load_cluster_usage(state: StateFolder, settings: Settings) -> ClusterUsage:
    """Load what reads the accounts of a cluster. Raises BackendFailed if the engine has none."""
    factory = load_entry_point("carrel.cluster_usage", settings.engine)
    return cast(ClusterUsage, factory(backend_settings(state, settings, None)))


def device_findings(state: StateFolder, settings: Settings) -> Iterable[Finding]:
    """Check the drivers of devices on this machine, for ``carrel doctor``."""
    check = load_entry_point("carrel.doctor_checks", "devices")
    simulated = settings.simulated_devices
    return cast(Iterable[Finding], check(backend_settings(state, settings, simulated)))


def load_entry_point(group: str, name: str) -> Callable[[BackendSettings], object]:
    """Load a factory. Raises BackendFailed if no entry point of the group has this name."""
    for entry in entry_points(group=group, name=name):
        return cast(Callable[[BackendSettings], object], entry.load())
    raise BackendFailed(
        f"The entry point {name!r} of {group} is not installed.",
        accepted="Reinstall Carrel: its entry points are missing.",
    )
