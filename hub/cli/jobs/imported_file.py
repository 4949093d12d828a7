"""What becomes of a job file: its job and what of it is not kept, or why it is refused."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import click

from ...client.job_files import reader
from ...client.job_files.description import DescribedJob, JobFileFormat, NotKept
from ...client.job_files.image_choice import resolved_images
from ...client.job_files.job_fields import job_fields, memory_bytes, memory_difference
from ...client.job_files.yaml_source import MAX_FILE_BYTES, MalformedJobFile
from ...errors import CarrelError, InvalidInput, Refused
from ...messages import units
from ...schemas import RequestOut
from ...schemas.images import ImagesOut
from ..common import display
from ..common.notes import note

_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
_MOST_FILES: Final = 1000
_WIDEST: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFile:
    """A job file, and what becomes of it.

    Attributes:
        job: None if it is refused.
        images: of each role, by its name.
        refused: why it is refused; None if it is not.
        request: the submitted job; None before.
    """

    path: Path
    name: str
    job: DescribedJob | None = None
    images: Mapping[str, str] = field(default_factory=dict)
    refused: CarrelError | None = None
    request: RequestOut | None = None

    @property
    def json(self) -> dict[str, object]:
        job, refused = self.job, self.refused
        return {
            "file": self.name,
            "format": None if job is None else str(job.format),
            "name": None if job is None else job.name,
            "roles": [
                {
                    "name": role.name,
                    "members": role.count,
                    "devices": role.devices,
                    "image": self.images.get(role.name, role.image),
                    "command": role.script,
                }
                for role in (() if job is None else job.roles)
            ],
            "not_kept": [
                {"line": each.line, "field": each.field, "reason": each.reason}
                for each in (() if job is None else job.not_kept)
            ],
            "refused": None
            if refused is None
            else {
                "line": refused.line if isinstance(refused, MalformedJobFile) else None,
                "message": refused.message,
                "accepted": refused.accepted,
            },
            "request": self.request,
        }


def found_files(paths: Sequence[Path]) -> list[tuple[Path, str]]:
    """Return the job files of paths, each with its name for display, by name within a folder.

    Links and hidden entries of folders are left out.

    Raises:
        InvalidInput: a path does not exist, a folder has no job files, or there are too many.
    """
    found: list[tuple[Path, str]] = []
    for path in paths:
        if not path.is_dir():
            found.append((path, str(path)))
            continue
        files = sorted(_below(path))
        if not files:
            raise InvalidInput(f"{path} has no job files.", accepted="Files .yaml, .yml or .json.")
        found += [(each, str(each)) for each in files]
    if len(found) > _MOST_FILES:
        raise InvalidInput(f"There are {len(found):,} files.", accepted=f"At most {_MOST_FILES:,}.")
    return found


def _below(path: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            file = Path(folder) / name
            known = file.suffix.lower() in _SUFFIXES and not name.startswith(".")
            if known and file.is_file() and not file.is_symlink():
                yield file


def imported(
    path: Path,
    name: str,
    format: JobFileFormat | None,
    catalogue: ImagesOut | None,
    *,
    image: str,
    use_nearest: bool,
) -> ImportedFile:
    """Return what becomes of a job file; never raises an error of the file.

    Args:
        catalogue: None if the images of the site are not known.
        image: for all roles; empty for those of the file.
    """
    found = ImportedFile(path=path, name=name)
    try:
        job = reader.read(name, _content(path), format)
        job_fields(name, job)  # whether its commands are too long
        images: Mapping[str, str] = {}
        more = list(memory_difference(job))
        if catalogue is not None:
            images, other = resolved_images(
                name, job, catalogue, chosen=image, use_nearest=use_nearest
            )
            more += other
    except Refused as error:
        return replace(found, refused=error)
    kept = sorted([*job.not_kept, *more], key=lambda each: each.line)
    return replace(found, job=replace(job, not_kept=tuple(kept)), images=images)


def _content(path: Path) -> bytes:
    if not path.is_file():
        raise InvalidInput(f"{path} is not a file.", accepted="A job file, or a folder of them.")
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from error


def show(read: ImportedFile, *, err: bool) -> None:
    """Print the roles of a file and what is not kept, or why it is refused."""
    if read.job is None:
        note(f"Refused: {display.printable(str(read.refused))}\n")
        return
    job = read.job
    name, title = display.printable(read.name), display.printable(job.name)
    click.echo(f"{name}: {title} ({job.format})", err=err)
    memory = units.size(memory_bytes(job)) if memory_bytes(job) else ""
    display.table(
        ["ROLE", "MEMBERS", "DEVICES", "MEMORY", "IMAGE", "COMMAND"],
        [
            [
                role.name,
                str(role.count),
                str(role.devices),
                memory,
                read.images.get(role.name, role.image)[:_WIDEST],
                " ".join(role.script.split())[:_WIDEST],
            ]
            for role in job.roles
        ],
        right="MEMBERS,DEVICES,MEMORY",
        err=err,
    )
    if job.not_kept:
        click.echo("Not kept:", err=err)
        for each in job.not_kept:
            click.echo(f"  line {each.line}, {display.printable(_text(each))}", err=err)
    click.echo(err=err)


def _text(each: NotKept) -> str:
    return f"{each.field}: {each.reason}"
