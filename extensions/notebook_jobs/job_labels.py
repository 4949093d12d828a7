"""Labels of a job that hold what only Notebook Jobs knows: its name, formats and tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from ...hub.errors import InvalidInput
from .choices import OUTPUT_FORMATS

_PREFIX: Final = "notebook-jobs/"
_NAME: Final = f"{_PREFIX}name"
_FORMATS: Final = f"{_PREFIX}formats"
_FOLDER: Final = f"{_PREFIX}folder"
_TAG: Final = f"{_PREFIX}tag-"
_MOST_CHARACTERS: Final = 128
"""Of the value of a label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookJobLabels:
    """The labels as values.

    Attributes:
        name: empty for a job that another program submitted.
        formats: the formats of the output that the user chose.
        with_folder: whether it works in a copy of the notebook's folder.
    """

    name: str = ""
    formats: Sequence[str] = tuple(OUTPUT_FORMATS)
    tags: Sequence[str] = ()
    with_folder: bool = False

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> Self:
        formats = [each for each in labels.get(_FORMATS, "").split(",") if each in OUTPUT_FORMATS]
        tags = sorted((name for name in labels if name.startswith(_TAG)), key=_number)
        return cls(
            name=labels.get(_NAME, ""),
            formats=formats if _FORMATS in labels else tuple(OUTPUT_FORMATS),
            tags=[labels[name] for name in tags],
            with_folder=_FOLDER in labels,
        )

    def as_labels(self) -> dict[str, str]:
        """Raises InvalidInput for a tag that is too long."""
        for tag in self.tags:
            if len(tag) > _MOST_CHARACTERS:
                raise InvalidInput(
                    f"The tag {tag[:20]!r} … has {len(tag)} characters.",
                    accepted=f"A tag has at most {_MOST_CHARACTERS}.",
                )
        tags = {f"{_TAG}{number}": tag for number, tag in enumerate(filter(None, self.tags), 1)}
        folder = {_FOLDER: "copied"} if self.with_folder else {}
        return {_NAME: self.name, _FORMATS: ",".join(self.formats)} | folder | tags


def _number(name: str) -> int:
    digits = name.removeprefix(_TAG)
    return int(digits) if digits.isdecimal() else 0
