"""What a probe job has found, as its file ``advice.json`` says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from pydantic import JsonValue

from ..errors import InvalidInput

MOST_BYTES: Final = 1 << 20
_MOST_ENTRIES: Final = 100
_MOST_CHARACTERS: Final = 2000
_MOST_SECONDS: Final = 1e8


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
            sentences = [_text(each) for each in found["sentences"] if isinstance(each, str)]
            parameters = found.get("parameters", {})
            usable = {
                _text(name): _text(value) if isinstance(value, str) else value
                for name, value in parameters.items()
                if isinstance(value, bool | int | float | str)
            }
            seconds = float(found.get("run_seconds", 0.0))
        except (
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            RecursionError,
            OverflowError,
        ) as error:
            raise InvalidInput(
                "The advice cannot be read.", accepted="The file advice.json of a probe job."
            ) from error
        return cls(
            sentences=tuple(sentences[:_MOST_ENTRIES]),
            parameters=dict(list(usable.items())[:_MOST_ENTRIES]),
            run_seconds=seconds if 0 < seconds < _MOST_SECONDS else 0.0,
        )


def _text(found: str) -> str:
    """Return a text that a page can show: without lone surrogates, and not too long."""
    return found[:_MOST_CHARACTERS].encode("utf-8", "ignore").decode("utf-8")
