"""The base of the handlers that call the service with the session's token."""

from __future__ import annotations

import json
from http import HTTPStatus

from jupyter_server.base.handlers import APIHandler

from ...hub.errors import CarrelError


class ServiceHandler(APIHandler):
    """Answers an error of the service with its sentence and the field that caused it."""

    def refuse(self, error: CarrelError) -> None:
        # JupyterLab takes 401 for the end of its own sign-in.
        refused = error.http_status == HTTPStatus.UNAUTHORIZED
        self.set_status(HTTPStatus.FORBIDDEN if refused else error.http_status)
        self.finish(json.dumps({"message": str(error), "field": error.field}))
