"""The documentation of Carrel at ``/help``, as ``docs/build.py`` has built it into this package.

Everyone may read it, also without a sign-in. Its pages keep to the Content-Security-Policy of all
other pages, and its search is Sphinx's own: an index that the browser loads. Only the reports of
``carrel simulate`` among its files, which are complete in one file, have styles of their own.
"""

from __future__ import annotations

from typing import Final

from fastapi import FastAPI
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from ...config.base_url import SERVICE_PREFIX
from ...errors import CarrelError, NotFound
from ...messages.help_pages import BUILT, help_page
from ...schemas.errors import NO_TYPE
from ..security.headers import POLICY
from .static_files import RevalidatedFiles

_PREFIX: Final = f"{SERVICE_PREFIX}help"

_REPORTS = "_static/simulations/"
_POLICY_OF_REPORTS = f"{POLICY}; style-src 'self' 'unsafe-inline'"


class _Documentation(RevalidatedFiles):
    """The built pages; an error that says how to build them if there are none."""

    async def check_config(self) -> None:
        """Accept that the documentation is not built."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        if not (BUILT / "index.html").is_file():
            raise NotFound(
                "The documentation of this installation has not been built.",
                accepted="Build it with `make docs` in the checkout of Carrel; no restart is "
                "needed. Its sources are the Markdown files in docs/.",
            )
        response = await super().get_response(path, scope)
        if path.startswith(_REPORTS):
            response.headers["Content-Security-Policy"] = _POLICY_OF_REPORTS
        return response


def install(app: FastAPI) -> None:
    app.mount(_PREFIX, _Documentation(directory=BUILT, html=True, check_dir=False), name="help")

    @app.get(_PREFIX, include_in_schema=False)
    def without_slash() -> RedirectResponse:
        return RedirectResponse(f"{_PREFIX}/")


def problem_type(error: CarrelError) -> str:
    """Return the path of the page about an error: the type of a problem as in RFC 9457."""
    about = help_page(error)
    return f"{_PREFIX}/{about}" if about else NO_TYPE
