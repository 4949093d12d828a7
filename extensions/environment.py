"""Locate the Jupyter extensions, and form the environment by which a session's server finds them.

Imports nothing of Carrel, so that the hub can use it without loading an extension.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

_HERE = Path(__file__).parent
LAB = _HERE / "lab"
DASHBOARDS = _HERE / "dashboards"
NBGRADER = _HERE / "nbgrader"
NOTEBOOK_JOBS = _HERE / "notebook_jobs"

DASHBOARD_NOTEBOOK = "dashboard.ipynb"
DASHBOARD_PATH = "carrel/dashboard"
"""Path below the base URL of the user's server, like those that follow."""
LOG_VIEWER_PATHS = MappingProxyType(
    {"tensorboard": "carrel/tensorboard", "mlflow": "carrel/mlflow"}
)
"""Paths of what shows the logs of jobs; the query or the next segment names the job."""
SERVED_PATH = "carrel/served"
"""Path of what ``carrel serve`` serves; the next segment is its name."""
SESSION_STATUS_PATH = "carrel/standing"
"""Path of the stream of session statuses."""
KEEP_SESSION_PATH = "carrel/keep"
CLAIM_PATH = "carrel/claim"
GIVE_UP_PATH = "carrel/give-up"
PANEL_PATH = "carrel/panel"
"""Path of what JupyterLab's panel and commands read and do; the name of an operation follows."""
JOURNAL_PATH = "carrel/journal"
"""Path of the journals of outputs; the id of a kernel follows."""


def jupyter_environment(present: Mapping[str, str]) -> dict[str, str]:
    """Add the folders ``etc`` and ``share`` of each extension after the existing entries."""
    configured = [home / "etc" for home in (DASHBOARDS, LAB, NBGRADER, NOTEBOOK_JOBS)]
    shared = [home / "share" for home in (DASHBOARDS, LAB)]
    return {
        "JUPYTER_CONFIG_PATH": _joined(present.get("JUPYTER_CONFIG_PATH"), configured),
        "JUPYTER_PATH": _joined(present.get("JUPYTER_PATH"), shared),
    }


def _joined(present: str | None, folders: list[Path]) -> str:
    return os.pathsep.join([*filter(None, [present]), *map(str, folders)])
