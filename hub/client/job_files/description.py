"""A job file as values, independent of its format."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from ...schemas.requests import MOST_RETRIES

DOCUMENTATION: Final = "It documents the file."
CPU: Final = "A job has no number of cores."
PLATFORM: Final = "It belongs to the other platform."
CONTAINER: Final = "A site sets the options of containers."
PORTS: Final = (
    "Ports are numbered, but not reserved, and cannot be reached from outside of the job."
)


class JobFileFormat(StrEnum):
    OPENPAI = "openpai"
    FFDL = "ffdl"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotKept:
    """What an imported job has not of its file.

    Attributes:
        line: in the file, from 1.
        field: its path in the file, such as ``taskRoles.worker.resourcePerInstance.cpu``.
        reason: one sentence without a value of the file that could be a secret.
    """

    line: int
    field: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedRole:
    """Equal members.

    Attributes:
        name: as Carrel names it.
        devices, memory_bytes: of one member; 0 bytes for no limit.
        script: run by bash, without the variables of the other platform.
        image: as the file names it.
        line: of the image in the file.
        own_name: the name in the file.
        ports: number of ports, by label.
    """

    name: str
    own_name: str
    count: int
    devices: int
    memory_bytes: int
    script: str
    image: str
    line: int
    ports: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedJob:
    """A job of a file.

    Attributes:
        name: of the job, for a label; empty for none.
        must_succeed: names of roles; empty for all.
        retries: after lost processes and transient errors; None for Carrel's default.
        prologue: lines of bash that set the variables of the other platform; empty for none.
        needs_files: whether the file comes with a folder of files that its command needs.
        secrets: names of secrets that its commands read from variables of the same name.
    """

    format: JobFileFormat
    name: str
    roles: tuple[DescribedRole, ...]
    must_succeed: tuple[str, ...] = ()
    retries: int | None = None
    priority: str = "normal"
    prologue: str = ""
    needs_files: bool = False
    secrets: tuple[str, ...] = ()
    not_kept: tuple[NotKept, ...] = field(default=())


def retries_of(count: int, line: int, field: str) -> tuple[int | None, list[NotKept]]:
    """Return the retries of a job for a number in its file, and what of them is not kept.

    A job without retries is nevertheless started again when its node fails, there as here.
    """
    if not count:
        return None, []
    kept = min(count, MOST_RETRIES)
    reason = f"After a lost process or a transient error it is retried {kept} times, "
    reason += "and not after an error of its own code."
    return kept, [NotKept(line=line, field=field, reason=reason)]
