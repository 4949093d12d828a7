"""Load a plug-in by the value of its entry point.

Each query of a driver does this in its own process. ``importlib.metadata``, with which an entry
point loads itself, would take longer to import than the rest of that process.
"""

from __future__ import annotations

import importlib
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from ...hub.interfaces.devices import DevicePlugin


def load_plugin(target: str) -> DevicePlugin:
    """Return the plug-in that ``MODULE:CLASS`` names; raises whatever its code raises."""
    module, _, name = target.partition(":")
    factory: Any = reduce(getattr, name.split("."), importlib.import_module(module))
    return cast("DevicePlugin", factory())
