"""Run submissions in containers of the course's image: one new container per submission.

Containers are built from the template, without a network, and used once. The slow parts, start and
imports, are done in advance: some containers are kept ready for the next submissions. The
supervisor inside is the code of this installation, so that old images work too.
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

from ...courses.sandbox import guest
from ...courses.sandbox.client import SandboxClient, checked
from ...courses.sandbox.interface import Sandbox, SandboxLimits, SandboxSettings
from ...hub.errors import BackendFailed, Unavailable
from ...hub.interfaces.backend_settings import DockerOptions
from ...hub.records.json_value import Json
from .containers.template import ContainerBounds, Mount, Task, container
from .engine.client import DockerClient
from .engine.stdio import ContainerStdio, container_body, start

LABEL: Final = "carrel.cages"
"""Label of the containers, kept for compatibility; its value is the installation."""
HOME: Final = "/home/student"
_GUEST: Final = "/carrel/guest"
_HIDDEN: Final = "/opt/carrel/lib/python3.11/site-packages/carrel"
"""Path in the image that is hidden, because it has the sample course with its hidden tests."""
_BEGIN: Final = (
    "import sys, runpy; sys.path.insert(0, '/carrel'); "
    "runpy.run_module('guest', run_name='__main__', alter_sys=True)"
)
_IMPORTS_BYTES: Final = 256 << 20
"""Memory of a container for imports and the sandbox supervisor."""
_SUPERVISOR: Final = 1
_THREADS: Final = 4


def create(settings: SandboxSettings) -> DockerSandboxes:
    """Entry point (group ``carrel.sandboxes``)."""
    if settings.docker is None or not settings.image:
        raise BackendFailed("Sandboxes in containers need a Docker engine and an image.")
    return DockerSandboxes(settings, settings.docker)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenContainer:
    container: str
    stdio: ContainerStdio


class DockerSandboxes:
    """Opens sandboxes on the first engine of the installation, the one of this machine."""

    def __init__(self, settings: SandboxSettings, options: DockerOptions) -> None:
        self._settings, self._options = settings, options
        self._engine = DockerClient(options.hosts[0])
        self._workers = ThreadPoolExecutor(_THREADS, thread_name_prefix="sandboxes")
        self._lock = threading.Lock()
        self._ahead: deque[tuple[SandboxLimits, Future[_OpenContainer]]] = deque()
        self._mounted = {**settings.data, _GUEST: Path(guest.__file__).parent}
        self._closed = False

    def open(self, limits: SandboxLimits, files: Mapping[str, bytes] | None = None) -> Sandbox:
        checked_files = checked(files or {}, limits)
        opened = self._next(limits)
        keeper = _ContainerKeeper(
            container=opened.container, engine=self._engine, workers=self._workers
        )
        return SandboxClient(opened.stdio, keeper, limits, checked_files, watch=False)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            ahead, self._ahead = self._ahead, deque()
        for _, future in ahead:
            self._discard(future)
        self._workers.shutdown(wait=True)

    def _next(self, limits: SandboxLimits) -> _OpenContainer:
        """Return a ready container, or create one; create others in the background for later."""
        with self._lock:
            if self._closed:
                raise Unavailable("The grading sandbox has been closed.")
            others = [future for kind, future in self._ahead if kind != limits]
            matching = deque(item for item in self._ahead if item[0] == limits)
            while len(matching) < self._settings.ahead + 1:
                matching.append((limits, self._workers.submit(self._create, limits)))
            _, future = matching.popleft()
            self._ahead = matching
        for other in others:
            self._discard(other)
        return future.result()

    def _create(self, limits: SandboxLimits) -> _OpenContainer:
        name = f"carrel-{self._settings.installation}-sandbox-{secrets.token_hex(6)}"
        opened, stdio = start(self._engine, self._options.hosts[0], name, self._body(limits))
        return _OpenContainer(container=opened, stdio=stdio)

    def _discard(self, future: Future[_OpenContainer]) -> None:
        def remove(done: Future[_OpenContainer]) -> None:
            if not done.cancelled() and done.exception() is None:
                done.result().stdio.close()
                self._engine.remove(done.result().container)

        future.cancel()
        future.add_done_callback(remove)

    def _body(self, limits: SandboxLimits) -> Mapping[str, Json]:
        """Return the template's body with attached streams and a working folder."""
        task = Task(
            installation=self._settings.installation,
            lease_id="",
            request_id="",
            epoch=0,
            owner="",
            kind="grading",
            image=self._settings.image,
            command=("python", "-P", "-c", _BEGIN, *self._settings.imports),
            uid=self._options.uid,
            network="none",
            outside=False,
            bounds=ContainerBounds(
                memory=limits.memory_bytes + _IMPORTS_BYTES,
                cpus=limits.cpus,
                pids=limits.processes + _SUPERVISOR,
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
            # The supervisor runs as init, which no process of its container can kill.
            "Init": False,
        }
        return container_body(body, LABEL, self._settings.installation)


class _ContainerKeeper:
    def __init__(
        self, *, container: str, engine: DockerClient, workers: ThreadPoolExecutor
    ) -> None:
        self._container, self._engine, self._workers = container, engine, workers
        self._ended = False

    def out_of_memory(self) -> bool:
        """Return False: the sandbox supervisor reports it itself."""
        return False

    def most_memory(self) -> int | None:
        return None

    def end(self) -> None:
        """Remove the container in the background, so that the next submission need not wait."""
        if not self._ended:
            self._ended = True
            self._workers.submit(self._engine.remove, self._container)
