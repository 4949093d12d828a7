"""Calls for nbgrader's exchange, in the format of ngshare's REST API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel

from ..transport.calls import Call
from ..transport.connection import Connection, segment

M = TypeVar("M", bound=BaseModel)


class NgshareCalls(Connection):
    """The part of ``AsyncClient`` below ``…/exchange``; a path is given by its parts."""

    async def exchange_get(
        self, path: tuple[str, ...], model: type[M], query: Mapping[str, str] | None = None
    ) -> M:
        call = Call(method="GET", path=_exchange_path(path), query=query or {})
        return self._read(await self._transport.send(call), model)

    async def exchange_post(
        self,
        path: tuple[str, ...],
        model: type[M],
        form: Mapping[str, str],
        *,
        silence: float | None = None,
    ) -> M:
        """Send a call that is safe to repeat; retried after a lost connection."""
        call = Call(method="POST", path=_exchange_path(path), form=form, silence=silence)
        return await self._send_repeatable(call, model)

    async def exchange_delete(self, path: tuple[str, ...], model: type[M]) -> M:
        return self._read(
            await self._transport.send(Call(method="DELETE", path=_exchange_path(path))), model
        )


def _exchange_path(path: tuple[str, ...]) -> str:
    return "/".join(["exchange", *map(segment, path)])
