"""Cages of the Docker engine: a container of the course's image for each submission.

Made by the one template, without any network, and never used twice. What makes one slow, the
start and the imports, is done ahead: some wait, ready, for the next submissions. What runs inside
is this installation's own, so that an image built long ago speaks with it all the same.
"""

from __future__ import annotations

import secrets
import threading
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...courses.sandbox import guest as inside
from ...courses.sandbox.client import SandboxClient, checked
from ...courses.sandbox.interface import Sandbox, SandboxLimits, SandboxSettings
from ...hub.errors import BackendFailed, Unavailable
from ...hub.interfaces.backend_settings import DockerOptions
from ...hub.records.json_value import Json
from .containers.template import ContainerBounds, Mount, Task, container
from .engine.client import DockerClient
from .engine.stdio import ContainerStdio, container_body, start

LABEL: Final = "carrel.cages"
"""With the installation's name."""
HOME: Final = "/home/student"
_INSIDE: Final = "/carrel/guest"
_HIDDEN: Final = "/opt/carrel/lib/python3.11/site-packages/carrel"
"""Of the image: the sample course as its teacher sees it, with solutions and hidden tests."""
_BEGIN: Final = (
    "import sys, runpy; sys.path[0] = '/carrel'; "
    "runpy.run_module('guest', run_name='__main__', alter_sys=True)"
)
_IMPORTS_BYTES: Final = 256 << 20
"""Of the memory of a container, for what is imported and for the warden."""
_WARDEN: Final = 1
_THREADS: Final = 4


def create(settings: SandboxSettings) -> DockerSandboxes:
    """For the entry point."""
    if settings.docker is None or not settings.image:
        raise BackendFailed("Cages of containers need a Docker engine and an image.")
    return DockerSandboxes(settings, settings.docker)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    container: str
    line: ContainerStdio


class DockerSandboxes:
    """On the first engine of the installation, this machine's."""

    def __init__(self, settings: SandboxSettings, options: DockerOptions) -> None:
        self._settings, self._options = settings, options
        self._engine = DockerClient(options.hosts[0])
        self._workers = ThreadPoolExecutor(_THREADS, thread_name_prefix="cages")
        self._lock = threading.Lock()
        self._ahead: deque[tuple[SandboxLimits, Future[_Made]]] = deque()
        self._mounted = {**settings.data, _INSIDE: Path(inside.__file__).parent}
        self._closed = False

    def open(self, limits: SandboxLimits, files: Mapping[str, bytes] | None = None) -> Sandbox:
        filling = checked(files or {}, limits)
        made = self._next(limits)
        keeper = _Kept(container=made.container, engine=self._engine, workers=self._workers)
        return SandboxClient(made.line, keeper, limits, filling, watch=False)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            ahead, self._ahead = self._ahead, deque()
        for _, future in ahead:
            self._throw_away(future)
        self._workers.shutdown(wait=True)

    def _next(self, limits: SandboxLimits) -> _Made:
        """One that waits, or that is made now; others are made for who comes next."""
        with self._lock:
            if self._closed:
                raise Unavailable("The grading sandbox has been closed.")
            of_others = [future for kind, future in self._ahead if kind != limits]
            mine = deque(each for each in self._ahead if each[0] == limits)
            while len(mine) < self._settings.ahead + 1:
                mine.append((limits, self._workers.submit(self._make, limits)))
            _, future = mine.popleft()
            self._ahead = mine
        for other in of_others:
            self._throw_away(other)
        return future.result()

    def _make(self, limits: SandboxLimits) -> _Made:
        name = f"carrel-{self._settings.installation}-cage-{secrets.token_hex(6)}"
        made, line = start(self._engine, self._options.hosts[0], name, self._body(limits))
        return _Made(container=made, line=line)

    def _throw_away(self, future: Future[_Made]) -> None:
        def remove(done: Future[_Made]) -> None:
            if not done.cancelled() and done.exception() is None:
                done.result().line.close()
                self._engine.remove(done.result().container)

        future.cancel()
        future.add_done_callback(remove)

    def _body(self, limits: SandboxLimits) -> Mapping[str, Json]:
        """The template's, with what only a cage needs: a line, and a folder to work in."""
        task = Task(
            installation=self._settings.installation,
            lease_id="",
            request_id="",
            epoch=0,
            owner="",
            kind="grading",
            image=self._settings.image,
            command=("python", "-c", _BEGIN, *self._settings.imports),
            uid=self._options.uid,
            network="none",
            outside=False,
            bounds=ContainerBounds(
                memory=limits.memory_bytes + _IMPORTS_BYTES,
                cpus=limits.cpus,
                pids=limits.processes + _WARDEN,
                tmp=limits.disk_bytes,
            ),
            environment={"HOME": HOME, **self._settings.environment},
            mounts=tuple(
                Mount(source=str(source), target=target, read_only=True)
                for target, source in self._mounted.items()
            ),
            workdir=HOME,
        )
        body = dict(container(task))
        host = body["HostConfig"]
        assert isinstance(host, dict)
        tmpfs = host["Tmpfs"]
        assert isinstance(tmpfs, dict)
        uid = self._options.uid
        home = f"rw,nosuid,nodev,size={limits.disk_bytes},mode=700,uid={uid},gid={uid}"
        body["HostConfig"] = {
            **host,
            "Tmpfs": {**tmpfs, HOME: home, _HIDDEN: "ro,size=4k,mode=555"},
            # The warden is the init itself, which no process of its container can kill.
            "Init": False,
        }
        return container_body(body, LABEL, self._settings.installation)


class _Kept:
    def __init__(
        self, *, container: str, engine: DockerClient, workers: ThreadPoolExecutor
    ) -> None:
        self._container, self._engine, self._workers = container, engine, workers
        self._ended = False

    def out_of_memory(self) -> bool:
        """Its warden says so itself."""
        return False

    def most_memory(self) -> int | None:
        return None

    def end(self) -> None:
        """The next submission need not wait for it."""
        if not self._ended:
            self._ended = True
            self._workers.submit(self._engine.remove, self._container)
