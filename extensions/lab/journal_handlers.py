"""The paths by which a page reads the journal of its kernel, and reports what it has saved."""

from __future__ import annotations

import json
from http import HTTPStatus

from jupyter_server.base.handlers import APIHandler
from tornado import web

from .kernel_activity import ServerKernelManager
from .kernel_journals import KernelJournals


class _JournalHandler(APIHandler):
    auth_resource = "kernels"

    def initialize(self, journals: KernelJournals, kernels: ServerKernelManager) -> None:
        self.journals = journals
        self.kernels = kernels

    def check_kernel(self, kernel: str) -> None:
        if kernel not in self.kernels.list_kernel_ids():
            raise web.HTTPError(HTTPStatus.NOT_FOUND, f"no kernel {kernel} runs on this server")


class JournalHandler(_JournalHandler):
    """Answers the executions of a kernel that have changed after a number."""

    @web.authenticated
    def get(self, kernel: str) -> None:
        self.check_kernel(kernel)
        said = self.get_query_argument("after", "-1")
        try:
            after = int(said)
        except ValueError:
            message = f"after is {said!r}; accepted is the number of an earlier answer"
            raise web.HTTPError(HTTPStatus.BAD_REQUEST, message) from None
        changes = self.journals.changes(
            kernel,
            after,
            notebook=self.get_query_argument("notebook", ""),
            running=self.kernels.list_kernel_ids(),
        )
        self.set_header("Cache-Control", "no-store")
        self.finish(json.dumps(changes))


class SavedHandler(_JournalHandler):
    """Removes finished executions that a saved notebook has."""

    @web.authenticated
    def post(self, kernel: str) -> None:
        self.check_kernel(kernel)
        body = self.get_json_body()
        requests = body.get("requests") if isinstance(body, dict) else None
        if not isinstance(requests, list) or not all(isinstance(it, str) for it in requests):
            message = 'accepted is {"requests": [ids of requests]}'
            raise web.HTTPError(HTTPStatus.BAD_REQUEST, message)
        self.journals.settle(kernel, requests)
        self.set_status(HTTPStatus.NO_CONTENT)
        self.finish()
