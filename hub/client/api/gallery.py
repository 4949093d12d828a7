"""Calls for the gallery of published jobs."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from pydantic import JsonValue

from ...schemas import JobIn, RequestOut, RequestsOut
from ...schemas.gallery import GalleryItemDetailOut, GalleryItemsOut
from ..transport.calls import Call
from ..transport.connection import Connection, segment
from ..transport.downloads import OutputFile


class GalleryCalls(Connection):
    """The part of ``AsyncClient`` for the gallery: jobs that users publish for others to run."""

    async def gallery(
        self, search: str = "", *, mine: bool = False, offset: int = 0
    ) -> GalleryItemsOut:
        """Return one page of the items that the caller may see, the last changed first."""
        call = Call(
            method="GET",
            path="gallery",
            query={"search": search, "mine": str(mine).lower(), "offset": offset},
        )
        return await self._read_call(call, GalleryItemsOut)

    async def gallery_item(self, item_id: str, *, version: int = 0) -> GalleryItemDetailOut:
        """Return an item with one version; 0 is the newest one."""
        call = Call(method="GET", path=f"gallery/{segment(item_id)}", query={"version": version})
        return await self._read_call(call, GalleryItemDetailOut)

    async def gallery_notebook(
        self, item_id: str, *, version: int = 0, job: int = 0, output: bool = False
    ) -> OutputFile:
        """Return the notebook of a job, or its published output. Raises NotFound."""
        part = "output" if output else "notebook"
        call = Call(
            method="GET",
            path=f"gallery/{segment(item_id)}/{part}",
            query={"version": version, "job": job},
        )
        return OutputFile.of(await self._transport.send(call), item_id)

    async def publish(
        self,
        *,
        request: str = "",
        job: JobIn | None = None,
        title: str = "",
        description: str | None = None,
        audience: str = "",
        pipeline: bool = False,
        outputs: bool = False,
        item: str = "",
    ) -> GalleryItemDetailOut:
        """Publish a job that ran, or one that has not run; see ``GalleryPublishIn``."""
        body: dict[str, JsonValue] = {
            "title": title,
            "description": description,
            "audience": audience,
            "item": item,
        }
        if job is not None:
            body["job"] = job.model_dump(mode="json", exclude_unset=True)
        else:
            body |= {"request": request, "pipeline": pipeline, "outputs": outputs}
        return await self._post("gallery", GalleryItemDetailOut, body)

    async def run_gallery_item(
        self,
        item_id: str,
        *,
        version: int = 0,
        group: str = "",
        parameters: Mapping[str, JsonValue] | None = None,
    ) -> list[RequestOut]:
        """Submit the jobs of an item; these parameters replace the published ones."""
        body: dict[str, JsonValue] = {
            "version": version,
            "group": group,
            "parameters": dict(parameters or {}),
            "idempotency_key": secrets.token_hex(16),
        }
        call = Call(method="POST", path=f"gallery/{segment(item_id)}/run", json=body)
        return (await self._send_repeatable(call, RequestsOut)).requests

    async def fork_gallery_item(
        self, item_id: str, *, version: int = 0, title: str = "", audience: str = ""
    ) -> GalleryItemDetailOut:
        """Publish an own copy of a version."""
        body: dict[str, JsonValue] = {"version": version, "title": title, "audience": audience}
        return await self._post(f"gallery/{segment(item_id)}/fork", GalleryItemDetailOut, body)

    async def withdraw_gallery_item(self, item_id: str) -> None:
        call = Call(method="POST", path=f"gallery/{segment(item_id)}/withdraw")
        await self._transport.send(call)
