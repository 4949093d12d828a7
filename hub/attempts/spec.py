"""The order: what a runner is to execute, as a private file in the attempt's folder."""

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
NOTICE: Final = "notice.json"
SAVED: Final = "saved"
WORK: Final = "work"
BELL: Final = "bell"
"""Beside the folder of an attempt that is waited for (``waiting``)."""
_KEPT_BY_SERVICE: Final = frozenset({"archive", "retries", "internet", "notes"})
"""Fields of a job that the service and the backend use; the file does not have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSpec:
    """The specification of an attempt for the runner.

    Attributes:
        service_url: where it reports to, without a trailing slash.
        devices: names for people, for the output notebook.
        device_ids: the same devices by id.
        job: what to execute; its fields are top-level keys of the file, which runners in older
            images read.
        archive_path: the uploaded .tar.gz; empty without one.
        image: what all of it runs in, as ``NAME@sha256:…``; empty outside of images.
        owner, course_data: for a runner that was started before it was anybody's.
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
    owner: str = ""
    course_data: str = ""
    limits: OutputLimits = field(default_factory=OutputLimits)

    def write(self, folder: Path, *, owner: Owner | None = None) -> None:
        """Whole or not at all, readable for its owner only."""
        job = {k: v for k, v in self.job.as_json().items() if k not in _KEPT_BY_SERVICE}
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        del values["job"]
        values |= {**job, "limits": asdict(self.limits)}
        write_into(folder, ORDER, json.dumps(values, indent=2) + "\n", owner=owner)

    @classmethod
    def read(cls, folder: Path) -> AttemptSpec:
        """What a later Carrel adds is passed over: old work runs again in its own image.

        Raises:
            InvalidInput: there is no order that this version understands.
        """
        try:
            found = json.loads((folder / ORDER).read_text(encoding="utf-8"))
            for name in ("devices", "device_ids"):
                found[name] = tuple(found.get(name, ()))
            job = JobSpec.from_json(_known(JobSpec, found))
            limits = OutputLimits(**_known(OutputLimits, found.get("limits", {})))
            return cls(**{**_known(cls, found), "job": job, "limits": limits})
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise InvalidInput(f"{folder / ORDER} is no order: {error}.") from error


def _known(
    kind: type[AttemptSpec | JobSpec | OutputLimits],
    found: Mapping[str, Any],  # JSON
) -> dict[str, Any]:
    names = {each.name for each in fields(kind)}
    return {name: value for name, value in found.items() if name in names}
