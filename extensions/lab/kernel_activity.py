"""Track which kernels of a Jupyter server run a cell, and when one last ran; hear their outputs.

The server's ``last_activity`` is unsuitable: it changes with every widget message that is sent to
an open tab. Only an ``execute_request`` counts here.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...hub.schemas import KernelsIn
from .kernel_journals import KernelJournals

_CELL = "execute_request"


class IOPubChannel(Protocol):
    """The stream of a kernel's messages (``zmq.eventloop.zmqstream.ZMQStream``)."""

    def on_recv(self, callback: Callable[[list[bytes]], None]) -> object: ...

    def close(self) -> object: ...


class ServerKernel(Protocol):
    """A kernel manager, as far as it is used here."""

    session: Any  # jupyter_client has no types for it
    execution_state: str | None
    ports: list[int]

    def connect_iopub(self) -> IOPubChannel: ...

    def add_restart_callback(self, callback: Callable[[], None], event: str) -> None: ...


class ServerKernelManager(Protocol):
    """The kernel manager of a Jupyter server, as far as it is used here."""

    def list_kernel_ids(self) -> Sequence[str]: ...

    def get_kernel(self, kernel_id: str) -> ServerKernel: ...


@dataclass(slots=True)
class WatchedKernel:
    """A kernel with its running cells, by the ids of their requests."""

    channel: IOPubChannel
    ports: list[int]
    cells: set[str] = field(default_factory=set)
    has_died: bool = False
    """The kernel manager is about to restart it."""
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by its first message: no later one is missed."""


@dataclass(slots=True)
class KernelWatch:
    """Listens to every kernel of a manager. ``clock`` counts seconds from any start."""

    manager: ServerKernelManager
    clock: Callable[[], float]
    journals: KernelJournals
    cell_at: float | None = None
    _kernels: dict[str, WatchedKernel] = field(default_factory=dict)

    def refresh(self) -> None:
        """Listen to new kernels, forget kernels that are gone."""
        there = set(self.manager.list_kernel_ids())
        for kernel_id in set(self._kernels) - there:
            self._kernels.pop(kernel_id).channel.close()
            self.journals.gone(kernel_id)
        for kernel_id in there - set(self._kernels):
            self._listen(kernel_id)
            # It may have run a first cell before this listened.
            self.cell_at = self.clock()
        for kernel_id, watched in self._kernels.items():
            kernel = self.manager.get_kernel(kernel_id)
            if kernel.execution_state == "dead":
                watched.cells.clear()
                self.journals.died(kernel_id)
            if kernel.ports != watched.ports:  # restarted on other ports
                watched.channel.close()
                self._connect(kernel_id, watched)

    async def listens(self, kernel_id: str) -> None:
        """Wait until the messages of a kernel are heard."""
        if (watched := self._kernels.get(kernel_id)) is not None:
            await watched.heard.wait()

    def restarted(self, kernel_id: str) -> None:
        """Forget the outputs of a kernel, unless it was restarted because it had died."""
        watched = self._kernels.get(kernel_id)
        if watched is not None and watched.has_died:
            watched.has_died = False
        else:
            self.journals.restarted(kernel_id)
        self.refresh()

    def report(self) -> KernelsIn:
        """Return what the service is told about the kernels."""
        running = sum(bool(watched.cells) for watched in self._kernels.values())
        if running:
            self.cell_at = self.clock()
        ago = None if self.cell_at is None else max(0.0, self.clock() - self.cell_at)
        return KernelsIn(count=len(self._kernels), running=running, cell_seconds_ago=ago)

    def close(self) -> None:
        while self._kernels:
            self._kernels.popitem()[1].channel.close()

    def _listen(self, kernel_id: str) -> None:
        kernel = self.manager.get_kernel(kernel_id)
        watched = WatchedKernel(channel=kernel.connect_iopub(), ports=list(kernel.ports))
        watched.channel.on_recv(self._listener(kernel_id, watched, kernel.session))
        self._kernels[kernel_id] = watched

        def died() -> None:
            watched.has_died = True
            watched.cells.clear()
            self.journals.died(kernel_id)

        kernel.add_restart_callback(died, "restart")

    def _connect(self, kernel_id: str, watched: WatchedKernel) -> None:
        kernel = self.manager.get_kernel(kernel_id)
        watched.channel, watched.ports = kernel.connect_iopub(), list(kernel.ports)
        watched.heard = asyncio.Event()
        watched.channel.on_recv(self._listener(kernel_id, watched, kernel.session))

    def _listener(
        self, kernel_id: str, watched: WatchedKernel, session: Any
    ) -> Callable[[list[bytes]], None]:
        def listen(parts: list[bytes]) -> None:
            watched.heard.set()
            _, (signature, *signed) = session.feed_identities(parts)
            header, parent, _, content = signed[:4]
            request, kind = session.unpack(parent), session.unpack(header).get("msg_type")
            asked = str(request.get("msg_id"))
            # Outputs are shown as the kernel's own. The session's own check accepts a message once
            # only, and other listeners of this server share it.
            if self.journals.hears(kernel_id, asked) and (
                session.auth is None or hmac.compare_digest(session.sign(signed[:4]), signature)
            ):
                self.journals.hear(kernel_id, asked, kind, session.unpack(content))
            if kind != "status":
                return
            state = session.unpack(content).get("execution_state")
            if request.get("msg_type") == _CELL:
                change = watched.cells.add if state == "busy" else watched.cells.discard
                change(str(request.get("msg_id")))
                self.cell_at = self.clock()
            elif state == "starting":
                watched.cells.clear()  # restarted while a cell ran

        return listen
