"""What a probe job has found, as its file ``advice.json`` says."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from pydantic import JsonValue

from ..errors import InvalidInput

MOST_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """The advice of a probe job.

    Attributes:
        sentences: all that it says.
        parameters: values of the parameters of the notebook that make it the fastest; the job may
            have them already.
        run_seconds: how long the whole run is then predicted to take; 0 if unknown.
    """

    sentences: tuple[str, ...]
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)
    run_seconds: float = 0.0

    @classmethod
    def from_json(cls, content: bytes) -> Self:
        """Read the file. Raises InvalidInput: it is none, such as one that the notebook wrote."""
        try:
            found = json.loads(content)
            sentences = [each for each in found["sentences"] if isinstance(each, str)]
            parameters = found.get("parameters", {})
            usable = {
                name: value
                for name, value in parameters.items()
                if isinstance(value, bool | int | float | str)
            }
            seconds = found.get("run_seconds", 0.0)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidInput(
                "The advice cannot be read.", accepted="The file advice.json of a probe job."
            ) from error
        known = isinstance(seconds, int | float) and 0 < seconds < math.inf
        return cls(
            sentences=tuple(sentences),
            parameters=usable,
            run_seconds=float(seconds) if known else 0.0,
        )
