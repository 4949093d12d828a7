"""From what a person asks for to the job that is sent: one way for the terminal and Python."""

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
    """Where a job works.

    Attributes:
        workdir: below the owner's home, where it works by reference; empty for the home.
        luggage: what is taken along into a folder of its own; None where nothing is.
    """

    workdir: str = ""
    luggage: WorkArchive | None = None

    @property
    def fields(self) -> dict[str, str]:
        """As part of a job's description; packs what is taken along."""
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
    """By reference where the job will see the same files, taken along where that is asked for.

    Args:
        here: the folder in question.
        home: of the session in which this runs; None outside of one.
        needed: the job makes no sense without its files (a command, unlike a notebook).

    Raises:
        InvalidInput: they contradict each other, or it is not clear which files are meant.
        TooLarge: more than a job can take along.
    """
    if workdir is not None and (upload or inputs):
        raise InvalidInput(
            "A job works either in a folder of your home there or in one that it brings along.",
            accepted="Leave out --workdir, or --upload and --input.",
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
    """A job with a key of its own: however often it is sent, it is one job.

    Raises:
        InvalidInput: in the words of what was wrong.
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
    """The models of the pool, by name, that any of one's groups may use.

    Empty where the pool has one model only, and nobody need choose.

    Args:
        allowed: of each group the models that it may use, None for all.
    """
    pool, groups = {device.model for device in devices}, tuple(allowed)
    usable = (model for model in pool if any(g is None or model in g for g in groups))
    return sorted(usable) if len(pool) > 1 else []


def only_group(client: Client, how: str) -> str:
    """The group that a job of this person is charged to, where there is no choice.

    ``how`` one chooses is said where there is one.

    Raises:
        InvalidInput: there is one, or there is no group.
    """
    groups = client.me().groups
    if len(groups) == 1:
        return groups[0]
    raise InvalidInput(
        "A job is charged to a group, and you are in several."
        if groups
        else "A job is charged to a group, and you are in none: ask a teacher or administrator.",
        accepted=f"Choose one with {how}: {', '.join(sorted(groups))}." if groups else "",
    )
