"""Fetch material into a folder of the home: the first time as it is, later merged by cell."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Final, Protocol

from pydantic import Field

from ...courses.workspace.folder import put_file, write_changes
from ...courses.workspace.folder_merge import merge
from ...hub.attempts.notebook_format import read_notebook
from ...hub.client import Client
from ...hub.errors import InvalidInput, NotFound, TooLarge
from ...hub.files.filenames import numbered
from ...hub.schemas import In, Out
from ...hub.schemas.names import is_hidden
from ...hub.schemas.open_links.bodies import MaterialOut
from .fetched_files import MARK, MAX_BYTES, FetchedFiles
from .fetched_versions import FetchedVersions
from .notebook_download import fetch_notebook
from .repository import fetch_repository

COPY: Final = "own-copy"
"""In the name of a kept file: ``data.own-copy.csv``."""
_NOTEBOOK: Final = ".ipynb"
_MOST_ENTRIES: Final = 100_000
_MOST_NAMED: Final = 5


class OpenMaterialIn(In):
    """The ticket in the address of JupyterLab."""

    ticket: Annotated[str, Field(min_length=1, max_length=2000)]


class OpenedMaterialOut(Out):
    """The folder of the material, what to show in it, and what the merge did.

    Attributes:
        shown: the folder to show, by its path as JupyterLab names it.
        file: the file to show instead; empty for none.
    """

    folder: str
    shown: str
    file: str
    notes: list[str]


class MaterialPlace(Protocol):
    """The session in which material is opened.

    Attributes:
        root: the folder that JupyterLab shows.
    """

    @property
    def root(self) -> Path: ...
    @property
    def client(self) -> Client: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterialRecord:
    """What a folder was opened from, and the version that was merged into it last."""

    url: str
    branch: str
    version: str


def open_material(
    place: MaterialPlace, body: OpenMaterialIn, versions: FetchedVersions
) -> OpenedMaterialOut:
    """Fetch what the user has confirmed, and merge it into its folder.

    Raises:
        NotFound: the ticket, the repository, the branch or the path does not exist.
        Forbidden: the site does not allow the address any more.
        InvalidInput: a path leads outside of the folder, or what should be a notebook is none.
        TooLarge, Unavailable: as ``fetch_repository`` and ``fetch_notebook``.
    """
    material = place.client.material(body.ticket)
    return open_in(place.root, material, versions)


def open_in(root: Path, material: MaterialOut, versions: FetchedVersions) -> OpenedMaterialOut:
    """Fetch material and merge it into its folder below ``root``. Raises as ``open_material``."""
    name = PurePosixPath(material.url).name
    try:
        if name.endswith(_NOTEBOOK):
            fetched, shown = fetch_notebook(material.url, name), name
        else:
            fetched, shown = fetch_repository(material.url, material.branch), material.path
        _check_shown(fetched, shown, material)
        with versions.locked():
            folder, record = _folder_of(root, name, material.url, fetched.branch)
            notes = _merge_into(folder, record, material.url, fetched, versions)
    except OSError as error:
        raise InvalidInput(
            f"The files of {material.url} cannot be written: {error.strerror}.",
            accepted="Free space in your home, or make its folder writable.",
        ) from error
    if fetched.left_out:
        notes.append(_left_out(fetched.left_out))
    path = f"{folder.name}/{shown}" if shown else folder.name
    is_file = shown in fetched.files
    return OpenedMaterialOut(
        folder=folder.name,
        shown=folder.name if is_file else path,
        file=path if is_file else "",
        notes=notes,
    )


def _check_shown(fetched: FetchedFiles, shown: str, material: MaterialOut) -> None:
    """Require that the file or folder to show exists, and that a notebook is one."""
    if shown in fetched.files:
        if shown.endswith(_NOTEBOOK):
            read_notebook(shown, fetched.files[shown])
    elif shown and not any(name.startswith(f"{shown}/") for name in fetched.files):
        raise NotFound(
            f"{material.url} has no file or folder {shown} in {fetched.branch}.",
            accepted="Correct the path of the link.",
        )


def _folder_of(root: Path, name: str, url: str, branch: str) -> tuple[Path, MaterialRecord | None]:
    """Return the folder of the material and its record, or the first unused name for it."""
    plain = name.removesuffix(".git").removesuffix(_NOTEBOOK).lstrip(".") or "material"
    for candidate in numbered(plain):
        folder = root / candidate
        record = record_of(folder)
        if record is not None and (record.url, record.branch) == (url, branch):
            return folder, record
        if not folder.exists() and not folder.is_symlink():
            return folder, None
    raise AssertionError("unreachable: the names are infinite")


def record_of(folder: Path) -> MaterialRecord | None:
    """The record in a folder; None if it was not opened by a link, or cannot be read."""
    try:
        record = MaterialRecord(**json.loads((folder / MARK).read_text()))
    except (OSError, ValueError, TypeError):
        return None
    valid = all(isinstance(each, str) for each in (record.url, record.branch, record.version))
    return record if valid else None


def _merge_into(
    folder: Path,
    record: MaterialRecord | None,
    url: str,
    fetched: FetchedFiles,
    versions: FetchedVersions,
) -> list[str]:
    """Merge a version into a folder; return the notes for the user."""
    key = str(folder)
    old = versions.get(key, record.version) if record is not None else {}
    new = dict(fetched.files)
    mine = _relevant_files(folder, {*old, *new}) if record is not None else {}
    merged = merge(old, new, mine, copy=COPY)
    versions.put(key, fetched.version, new)
    if record is None:
        # After a crash the next call continues in this folder.
        _write_record(folder, MaterialRecord(url=url, branch=fetched.branch, version=""))
    write_changes(folder, mine, merged.files)
    _make_executable(folder, fetched.executable & merged.files.keys())
    now = MaterialRecord(url=url, branch=fetched.branch, version=fetched.version)
    _write_record(folder, now)
    versions.keep_only(key, fetched.version)
    return list(merged.notes)


def _write_record(folder: Path, record: MaterialRecord) -> None:
    put_file(folder / MARK, json.dumps(asdict(record)).encode())


def _relevant_files(folder: Path, names: set[str]) -> Mapping[str, bytes]:
    """Read the user's files that a merge may concern; others, such as results, may be large.

    These are the files of the material, copies beside them, and files in the place of a folder of
    the material or in a folder in the place of a file of it.

    Raises:
        InvalidInput: a link is in the place of a file or folder of the material.
        TooLarge: the folder has too many files, or those of the material have become too large.
    """
    above = {str(each) for name in names for each in PurePosixPath(name).parents} - {"."}
    read: dict[str, bytes] = {}
    size = 0
    for number, path in enumerate(_below(folder)):
        if number > _MOST_ENTRIES:
            raise TooLarge(f"{folder.name} has more than {_MOST_ENTRIES:,} files.")
        name = path.relative_to(folder).as_posix()
        inside = any(str(each) in names for each in PurePosixPath(name).parents)
        if not (name in names or name in above or inside or f".{COPY}" in name):
            continue
        if path.is_symlink() or not path.is_file():
            if name in names or name in above:
                raise InvalidInput(
                    f"{folder.name}/{name} is a link or a special file, in the place of a file of "
                    "the repository.",
                    accepted="Rename or remove it, and open the link again.",
                )
            continue
        size += path.stat().st_size
        if size > 2 * MAX_BYTES:
            raise TooLarge(
                f"The files in {folder.name} have become too large to be merged.",
                accepted="Clear the outputs of its notebooks, or move large files elsewhere.",
            )
        read[name] = path.read_bytes()
    return read


def _below(folder: Path) -> Iterator[Path]:
    """Yield all files and links below a folder; links are not followed."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            yield from _below(path)
        else:
            yield path


def _make_executable(folder: Path, names: frozenset[str]) -> None:
    for name in names:
        path = folder / name
        path.chmod(path.stat().st_mode | 0o100)


def _left_out(names: tuple[str, ...]) -> str:
    shown = ", ".join(map(_visible, names[:_MOST_NAMED]))
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"Left out, since they are links, submodules or have unusable names: {shown}{more}."


def _visible(name: str) -> str:
    return "".join("\ufffd" if is_hidden(character) else character for character in name)


Operation = Callable[[MaterialPlace, OpenMaterialIn], OpenedMaterialOut]


def opening(data: Path) -> Operation:
    """Return the operation that opens material; the versions are below the data folder."""
    versions = FetchedVersions(data / "carrel" / "materials")
    return lambda place, body: open_material(place, body, versions)
