"""Load the plug-ins for devices (entry point group ``carrel.devices``)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from ...hub.errors import BackendFailed
from ...hub.interfaces.devices import DevicePlugin
from .plugin_target import load_plugin

GROUP: Final = "carrel.devices"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledPlugin:
    """A plug-in, or the reason why it could not be loaded.

    Attributes:
        name: the name of its entry point, and of the driver in ``Device.driver``.
        target: the value of its entry point, by which another process loads it.
        plugin: None if it could not be loaded.
        problem: a sentence; empty if it was loaded.
    """

    name: str
    target: str
    plugin: DevicePlugin | None = None
    problem: str = ""

    def loaded(self) -> DevicePlugin:
        """Return the plug-in. Raises BackendFailed if it could not be loaded."""
        if self.plugin is None:
            raise BackendFailed(self.problem)
        return self.plugin


@cache
def installed_plugins() -> tuple[InstalledPlugin, ...]:
    """Return all plug-ins, sorted by name; one that cannot be loaded is logged and listed.

    Raises:
        BackendFailed: not even Carrel's own are installed.
    """
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if not found:
        # Without one, nothing would hide the devices of this machine from processes.
        raise BackendFailed(
            "No plug-in for devices is installed.",
            accepted="Reinstall Carrel: its entry points are missing.",
        )
    return tuple(_load(found[name]) for name in sorted(found))


def plugin_of(driver: str) -> DevicePlugin:
    """Return the plug-in of a driver. Raises BackendFailed if there is none."""
    for each in installed_plugins():
        if each.name == driver:
            return each.loaded()
    raise BackendFailed(
        f"No plug-in for devices of the driver {driver!r} is installed.",
        accepted="Install it again, or drain these devices.",
    )


def _load(entry: EntryPoint) -> InstalledPlugin:
    try:
        plugin = load_plugin(entry.value)
        _ = plugin.maker  # messages name it, also the one that says why its driver failed
    except Exception as error:  # the code of a plug-in may raise anything
        problem = (
            f"The plug-in {entry.name!r} for devices ({entry.value}) could not be loaded: "
            f"{type(error).__name__}: {error}."
        )
        log.warning("%s", problem)
        return InstalledPlugin(name=entry.name, target=entry.value, problem=problem)
    return InstalledPlugin(name=entry.name, target=entry.value, plugin=plugin)
