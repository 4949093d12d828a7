"""The order: what a runner is to execute, as a private file in the attempt's folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from ..errors import InvalidInput
from ..files.safe_fs import Owner, write_into
from ..records.json_value import Json
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSpec:
    """Everything that the runner needs to know.

    Attributes:
        service_url: where it reports to, without a trailing slash.
        devices: names for people, for the output notebook.
        device_ids: the same devices by id.
        command: program and arguments, in place of a notebook.
        workdir: working folder below the home, or below the uploaded folder.
        archive_path: the uploaded .tar.gz; empty without one.
        memory_bytes: resident memory that the job's processes may hold together; 0 for any.
        image: what all of it runs in, as ``NAME@sha256:…``; empty outside of images.
        owner, course_data: for a runner that was started before it was anybody's.
    """

    lease_id: str
    request_id: str
    epoch: int
    token: str
    service_url: str
    input_path: str
    notebook_name: str
    output_name: str
    parameters: Mapping[str, Json]
    kernel: str
    home: str
    devices: tuple[str, ...]
    device_ids: tuple[str, ...]
    command: tuple[str, ...] = ()
    workdir: str = ""
    archive_path: str = ""
    memory_bytes: int = 0
    image: str = ""
    owner: str = ""
    course_data: str = ""
    limits: OutputLimits = field(default_factory=OutputLimits)

    def write(self, folder: Path, *, owner: Owner | None = None) -> None:
        """Whole or not at all, readable for its owner only."""
        write_into(folder, ORDER, json.dumps(asdict(self), indent=2) + "\n", owner=owner)

    @classmethod
    def read(cls, folder: Path) -> AttemptSpec:
        """What a later Carrel adds is passed over: old work runs again in its own image.

        Raises:
            InvalidInput: there is no order that this version understands.
        """
        try:
            found = json.loads((folder / ORDER).read_text(encoding="utf-8"))
            for name in ("devices", "device_ids", "command"):
                found[name] = tuple(found.get(name, ()))
            limits = OutputLimits(**_known(OutputLimits, found.get("limits", {})))
            return cls(**{**_known(cls, found), "limits": limits})
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise InvalidInput(f"{folder / ORDER} is no order: {error}.") from error


def _known(
    kind: type[AttemptSpec] | type[OutputLimits],
    found: Mapping[str, Any],  # JSON
) -> dict[str, Any]:
    names = {each.name for each in fields(kind)}
    return {name: value for name, value in found.items() if name in names}
