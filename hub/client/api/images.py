"""What a site has of images, over the client of everybody."""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import quote

from pydantic import BaseModel, JsonValue

from ...schemas.images import ImagesOut, NeedsOut, PinOut
from ..sync_client import Client
from ..transport.calls import Call

M = TypeVar("M", bound=BaseModel)


class ImageCalls:
    """The catalogue, and what groups pin."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def images(self) -> ImagesOut:
        return self._call("GET", "images", ImagesOut)

    def needed(self) -> NeedsOut:
        """The builds that must stay. Raises Forbidden for those who are no administrators."""
        return self._call("GET", "images/needed", NeedsOut)

    def pin(self, group: str, image: str, *, digest: str, until: str) -> PinOut:
        body: dict[str, JsonValue] = {"digest": digest, "until": until}
        return self._call("PUT", _pin(group, image), PinOut, body)

    def unpin(self, group: str, image: str) -> None:
        self._client.send(Call(method="DELETE", path=_pin(group, image)))

    def _call(self, method: str, path: str, model: type[M], body: JsonValue = None) -> M:
        answer = self._client.send(Call(method=method, path=path, json=body))
        return model.model_validate_json(answer.content)


def _pin(group: str, image: str) -> str:
    return f"groups/{quote(group, safe='')}/pins/{quote(image, safe='')}"
