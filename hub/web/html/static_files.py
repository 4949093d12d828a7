"""Static files of Carrel, and JupyterHub's theme.

The theme is read from the installed JupyterHub and served here, so that pages keep their style
while JupyterHub restarts, and always match the installed version.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from fastapi import FastAPI, Request
from jupyterhub._data import DATA_FILES_PATH
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from ...config.base_url import SERVICE_PREFIX
from ...supervisor.figure_libraries import path_of

_HERE = Path(__file__).parents[1]
_THEME = Path("static") / "css" / "style.min.css"
_IMPORT = re.compile(r"""@import\s*(?:url\()?["'][^"']*["']\)?\s*;""")


class RevalidatedFiles(StaticFiles):
    """Static files that browsers may cache, but must revalidate."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response


class _FigureLibraries(RevalidatedFiles):
    """The installed libraries that draw figures."""

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        found = path_of(path)
        return ("", None) if found is None else (str(found), found.stat())

    async def check_config(self) -> None:
        """Accept that no library is installed."""


def install(app: FastAPI) -> None:
    css = theme()
    tag = f'"{hashlib.sha256(css).hexdigest()[:16]}"'

    @app.get(f"{SERVICE_PREFIX}static/theme.css", include_in_schema=False)
    def theme_css(request: Request) -> Response:
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(css, media_type="text/css; charset=utf-8", headers=headers)

    app.mount(f"{SERVICE_PREFIX}static/figures", _FigureLibraries(check_dir=False))
    app.mount(
        f"{SERVICE_PREFIX}static", RevalidatedFiles(directory=_HERE / "static"), name="static"
    )


def theme() -> bytes:
    """Return JupyterHub's Bootstrap theme without its icon fonts, which Carrel does not use."""
    text = (Path(DATA_FILES_PATH) / _THEME).read_text(encoding="utf-8-sig")
    return _IMPORT.sub("", text).encode()
