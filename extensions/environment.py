"""What a session's environment needs so that its Jupyter server finds Carrel's extensions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from .dashboards import place as dashboards
from .lab import place as lab
from .nbgrader import place as nbgrader


def jupyter_environment(present: Mapping[str, str]) -> dict[str, str]:
    """The folders ``etc`` and ``share`` of each; what is there already stays in front."""
    homes = (dashboards.HERE, lab.HERE)
    configured = [home / "etc" for home in (*homes, nbgrader.HERE)]
    return {
        "JUPYTER_CONFIG_PATH": _joined(present.get("JUPYTER_CONFIG_PATH"), configured),
        "JUPYTER_PATH": _joined(present.get("JUPYTER_PATH"), [home / "share" for home in homes]),
    }


def _joined(present: str | None, folders: list[Path]) -> str:
    return os.pathsep.join([*filter(None, [present]), *map(str, folders)])
