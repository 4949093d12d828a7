"""Note which cell each request of a page executes.

A kernel's outputs name the request, and only the request names the cell: JupyterLab puts the cell's
id into its metadata. The request is seen where it passes, on the page's connection to the kernel,
and is not changed. The server's own buffer of messages for a page that reconnects stays as it is:
it gives a page its own messages again, and a new page, which has another session, gets none of
them, so that nothing that is read from the journal comes twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Mapping
from types import new_class
from typing import Any, ClassVar, cast

from jupyter_server.services.kernels.connection.base import (
    deserialize_binary_message,
    deserialize_msg_from_ws_v1,
)

from .kernel_activity import KernelWatch
from .output_journal import CellRequest

_EXECUTE = "execute_request"
_PROTOCOL_1 = "v1.kernel.websocket.jupyter.org"
_LISTENS_SECONDS = 1.0
"""A connection waits no longer for a kernel's first message, by which its outputs are heard."""


class RequestListener:
    """Mixed into the server's class of connections to kernels."""

    kernels: ClassVar[KernelWatch]
    kernel_id: str
    session: Any
    subprotocol: str | None
    log: Any
    _noted = False

    async def connect(self) -> None:
        """Let no request through before the kernel's outputs are heard."""
        if not self._noted:
            self._noted = True
            self.kernels.journals.connected(self.kernel_id, self.session.session)
        try:
            self.kernels.refresh()
        except Exception:
            # The page reaches its kernel in any case.
            self.log.warning("the outputs of kernels are not heard", exc_info=True)
        # Now, not in the next turn of the loop: a page may be gone by then.
        connected: Awaitable[None] | None = super().connect()  # type: ignore[misc]  # mixed into it
        if connected is not None:
            await connected
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LISTENS_SECONDS):
                    await self.kernels.listens(self.kernel_id)

    def disconnect(self) -> Any:
        if self._noted:
            self._noted = False
            self.kernels.journals.disconnected(self.kernel_id, self.session.session)
        return super().disconnect()  # type: ignore[misc]

    def handle_incoming_message(self, incoming_msg: Any) -> None:
        try:
            asked = cell_request(incoming_msg, self.subprotocol)
            if asked is not None:
                self.kernels.journals.begin(self.kernel_id, asked)
        except Exception:
            # The request reaches the kernel in any case.
            self.log.warning("the outputs of a cell are not kept", exc_info=True)
        super().handle_incoming_message(incoming_msg)  # type: ignore[misc]


def listening(connection: type, kernels: KernelWatch) -> type:
    """Return a class of connections that tells the journals of these kernels of requests."""
    return new_class(
        f"Listening{connection.__name__}",
        (RequestListener, connection),
        exec_body=lambda namespace: namespace.update(kernels=kernels),
    )


def cell_request(message: Any, protocol: str | None) -> CellRequest | None:
    """Return the request to execute a cell in a message of a page, if it is one."""
    if protocol == _PROTOCOL_1:
        channel, parts = deserialize_msg_from_ws_v1(message)  # type: ignore[no-untyped-call]
        header_part, _, metadata_part, *_ = parts
        if channel != "shell" or _EXECUTE.encode() not in header_part:
            return None
        header, metadata = json.loads(header_part), json.loads(metadata_part)
    else:
        unpacked = cast(
            "dict[str, Any]",
            deserialize_binary_message(message)  # type: ignore[no-untyped-call]
            if isinstance(message, bytes)
            else json.loads(message),
        )
        header, metadata = unpacked["header"], unpacked.get("metadata") or {}
    return _cell_request(header, metadata)


def _cell_request(header: Mapping[str, Any], metadata: Mapping[str, Any]) -> CellRequest | None:
    cell = metadata.get("cellId")
    if header.get("msg_type") != _EXECUTE or not isinstance(cell, str) or not cell:
        return None
    return CellRequest(
        request=str(header["msg_id"]),
        cell=cell,
        client=str(header.get("session")),
        # A console on the same kernel does not name deleted cells.
        in_notebook="deletedCells" in metadata,
    )
