"""Build the request body of a job, for the command line and Python alike."""

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
        workdir: below the owner's home, used by reference; empty for the home.
        luggage: the files to upload into a folder of its own; None without upload.
    """

    workdir: str = ""
    luggage: WorkArchive | None = None

    @property
    def fields(self) -> dict[str, str]:
        """Return the fields of the job; packs the uploaded files."""
        if self.luggage is not None:
            return {"archive": work_archive.encoded(work_archive.packed(self.luggage))}
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
    """Use the folder by reference if the job will see it, or upload it if requested.

    Args:
        here: the folder in question.
        home: of the session in which this runs; None outside of a session.
        needed: the job needs its files (a command, unlike a notebook).

    Raises:
        InvalidInput: options contradict each other, or it is unclear which files are meant.
        TooLarge: more than a job can upload.
    """
    if workdir is not None and (upload or inputs):
        raise InvalidInput(
            "A job works either in a folder of your home or in an uploaded one.",
            accepted="Omit --workdir, or --upload and --input.",
        )
    if upload or inputs:
        found = work_archive.of_folder(here) if upload else WorkArchive(items=())
        return WorkingFolder(luggage=work_archive.with_inputs(found, inputs))
    if workdir is not None:
        return WorkingFolder(workdir="" if workdir in {".", "~"} else workdir.removeprefix("~/"))
    real = here.resolve()
    if home is not None and real.is_relative_to(home):
        below = real.relative_to(home).as_posix()
        return WorkingFolder(workdir="" if below == "." else below)
    if needed:
        raise InvalidInput(
            f"A job does not see {real}: it is not in your home there.",
            accepted="Take it along with --upload or single files with --input FILE, or name "
            "a folder of your home there with --workdir DIR (. for the home itself).",
        )
    return WorkingFolder()


def job(fields: dict[str, object], *, maker: str) -> JobIn:
    """Return a job with its own idempotency key, so that retries make one job.

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
    """Return the models of the pool, by name, that any of the user's groups may use.

    Empty if the pool has only one model, so that there is no choice.

    Args:
        allowed: the models that each group may use, None for all.
    """
    pool, groups = {device.model for device in devices}, tuple(allowed)
    usable = (model for model in pool if any(g is None or model in g for g in groups))
    return sorted(usable) if len(pool) > 1 else []


def only_group(client: Client, how: str) -> str:
    """Return the only group that can be charged for a job of this user.

    ``how`` to choose one is part of the error message.

    Raises:
        InvalidInput: there are several, or there is none.
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
