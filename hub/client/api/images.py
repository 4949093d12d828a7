"""Calls for images: the catalogue and the pins of groups."""

from __future__ import annotations

from pydantic import JsonValue

from ...schemas.images import ImagesOut, NeedsOut, PinOut
from ..transport.calls import Call
from ..transport.connection import Connection, segment


class ImageCalls(Connection):
    """The image catalogue of a site and the pins of its groups."""

    async def images(self) -> ImagesOut:
        return await self._get("images", ImagesOut)

    async def images_needed(self) -> NeedsOut:
        """Return the pinned builds.

        Raises:
            Forbidden: the caller is not an administrator.
        """
        return await self._get("images/needed", NeedsOut)

    async def pin(self, group: str, image: str, *, digest: str, until: str) -> PinOut:
        body: dict[str, JsonValue] = {"digest": digest, "until": until}
        return await self._read_call(Call(method="PUT", path=_pin(group, image), json=body), PinOut)

    async def unpin(self, group: str, image: str) -> None:
        await self._transport.send(Call(method="DELETE", path=_pin(group, image)))


def _pin(group: str, image: str) -> str:
    return f"groups/{segment(group)}/pins/{segment(image)}"
