"""Open the TensorBoard logs of a job in the user's server: start a process, and pass calls on.

carrel/tensorboard?job=ID       copies the logs, starts TensorBoard, and redirects to
carrel/tensorboard/ID/…         which is passed on to its Unix socket
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections import OrderedDict
from dataclasses import dataclass
from html import escape
from http import HTTPStatus
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import url_path_join
from tornado.httpclient import HTTPRequest
from tornado.netutil import Resolver
from tornado.simple_httpclient import SimpleAsyncHTTPClient
from tornado.web import HTTPError, authenticated

from ...hub.errors import CarrelError
from ..environment import TENSORBOARD_PATH
from ..job import client_of
from .tensorboard_logs import copy_event_files

MOST = 3
"""TensorBoards of one server; one more ends the one that was opened first."""
START_SECONDS = 60.0
CALL_SECONDS = 120.0
_FOLDER = "carrel-tensorboard-"
_LOOK_SECONDS = 0.1
_LARGEST_ANSWER = 256 << 20
_JOB = re.compile(r"j-[a-z0-9]{4,32}")
_PROCESS = "carrel.extensions.dashboards.tensorboard_process"
_FROM_BROWSER = ("Accept", "Content-Type", "If-None-Match", "X-XSRF-Protected")
_TO_BROWSER = (
    "Content-Type", "Content-Encoding", "Content-Disposition", "Content-Security-Policy",
    "Cache-Control", "ETag", "Expires", "Location", "X-Content-Type-Options",
)  # fmt: skip  # a list


_NOT_INSTALLED = (
    "TensorBoard is not installed in this session. Run “pip install tensorboard” in a terminal of "
    "the session, and click “Open in TensorBoard” again."
)
_PAGE = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>TensorBoard</title><link rel="icon" href="data:;base64,=">
<style>
  :root {{ color-scheme: light dark; }}
  body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; }}
</style></head>
<body><main><h1>TensorBoard</h1><p role="alert">{}</p></main></body>
</html>
"""


class _SocketResolver(Resolver):
    """Connects to a Unix socket, whatever the host."""

    def initialize(self, path: Path) -> None:
        self._path = str(path)

    async def resolve(
        self, _host: str, _port: int, _family: int = socket.AF_UNSPEC
    ) -> list[tuple[int, str]]:
        return [(socket.AF_UNIX, self._path)]


@dataclass(frozen=True, slots=True)
class TensorBoard:
    """A running process, and its folder with the logs and the socket."""

    process: subprocess.Popen[bytes]
    folder: Path

    @classmethod
    def start(cls, folder: Path, prefix: str) -> TensorBoard:
        process = subprocess.Popen(
            [
                sys.executable,
                "-P",  # nothing in the home takes the place of a module
                "-m",
                _PROCESS,
                str(folder / "logs"),
                prefix,
                str(folder / "socket"),
            ],
            # It lists itself in a file there, readable by all users.
            env={**os.environ, "TMPDIR": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        return cls(process, folder)

    @property
    def socket(self) -> Path:
        return self.folder / "socket"

    def answers(self) -> bool:
        """Return whether it accepts connections. Raises OSError if its process has ended."""
        if self.process.poll() is not None:
            raise OSError("its process has ended; the log of the session says why")
        with socket.socket(socket.AF_UNIX) as tried:
            return tried.connect_ex(str(self.socket)) == 0

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class TensorBoards:
    """The TensorBoards of this server, by job."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._running: OrderedDict[str, TensorBoard] = OrderedDict()
        self._starting = asyncio.Lock()

    def get(self, job: str) -> TensorBoard | None:
        found = self._running.get(job)
        return found if found is not None and found.process.poll() is None else None

    async def open(self, job: str) -> None:
        """Copy what the job has written so far, and start its TensorBoard unless it runs.

        Raises:
            CarrelError: the logs cannot be read.
            OSError: they cannot be written.
            TimeoutError: it does not start.
        """
        async with self._starting:
            found = self.get(job)
            folder = found.folder if found else _new_folder()
            try:
                await asyncio.to_thread(copy_event_files, client_of(), job, folder / "logs")
                if found is None:
                    found = await self._start(job, folder)
            except BaseException:
                if found is None:
                    shutil.rmtree(folder, ignore_errors=True)
                raise

    async def _start(self, job: str, folder: Path) -> TensorBoard:
        prefix = url_path_join(self._base, TENSORBOARD_PATH, job)
        made = await asyncio.to_thread(TensorBoard.start, folder, prefix)
        try:
            async with asyncio.timeout(START_SECONDS):
                while not made.answers():
                    await asyncio.sleep(_LOOK_SECONDS)
        except BaseException:
            made.end()
            raise
        if old := self._running.pop(job, None):
            old.end()
        self._running[job] = made
        while len(self._running) > MOST:
            self._running.popitem(last=False)[1].end()
        return made


def _new_folder() -> Path:
    """Return a private folder, with the id of this process in its name.

    Folders of servers that were killed are removed.
    """
    for old in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        server = old.name.removeprefix(_FOLDER).partition("-")[0]
        with contextlib.suppress(OSError):
            if old.stat().st_uid == os.geteuid() and not Path("/proc", server).exists():
                shutil.rmtree(old)
    return Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-"))


class _TensorBoardHandler(JupyterHandler):
    def initialize(self, boards: TensorBoards) -> None:
        self.boards = boards


class TensorBoardOpenHandler(_TensorBoardHandler):
    """Opens the logs of a job."""

    @authenticated
    async def get(self) -> None:
        job = self.get_query_argument("job", "")
        if not _JOB.fullmatch(job):
            await self._refuse(HTTPStatus.BAD_REQUEST, "The address names no job.")
            return
        invalidate_caches()  # it may have been installed since
        if find_spec("tensorboard") is None:
            await self._refuse(HTTPStatus.NOT_FOUND, _NOT_INSTALLED)
            return
        try:
            await self.boards.open(job)
        except CarrelError as error:
            await self._refuse(error.http_status, str(error))
        except OSError as error:
            reason = str(error) or f"it took more than {START_SECONDS:g} seconds"
            sentence = f"TensorBoard does not start: {reason}."
            await self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, sentence)
        else:
            self.redirect(url_path_join(self.base_url, TENSORBOARD_PATH, job, "/"))

    async def _refuse(self, status: int, sentence: str) -> None:
        """Say why it cannot be opened: Jupyter's own page of a status does not."""
        self.set_status(status)
        await self.finish(_PAGE.format(escape(sentence)))


class TensorBoardProxyHandler(_TensorBoardHandler):
    """Passes calls on to the TensorBoard of a job."""

    def check_xsrf_cookie(self) -> None:
        """Accept what TensorBoard's own page sends: other sites cannot set this header."""
        if self.request.method != "GET" and "X-XSRF-Protected" not in self.request.headers:
            raise HTTPError(HTTPStatus.FORBIDDEN, "The call does not come from TensorBoard.")

    @authenticated
    async def get(self, job: str) -> None:
        await self._forward(job)

    @authenticated
    async def post(self, job: str) -> None:
        await self._forward(job)

    async def _forward(self, job: str) -> None:
        board = self.boards.get(job)
        if board is None:  # the server was restarted
            opens = url_path_join(self.base_url, TENSORBOARD_PATH)
            self.redirect(f"{opens}?job={job}")
            return
        client = SimpleAsyncHTTPClient(
            force_instance=True,
            resolver=_SocketResolver(path=board.socket),
            max_body_size=_LARGEST_ANSWER,
        )
        given = self.request.headers
        request = HTTPRequest(
            f"http://localhost{self.request.uri}",
            method=self.request.method or "GET",
            headers={name: given[name] for name in _FROM_BROWSER if name in given},
            body=self.request.body or None,
            allow_nonstandard_methods=True,
            decompress_response=False,
            follow_redirects=False,
            request_timeout=CALL_SECONDS,
        )
        with contextlib.closing(client):
            answer = await client.fetch(request, raise_error=False)
        self.set_status(answer.code)
        for name in _TO_BROWSER:
            if name in answer.headers:
                self.set_header(name, answer.headers[name])
        if answer.code not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
            self.write(answer.body)
        await self.finish()


def install_tensorboard(server_app: ServerApp) -> None:
    """Add the routes."""
    base = server_app.web_app.settings["base_url"]
    boards = {"boards": TensorBoards(base)}
    path = url_path_join(base, TENSORBOARD_PATH)
    routes = [
        (path, TensorBoardOpenHandler, boards),
        (f"{path}/({_JOB.pattern})/.*", TensorBoardProxyHandler, boards),
    ]
    server_app.web_app.add_handlers(".*$", routes)  # type: ignore[no-untyped-call]  # tornado
