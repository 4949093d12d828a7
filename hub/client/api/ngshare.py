"""Calls of nbgrader's exchange: ngshare's REST API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel

from ..transport.calls import Call
from ..transport.connection import Connection, segment

M = TypeVar("M", bound=BaseModel)


class NgshareCalls(Connection):
    """The part of ``AsyncClient`` below ``…/exchange``; a path is given by its parts."""

    async def from_exchange(
        self, path: tuple[str, ...], model: type[M], query: Mapping[str, str] | None = None
    ) -> M:
        call = Call(method="GET", path=_joined(path), query=query or {})
        return self._read(await self._transport.send(call), model)

    async def to_exchange(
        self,
        path: tuple[str, ...],
        model: type[M],
        form: Mapping[str, str],
        *,
        silence: float | None = None,
    ) -> M:
        """For calls that are safe to repeat: retried after a lost connection."""
        call = Call(method="POST", path=_joined(path), form=form, silence=silence)
        return await self._repeated(call, model)

    async def out_of_exchange(self, path: tuple[str, ...], model: type[M]) -> M:
        return self._read(
            await self._transport.send(Call(method="DELETE", path=_joined(path))), model
        )


def _joined(path: tuple[str, ...]) -> str:
    return "/".join(["exchange", *map(segment, path)])
