"""Track which kernels of a Jupyter server run a cell, and when one last ran.

The server's ``last_activity`` is unsuitable: it changes with every widget message that is sent to
an open tab. Only an ``execute_request`` counts here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...hub.schemas import KernelsIn

_CELL = "execute_request"


class IOPubChannel(Protocol):
    """The stream of a kernel's messages (``zmq.eventloop.zmqstream.ZMQStream``)."""

    def on_recv(self, callback: Callable[[list[bytes]], None]) -> object: ...

    def close(self) -> object: ...


class ServerKernel(Protocol):
    """A kernel manager, as far as it is used here."""

    session: Any  # jupyter_client has no types for it
    execution_state: str | None

    def connect_iopub(self) -> IOPubChannel: ...


class ServerKernelManager(Protocol):
    """The kernel manager of a Jupyter server, as far as it is used here."""

    def list_kernel_ids(self) -> Sequence[str]: ...

    def get_kernel(self, kernel_id: str) -> ServerKernel: ...


@dataclass(slots=True)
class WatchedKernel:
    """A kernel with its running cells, by the ids of their requests."""

    channel: IOPubChannel
    cells: set[str] = field(default_factory=set)


@dataclass(slots=True)
class KernelWatch:
    """Listens to every kernel of a manager. ``clock`` counts seconds from any start."""

    manager: ServerKernelManager
    clock: Callable[[], float]
    cell_at: float | None = None
    _kernels: dict[str, WatchedKernel] = field(default_factory=dict)

    def refresh(self) -> None:
        """Listen to new kernels, forget kernels that are gone."""
        there = set(self.manager.list_kernel_ids())
        for kernel_id in set(self._kernels) - there:
            self._kernels.pop(kernel_id).channel.close()
        for kernel_id in there - set(self._kernels):
            kernel = self.manager.get_kernel(kernel_id)
            watched = WatchedKernel(channel=kernel.connect_iopub())
            watched.channel.on_recv(self._listener(watched, kernel.session))
            self._kernels[kernel_id] = watched
            # It may have run a first cell before this listened.
            self.cell_at = self.clock()
        for kernel_id, watched in self._kernels.items():
            if self.manager.get_kernel(kernel_id).execution_state == "dead":
                watched.cells.clear()

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

    def _listener(self, watched: WatchedKernel, session: Any) -> Callable[[list[bytes]], None]:
        def listen(parts: list[bytes]) -> None:
            # Unpacked without checking the signature: messages are only counted.
            _, (_, header, parent, _, content, *_) = session.feed_identities(parts)
            if session.unpack(header).get("msg_type") != "status":
                return
            request, state = session.unpack(parent), session.unpack(content).get("execution_state")
            if request.get("msg_type") == _CELL:
                change = watched.cells.add if state == "busy" else watched.cells.discard
                change(str(request.get("msg_id")))
                self.cell_at = self.clock()
            elif state == "starting":
                watched.cells.clear()  # restarted while a cell ran

        return listen
