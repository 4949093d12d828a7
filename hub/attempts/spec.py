"""The order of an attempt: what its runner executes, as a private file in the attempt's folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from ..errors import InvalidInput
from ..files.safe_fs import Owner, write_into
from ..records.requests import JobSpec
from .output_limits import OutputLimits

ORDER: Final = "order.json"
CLAIM: Final = "claim"
LOG: Final = "log.txt"
EVENTS: Final = "events.jsonl"
OUTPUT: Final = "output.ipynb"
FILES: Final = "files"
PROGRESS: Final = "progress.json"
REPORTS: Final = "reports.jsonl"
COMPILATIONS: Final = "compilations.jsonl"
"""What `carrel.execution.accelerate` has written, beside the reports."""
PROVENANCE: Final = "provenance.json"
"""What the runner knows about the inputs and the environment of the attempt, for its receipt."""
NOTICE: Final = "notice.json"
SAVED: Final = "saved"
WORK: Final = "work"
PACKAGES: Final = "packages"
"""In a container, kernels write the packages that they have used into files ``packages.PID``."""
WAKE_PIPE: Final = "bell"
"""The named pipe next to the attempt folder that wakes a waiting runner."""
_KEPT_BY_SERVICE: Final = frozenset(
    {"archive", "retries", "internet", "notes", "after", "results", "gang"}
    | {"rerun_of", "accepted_changes"}
)
"""Fields of a job that service and backend implement; they are not part of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSpec:
    """What a member of a gang knows before it has joined.

    Attributes:
        rank, size: its rank from 0, and the number of members, over all roles.
        number, role_size: the same within its role.
        subnet: in which the members reach each other; empty if they do so at the addresses with
            which they reach the service.
    """

    rank: int
    size: int
    role: str
    number: int
    role_size: int
    subnet: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSpec:
    """The specification of an attempt for the runner.

    Attributes:
        service_url: the URL that the runner reports to, without a trailing slash.
        devices: readable names of the devices, for the output notebook.
        device_ids: ids of the same devices.
        job: the job to execute; its fields are top-level keys of the file, as runners in older
            images expect.
        archive_path: the uploaded .tar.gz; empty without one.
        image: the image of the attempt, as ``NAME@sha256:…``; empty without images.
        fork_server: path of the socket of a fork server for the owner's kernels; empty without.
        owner, course_data: for a runner in a warm container, which started before its owner was
            known.
        member: of a gang; ``lease_id`` is then the id of the member.
    """

    lease_id: str
    request_id: str
    epoch: int
    token: str
    service_url: str
    input_path: str
    home: str
    devices: tuple[str, ...]
    device_ids: tuple[str, ...]
    job: JobSpec
    archive_path: str = ""
    image: str = ""
    fork_server: str = ""
    owner: str = ""
    course_data: str = ""
    member: MemberSpec | None = None
    limits: OutputLimits = field(default_factory=OutputLimits)

    def write(self, folder: Path, *, owner: Owner | None = None) -> None:
        """Write the file atomically, readable for ``owner`` only."""
        job = {k: v for k, v in self.job.as_json().items() if k not in _KEPT_BY_SERVICE}
        values = {key.name: getattr(self, key.name) for key in fields(self)}
        del values["job"]
        member = None if self.member is None else asdict(self.member)
        values |= {**job, "limits": asdict(self.limits), "member": member}
        write_into(folder, ORDER, json.dumps(values, indent=2) + "\n", owner=owner)

    @classmethod
    def read(cls, folder: Path) -> AttemptSpec:
        """Read the file and ignore unknown keys.

        A retried job runs in its original image, where the runner may be older than the service.

        Raises:
            InvalidInput: the file is missing or not a valid order.
        """
        try:
            found = json.loads((folder / ORDER).read_text(encoding="utf-8"))
            for name in ("devices", "device_ids"):
                found[name] = tuple(found.get(name, ()))
            job = JobSpec.from_json(_known(JobSpec, found))
            limits = OutputLimits(**_known(OutputLimits, found.get("limits", {})))
            member = found.get("member")
            found["member"] = MemberSpec(**_known(MemberSpec, member)) if member else None
            return cls(**{**_known(cls, found), "job": job, "limits": limits})
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise InvalidInput(f"{folder / ORDER} is not a valid order: {error}.") from error


def _known(
    kind: type[AttemptSpec | JobSpec | MemberSpec | OutputLimits],
    found: Mapping[str, Any],  # JSON
) -> dict[str, Any]:
    names = {key.name for key in fields(kind)}
    return {name: value for name, value in found.items() if name in names}


def member_folder(attempt: Path, rank: int) -> Path:
    """Return the folder of a member of a gang; that of member 0 is the folder of the attempt.

    The others are beside it, where only the service writes: a member could replace a folder below
    its own by a link.
    """
    return attempt.with_name(member_folder_name(attempt.name, rank))


def member_folder_name(attempt: str, rank: int) -> str:
    """``1`` for member 0 of the first attempt, ``1.m2`` for member 2."""
    return f"{attempt}.m{rank}" if rank else attempt
