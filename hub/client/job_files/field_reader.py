"""Read the fields of a mapping with their types; what is not read counts as not kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ...schemas.base import LARGEST
from .description import NotKept
from .yaml_source import MalformedJobFile, YamlList, YamlMapping, YamlNode, YamlScalar

_WHOLE: Final = re.compile(r"-?(?:0|[1-9][0-9]*)")
_DIGITS: Final = 12
_NOT_KNOWN: Final = "Carrel has nothing that corresponds to it."


class FieldReader:
    """The fields of one mapping of a job file.

    Attributes:
        path: of the mapping in the file, with a dot at its end; empty for the whole file.
    """

    def __init__(self, file: str, node: YamlMapping, path: str = "") -> None:
        self.file = file
        self.node = node
        self.path = path
        self._read: set[str] = set()

    @classmethod
    def of(cls, file: str, node: YamlNode, path: str = "") -> FieldReader:
        """Raises MalformedJobFile unless the node is a mapping."""
        if not isinstance(node, YamlMapping):
            what = f"{path.removesuffix('.')} is" if path else "The file is"
            raise MalformedJobFile(
                file, node.line, f"{what} not a mapping.", accepted="Keys with values."
            )
        return cls(file, node, path)

    def line(self, key: str) -> int:
        return self.node.lines.get(key, self.node.line)

    def error(self, key: str, message: str, accepted: str) -> MalformedJobFile:
        """Return the error about the value of a key."""
        return MalformedJobFile(self.file, self.line(key), message, accepted=accepted)

    def not_kept(self, key: str, reason: str) -> NotKept:
        return NotKept(line=self.line(key), field=f"{self.path}{key}", reason=reason)

    def has(self, key: str) -> bool:
        """Return whether a key has a value that is not null."""
        node = self.node.values.get(key)
        return node is not None and not (isinstance(node, YamlScalar) and node.is_null)

    def get(self, key: str) -> YamlNode | None:
        """Return the value of a key; None if it has none."""
        self._read.add(key)
        return self.node.values[key] if self.has(key) else None

    def text(self, key: str, *, default: str | None = None) -> str:
        """Return a text; a number counts as one."""
        node = self.get(key)
        if node is None and default is not None:
            return default
        if not isinstance(node, YamlScalar):
            raise self._wrong(key, node, "A text.")
        return node.text

    def whole(
        self, key: str, *, default: int | None = None, least: int = 0, most: int = LARGEST
    ) -> int:
        """Return a whole number between ``least`` and ``most``."""
        node = self.get(key)
        if node is None and default is not None:
            return default
        accepted = f"A whole number of at least {least}."
        if not isinstance(node, YamlScalar) or not node.plain or not _WHOLE.fullmatch(node.text):
            raise self._wrong(key, node, accepted)
        if len(node.text) > _DIGITS or not least <= int(node.text) <= most:
            raise self._wrong(key, node, f"A whole number from {least} to {most:,}.")
        return int(node.text)

    def mapping(self, key: str) -> FieldReader | None:
        """Return a reader of the mapping below a key; None if there is none."""
        node = self.get(key)
        return None if node is None else FieldReader.of(self.file, node, f"{self.path}{key}.")

    def needed_mapping(self, key: str) -> FieldReader:
        found = self.mapping(key)
        if found is None:
            raise self._wrong(key, None, "Keys with values.")
        return found

    def mappings(self, key: str) -> Iterator[FieldReader]:
        """Yield a reader of each mapping of a list."""
        for number, item in enumerate(self.items(key)):
            yield FieldReader.of(self.file, item, f"{self.path}{key}[{number}].")

    def items(self, key: str) -> tuple[YamlNode, ...]:
        """Return the items of a list; none if there is no list."""
        node = self.get(key)
        if node is None:
            return ()
        if not isinstance(node, YamlList):
            raise self._wrong(key, node, "A list.")
        return node.items

    def texts(self, key: str) -> tuple[YamlScalar, ...]:
        """Return the texts of a list with their lines."""
        found = []
        for item in self.items(key):
            if not isinstance(item, YamlScalar):
                raise MalformedJobFile(
                    self.file, item.line, f"{self.path}{key} has an item that is not a text.",
                    accepted="A list of texts; quote a text that contains ': '.",
                )  # fmt: skip
            found.append(item)
        return tuple(found)

    def drop(self, key: str, reason: str) -> Iterator[NotKept]:
        """Yield that a key is not kept, if it has a value."""
        self._read.add(key)
        if self.has(key):
            yield self.not_kept(key, reason)

    def rest(self) -> Iterator[NotKept]:
        """Yield the keys that were not read and have a value."""
        for key in self.node.values:
            if key not in self._read and self.has(key):
                yield self.not_kept(key, _NOT_KNOWN)

    def _wrong(self, key: str, node: YamlNode | None, accepted: str) -> MalformedJobFile:
        what = "is missing" if node is None else "has no valid value"
        line = node.line if node is not None else self.line(key)
        return MalformedJobFile(self.file, line, f"{self.path}{key} {what}.", accepted=accepted)
