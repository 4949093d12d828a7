"""Replace the values of secrets in what a job prints, as CI systems do.

Only the exact value is found, and each line of a value of several lines: a value that the job
encodes, cuts or prints in pieces is not. Short values are left, since they occur by chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ....hub.records.json_value import Json

MASK: Final = "***"
SHORTEST: Final = 6
"""Characters of the shortest text that is masked."""


class Masker:
    """Masks values in text; without values it returns text as it is."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        texts = {text.strip() for value in values for text in (value, *value.splitlines())}
        found = sorted((text for text in texts if len(text) >= SHORTEST), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, found))) if found else None

    def text(self, text: str) -> str:
        return text if self._pattern is None else self._pattern.sub(MASK, text)

    def json(self, value: Json) -> Json:
        """Mask the strings in a JSON value, but not the names of fields."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {name: self.json(field) for name, field in value.items()}
        return [self.json(item) for item in value] if isinstance(value, list) else value
