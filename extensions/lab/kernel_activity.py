"""Which kernels of a Jupyter server run a cell, and when one ran last.

The server's own ``last_activity`` will not do: it moves with every message of a widget that is
pushed to an open tab. What counts here is an ``execute_request`` and nothing else.
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
    """A kernel manager, as far as it is needed."""

    session: Any  # jupyter_client has no types for it
    execution_state: str | None

    def connect_iopub(self) -> IOPubChannel: ...


class ServerKernelManager(Protocol):
    """The kernel manager of a Jupyter server, as far as it is needed."""

    def list_kernel_ids(self) -> Sequence[str]: ...

    def get_kernel(self, kernel_id: str) -> ServerKernel: ...


@dataclass(slots=True)
class Watched:
    """A kernel with the cells that it runs, by the id of what asked for them."""

    channel: IOPubChannel
    cells: set[str] = field(default_factory=set)


@dataclass(slots=True)
class KernelWatch:
    """Listens to every kernel of a manager. ``clock`` counts seconds, from any beginning."""

    manager: ServerKernelManager
    clock: Callable[[], float]
    cell_at: float | None = None
    _kernels: dict[str, Watched] = field(default_factory=dict)

    def refresh(self) -> None:
        """Listen to kernels that came, forget those that went."""
        there = set(self.manager.list_kernel_ids())
        for kernel_id in set(self._kernels) - there:
            self._kernels.pop(kernel_id).channel.close()
        for kernel_id in there - set(self._kernels):
            kernel = self.manager.get_kernel(kernel_id)
            watched = Watched(channel=kernel.connect_iopub())
            watched.channel.on_recv(self._listener(watched, kernel.session))
            self._kernels[kernel_id] = watched
            # Somebody started it, perhaps with a first cell that nobody was listening to yet.
            self.cell_at = self.clock()
        for kernel_id, watched in self._kernels.items():
            if self.manager.get_kernel(kernel_id).execution_state == "dead":
                watched.cells.clear()

    def told(self) -> KernelsIn:
        running = sum(bool(watched.cells) for watched in self._kernels.values())
        if running:
            self.cell_at = self.clock()
        ago = None if self.cell_at is None else max(0.0, self.clock() - self.cell_at)
        return KernelsIn(count=len(self._kernels), running=running, cell_seconds_ago=ago)

    def close(self) -> None:
        while self._kernels:
            self._kernels.popitem()[1].channel.close()

    def _listener(self, watched: Watched, session: Any) -> Callable[[list[bytes]], None]:
        def listen(parts: list[bytes]) -> None:
            # Unpacked without checking the signature: nothing is done with it but counting.
            _, (_, header, parent, _, content, *_) = session.feed_identities(parts)
            if session.unpack(header).get("msg_type") != "status":
                return
            asked, state = session.unpack(parent), session.unpack(content).get("execution_state")
            if asked.get("msg_type") == _CELL:
                change = watched.cells.add if state == "busy" else watched.cells.discard
                change(str(asked.get("msg_id")))
                self.cell_at = self.clock()
            elif state == "starting":
                watched.cells.clear()  # it was restarted in the middle of a cell

        return listen
