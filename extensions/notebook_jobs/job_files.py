"""The outputs of a job, fetched from the service and added to the home; no file is replaced."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jupyter_scheduler.job_files_manager import JobFilesManager
from jupyter_scheduler.models import JobFile

from ...hub.client import AsyncClient
from ...hub.client.work_archive import safe_target
from .choices import OUTPUT_FORMATS

if TYPE_CHECKING:
    from .scheduler import ServiceScheduler

FILES: Final = "files"
"""Folder of what the job wrote to ``$CARREL_OUTPUT_DIR``, beside the outputs in each format."""


def job_files(
    root: Path, folder: Path, names: Mapping[str, str], notebook: Path | None
) -> list[JobFile]:
    """Return the files of a job, with the paths of those that exist.

    Args:
        root: folder of the server; paths are relative to it.
        folder: where the outputs are downloaded to.
        names: name of the output in each format.
        notebook: the notebook that was submitted; None if it is not known where it is.
    """
    shown = {kind: (OUTPUT_FORMATS[kind], folder / name) for kind, name in names.items()}
    if notebook is not None:
        shown["input"] = ("Input", notebook)
    if (folder / FILES).is_dir():
        shown[FILES] = ("Files", folder / FILES)
    return [
        JobFile(
            display_name=name,
            file_format=kind,
            file_path=os.path.relpath(path, root) if path.exists() else None,
        )
        for kind, (name, path) in shown.items()
    ]


async def stage(
    client: AsyncClient, request_id: str, names: Mapping[str, str], folder: Path
) -> dict[str, str]:
    """Fetch the outputs of a job into an empty folder, and return the path of each format.

    Raises:
        CarrelError: there is no output yet, or the service does not respond.
    """
    output = await client.output(request_id)
    listed = await client.files(request_id)
    staged: dict[str, str] = {}
    for kind, name in names.items():
        content = output.content
        if kind == "html":
            content = await asyncio.to_thread(_as_html, output.content)
        (folder / name).write_bytes(content)
        staged[kind] = str(folder / name)
    for file in listed.files:
        target = safe_target(folder / FILES, file.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as opened:
            async for part in client.file(request_id, file.name):
                opened.write(part)
    return staged


def add_new(source: Path, target: Path) -> None:
    """Copy the files of a folder that the target does not have; each appears complete or not."""
    for file in sorted(each for each in source.rglob("*") if each.is_file()):
        place = target / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(dir=place.parent, prefix=".carrel-")
        os.close(descriptor)
        try:
            shutil.copyfile(file, draft)
            with contextlib.suppress(FileExistsError):
                os.link(draft, place)
        finally:
            Path(draft).unlink()


def _as_html(content: bytes) -> bytes:
    import nbformat  # noqa: PLC0415  # slow to import, and only needed here
    from nbconvert import HTMLExporter  # noqa: PLC0415

    node = nbformat.reads(content.decode("utf-8-sig"), as_version=4)  # type: ignore[no-untyped-call]
    text, _ = HTMLExporter().from_notebook_node(node)  # type: ignore[no-untyped-call]
    return str(text).encode()


class OutputFilesManager(JobFilesManager):  # type: ignore[misc]  # untyped base
    """Downloads before it answers, so that the page finds the files when it asks again."""

    scheduler: ServiceScheduler

    async def copy_from_staging(self, job_id: str, redownload: bool | None = False) -> None:
        """Add the outputs to the home; files that are there already stay as they are."""
        job = await self.scheduler.get_job(job_id, False)
        target = Path(self.scheduler.get_local_output_path(job))
        drafts = Path(self.scheduler.staging_path)
        drafts.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=drafts) as staging:
            await self.scheduler.stage(job, Path(staging))
            await asyncio.to_thread(add_new, Path(staging), target)
