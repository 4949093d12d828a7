"""Open the logs of a job in the user's server: start TensorBoard or MLflow, and pass calls on.

carrel/tensorboard?job=ID       copies the logs, starts TensorBoard, and redirects to
carrel/tensorboard/ID/…         which is passed on to its Unix socket

carrel/mlflow does the same with MLflow.
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
from sysconfig import get_path

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import url_path_join
from tornado.web import HTTPError, authenticated

from ...hub.errors import CarrelError
from ...hub.files.log_viewers import LOG_VIEWERS, LogViewer
from ..environment import LOG_VIEWER_PATHS
from ..job import client_of
from .job_logs import copy_logs
from .socket_proxy import pass_on

MOST = 3
"""Jobs whose logs one server shows at a time; one more ends the one that was opened first."""
START_SECONDS = 90.0
_FOLDER = "carrel-logs-"
_LOOK_SECONDS = 0.1
_JOB = re.compile(r"j-[a-z0-9]{4,32}")
_PROCESS = "carrel.extensions.dashboards.{}_process"

_NOT_INSTALLED = "{title} is not installed in this session. "
_INSTALL = (
    "Run “pip install {name}” in a terminal of the session, and click “Open in {title}” again."
)
_OTHER_IMAGE = (
    "Packages cannot be added to it: start the session with an image that has {name}, or ask your "
    "administrator for one."
)
_PAGE = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><link rel="icon" href="data:;base64,=">
<style>
  :root {{ color-scheme: light dark; }}
  body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; }}
</style></head>
<body><main><h1>{title}</h1><p role="alert">{sentence}</p></main></body>
</html>
"""


@dataclass(frozen=True, slots=True)
class ViewerProcess:
    """A running viewer, and its folder with the logs and the socket."""

    process: subprocess.Popen[bytes]
    folder: Path

    @classmethod
    def start(cls, viewer: LogViewer, folder: Path, prefix: str) -> ViewerProcess:
        process = subprocess.Popen(
            [
                sys.executable,
                "-P",  # nothing in the home takes the place of a module
                "-m",
                _PROCESS.format(viewer.name),
                str(folder / "logs"),
                prefix,
                str(folder / "socket"),
            ],
            # TensorBoard lists itself in a file there, readable by all users.
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


class ViewerProcesses:
    """The processes of one viewer in this server, by job."""

    def __init__(self, viewer: LogViewer, base: str) -> None:
        self.viewer = viewer
        self.address = url_path_join(base, LOG_VIEWER_PATHS[viewer.name])
        self._running: OrderedDict[str, ViewerProcess] = OrderedDict()
        self._starting = asyncio.Lock()

    def get(self, job: str) -> ViewerProcess | None:
        found = self._running.get(job)
        return found if found is not None and found.process.poll() is None else None

    async def open(self, job: str) -> None:
        """Copy what the job has written so far, and start the viewer unless it runs.

        Raises:
            CarrelError: the logs cannot be read.
            OSError: they cannot be written.
            TimeoutError: it does not start.
        """
        async with self._starting:
            found = self.get(job)
            folder = found.folder if found else _new_folder()
            try:
                await asyncio.to_thread(copy_logs, client_of(), job, self.viewer, folder / "logs")
                if found is None:
                    found = await self._start(job, folder)
            except BaseException:
                if found is None:
                    shutil.rmtree(folder, ignore_errors=True)
                raise

    async def _start(self, job: str, folder: Path) -> ViewerProcess:
        prefix = url_path_join(self.address, job)
        made = await asyncio.to_thread(ViewerProcess.start, self.viewer, folder, prefix)
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


class _LogViewerHandler(JupyterHandler):
    def initialize(self, processes: ViewerProcesses) -> None:
        self.processes = processes


def missing_viewer(viewer: LogViewer, packages: Path) -> str:
    """Say how the session gets a viewer that it lacks.

    Args:
        packages: the folder of installed packages, which in an image is not the user's.
    """
    advice = _INSTALL if os.access(packages, os.W_OK) else _OTHER_IMAGE
    return (_NOT_INSTALLED + advice).format(title=viewer.title, name=viewer.name)


class LogViewerOpenHandler(_LogViewerHandler):
    """Opens the logs of a job."""

    @authenticated
    async def get(self) -> None:
        job = self.get_query_argument("job", "")
        if not _JOB.fullmatch(job):
            await self._refuse(HTTPStatus.BAD_REQUEST, "The address names no job.")
            return
        invalidate_caches()  # it may have been installed since
        viewer = self.processes.viewer
        if find_spec(viewer.name) is None:
            sentence = missing_viewer(viewer, Path(get_path("purelib")))
            await self._refuse(HTTPStatus.NOT_FOUND, sentence)
            return
        try:
            await self.processes.open(job)
        except CarrelError as error:
            await self._refuse(error.http_status, str(error))
        except OSError as error:
            reason = str(error) or f"it took more than {START_SECONDS:g} seconds"
            sentence = f"{viewer.title} does not start: {reason}."
            await self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, sentence)
        else:
            self.redirect(url_path_join(self.processes.address, job, "/") + viewer.entry)

    async def _refuse(self, status: int, sentence: str) -> None:
        """Say why it cannot be opened: Jupyter's own page of a status does not."""
        self.set_status(status)
        title = self.processes.viewer.title
        await self.finish(_PAGE.format(title=title, sentence=escape(sentence)))


class LogViewerProxyHandler(_LogViewerHandler):
    """Passes calls on to the viewer of a job."""

    def check_xsrf_cookie(self) -> None:
        """Accept what the viewer's own page sends: other sites cannot set these headers."""
        given = self.request.headers
        of_its_page = (
            "X-XSRF-Protected" in given  # TensorBoard
            or given.get("Content-Type", "").partition(";")[0] == "application/json"  # MLflow
        )
        if self.request.method != "GET" and not of_its_page:
            title = self.processes.viewer.title
            raise HTTPError(HTTPStatus.FORBIDDEN, f"The call does not come from {title}.")

    @authenticated
    async def get(self, job: str) -> None:
        await self._forward(job)

    @authenticated
    async def post(self, job: str) -> None:
        await self._forward(job)

    async def _forward(self, job: str) -> None:
        found = self.processes.get(job)
        if found is None:  # the server was restarted
            self.redirect(f"{self.processes.address}?job={job}")
            return
        await pass_on(self, found.socket, self.request.uri or "")


def install_log_viewers(server_app: ServerApp) -> None:
    """Add the routes."""
    base = server_app.web_app.settings["base_url"]
    for viewer in LOG_VIEWERS:
        processes = ViewerProcesses(viewer, base)
        routes = [
            (processes.address, LogViewerOpenHandler, {"processes": processes}),
            (
                f"{processes.address}/({_JOB.pattern})/.*",
                LogViewerProxyHandler,
                {"processes": processes},
            ),
        ]
        server_app.web_app.add_handlers(".*$", routes)  # type: ignore[no-untyped-call]  # tornado
