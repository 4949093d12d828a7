"""Build the request body of a job, for the command line and for Python."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from ..errors import InvalidInput
from ..schemas import DeviceOut, JobIn
from . import work_archive
from .sync_client import Client
from .work_archive import WorkArchive


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingFolder:
    """The working folder of a job.

    Attributes:
        workdir: path below the owner's home, used by reference; empty for the home.
        upload: the files to upload into a folder of its own; None without an upload.
    """

    workdir: str = ""
    upload: WorkArchive | None = None

    @property
    def fields(self) -> dict[str, str]:
        """Return the fields of the job; packs the uploaded files."""
        if self.upload is not None:
            return {"archive": work_archive.encode(work_archive.pack(self.upload))}
        return {"workdir": self.workdir} if self.workdir else {}


def working_folder(
    here: Path,
    *,
    home: Path | None,
    upload: bool,
    inputs: Sequence[Path] = (),
    workdir: str | None = None,
    needed: bool = False,
) -> WorkingFolder:
    """Return the working folder: a reference if the job can read the folder, or an upload.

    Args:
        here: the current folder.
        home: home folder of the session in which this runs; None outside of a session.
        upload: upload the current folder.
        inputs: single files to upload.
        workdir: a folder below the home, by reference.
        needed: whether the job needs the files of the folder (a command does, a notebook does
            not).

    Raises:
        InvalidInput: options contradict each other, or the job needs files that it cannot read.
        TooLarge: the files exceed the limit of an upload.
    """
    if workdir is not None and (upload or inputs):
        raise InvalidInput(
            "A job works either in a folder of your home or in an uploaded one.",
            accepted="Omit --workdir, or --upload and --input.",
        )
    if upload or inputs:
        files = work_archive.collect(here) if upload else WorkArchive(items=())
        return WorkingFolder(upload=work_archive.add_inputs(files, inputs))
    if workdir is not None:
        return WorkingFolder(workdir="" if workdir in {".", "~"} else workdir.removeprefix("~/"))
    real = here.resolve()
    if home is not None and real.is_relative_to(home):
        below = real.relative_to(home).as_posix()
        return WorkingFolder(workdir="" if below == "." else below)
    if needed:
        raise InvalidInput(
            f"A job cannot read {real}: it is not in your home on the site.",
            accepted="Upload it with --upload, upload single files with --input FILE, or name a "
            "folder of your home on the site with --workdir DIR (. for the home itself).",
        )
    return WorkingFolder()


def job(fields: dict[str, object], *, maker: str) -> JobIn:
    """Return the body of a job with a new idempotency key, so that retries create one job.

    Args:
        maker: the program that creates the job; prefix of the key.

    Raises:
        InvalidInput: a value is invalid.
    """
    try:
        return JobIn.model_validate(
            fields | {"idempotency_key": f"{maker}-{secrets.token_hex(16)}"}
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"{where}: {first['msg']}.") from error


def model_choices(
    allowed: Iterable[Sequence[str] | None], devices: Iterable[DeviceOut]
) -> list[str]:
    """Return the sorted device models of the pool that any of the user's groups may use.

    Empty if the pool has only one model: there is nothing to choose.

    Args:
        allowed: for every group, the models that it may use; None for all.
    """
    pool, groups = {device.model for device in devices}, tuple(allowed)
    usable = (model for model in pool if any(g is None or model in g for g in groups))
    return sorted(usable) if len(pool) > 1 else []


def only_group(client: Client, how: str) -> str:
    """Return the group of a user who is in exactly one.

    Args:
        how: the option that selects a group, for the error message.

    Raises:
        InvalidInput: the user is in several groups or in none.
    """
    groups = client.me().groups
    if len(groups) == 1:
        return groups[0]
    raise InvalidInput(
        "A job is charged to a group, and you are in several."
        if groups
        else "A job is charged to a group, and you are not in one: ask a teacher or administrator.",
        accepted=f"Choose one with {how}: {', '.join(sorted(groups))}." if groups else "",
    )
