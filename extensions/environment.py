"""Where the Jupyter extensions lie, and what a session's server needs to find them.

Imports nothing of ours, so that the hub can ask for it without loading an extension.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_HERE = Path(__file__).parent
LAB = _HERE / "lab"
DASHBOARDS = _HERE / "dashboards"
NBGRADER = _HERE / "nbgrader"

DASHBOARD_NOTEBOOK = "dashboard.ipynb"
DASHBOARD_PATH = "carrel/dashboard"
"""Below the base URL of the user's server, as the two paths that follow."""
SESSION_STATUS_PATH = "carrel/standing"
"""The stream of the session's status."""
KEEP_SESSION_PATH = "carrel/keep"


def jupyter_environment(present: Mapping[str, str]) -> dict[str, str]:
    """Add the folders ``etc`` and ``share`` of each extension; existing entries stay in front."""
    configured = [home / "etc" for home in (DASHBOARDS, LAB, NBGRADER)]
    shared = [home / "share" for home in (DASHBOARDS, LAB)]
    return {
        "JUPYTER_CONFIG_PATH": _joined(present.get("JUPYTER_CONFIG_PATH"), configured),
        "JUPYTER_PATH": _joined(present.get("JUPYTER_PATH"), shared),
    }


def _joined(present: str | None, folders: list[Path]) -> str:
    return os.pathsep.join([*filter(None, [present]), *map(str, folders)])
