"""The ended jobs that the user removed from the list; the service keeps its records of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ...hub.files.private_file import write_private

_MOST = 5000
"""How many ids are remembered; the list shows fewer jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedJobs:
    """A JSON list of ids in the home, the last removed one at its end."""

    file: Path

    def ids(self) -> list[str]:
        """Return the ids; none if the file is missing or is not such a list."""
        try:
            found = json.loads(self.file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return []
        return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []

    def add(self, ids: Iterable[str]) -> None:
        kept = list(dict.fromkeys([*self.ids(), *ids]))[-_MOST:]
        self.file.parent.mkdir(parents=True, exist_ok=True)
        write_private(self.file, json.dumps(kept))
