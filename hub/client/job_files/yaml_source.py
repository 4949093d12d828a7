"""Read YAML, and JSON as a part of it, into a tree of nodes with line numbers, within bounds.

The tree is built from the events of the parser, without constructors: tags create no objects. An
anchor is shared, not copied, and its uses count as if it were written out, so that a small file
cannot expand into a large one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from ...errors import InvalidInput

MAX_FILE_BYTES: Final = 256 * 1024
MAX_DEPTH: Final = 32
MAX_WEIGHT: Final = 50_000
"""Of a file with its anchors written out: 1 for each node, and 1 more for each 64 characters."""
_CHARACTERS: Final = 64
_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_HALVES: Final = re.compile(r"\\\\|\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
"""An escaped backslash, or a character beyond U+FFFF as two escapes."""
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class MalformedJobFile(InvalidInput):
    """A job file that cannot be imported; ``line`` counts from 1."""

    def __init__(self, file: str, line: int, message: str, *, accepted: str = "") -> None:
        super().__init__(f"{file}, line {line}: {message}", accepted=accepted)
        self.line = line
        self.reason = message


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlScalar:
    """A single value, as the text of the file: ``0.10`` stays ``0.10``.

    Attributes:
        plain: whether it is without quotes, so that it may be a number or null.
    """

    line: int
    text: str
    plain: bool

    @property
    def is_null(self) -> bool:
        return self.plain and self.text in _NULL


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlList:
    line: int
    items: tuple[YamlNode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlMapping:
    """Values by key, in the order of the file; ``lines`` has the line of each key."""

    line: int
    values: Mapping[str, YamlNode]
    lines: Mapping[str, int]


YamlNode = YamlScalar | YamlList | YamlMapping


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sized:
    """A node with its weight and height, its anchors written out."""

    node: YamlNode
    weight: int
    height: int


def parse(file: str, content: bytes) -> YamlNode:
    """Return the only document of a file.

    Args:
        file: its name, for errors.

    Raises:
        MalformedJobFile: it is too large, no text, no YAML, or nested or expanded too far. No
            message quotes a value, which may be a secret.
    """
    if len(content) > MAX_FILE_BYTES:
        raise MalformedJobFile(
            file, 1, f"The file has {len(content) >> 10:,} KiB.",
            accepted=f"At most {MAX_FILE_BYTES >> 10} KiB.",
        )  # fmt: skip
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise MalformedJobFile(
            file, line, "This is not text in UTF-8.", accepted="Save the file as UTF-8."
        ) from error
    if text.lstrip().startswith("{"):
        text = _json_as_yaml(text)
    try:
        return _Composer(file, yaml.parse(text, Loader=_LOADER)).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        reason = f"This is not valid YAML: {error.problem or error.context}."
        raise MalformedJobFile(file, line, reason, accepted=_hint(text, line)) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, _first_control(text)) + 1
        raise MalformedJobFile(
            file, line, "The file contains a control character.", accepted="Remove it."
        ) from error


def _json_as_yaml(text: str) -> str:
    """Return JSON without what YAML does not allow: tabs, and characters escaped in two halves.

    No string of JSON contains a tab.
    """
    return _HALVES.sub(_whole, text.replace("\t", " "))


def _whole(match: re.Match[str]) -> str:
    if not match.group(1):
        return match.group()
    halves = bytes.fromhex(match.group(1) + match.group(2))
    return halves.decode("utf-16-be")


def _hint(text: str, line: int) -> str:
    """Say what is often the reason: a value in curly brackets, or a tab."""
    lines = text.splitlines()
    here = lines[line - 1] if line <= len(lines) else ""
    return "Indent with blanks, not tabs." if "\t" in here else "Check indentation and quotes."


def _first_control(text: str) -> int:
    return next((at for at, c in enumerate(text) if ord(c) < 32 and c not in "\t\n\r"), 0)  # noqa: PLR2004  # the first printable character


class _Composer:
    def __init__(self, file: str, events: Iterator[Any]) -> None:
        self.file = file
        self.events = events
        self.anchors: dict[str, _Sized] = {}
        self.weight = 0

    def document(self) -> YamlNode:
        next(self.events)  # start of the stream
        start = next(self.events)
        if isinstance(start, yaml.StreamEndEvent):
            raise MalformedJobFile(self.file, 1, "The file is empty.")
        node = self._node(next(self.events), 1).node
        next(self.events)  # end of the document
        after = next(self.events)
        if not isinstance(after, yaml.StreamEndEvent):
            line = after.start_mark.line + 1
            raise MalformedJobFile(
                self.file, line, "A second document begins here.", accepted="One job in a file."
            )
        return node

    def _node(self, event: Any, depth: int) -> _Sized:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor, line, depth)
        self._check(depth, line)
        tag = event.tag
        if tag not in (None, "!"):
            raise MalformedJobFile(
                self.file, line, "A value has a tag.", accepted="Values without a tag (!…)."
            )
        if isinstance(event, yaml.ScalarEvent):
            plain = event.style is None or event.style == ""
            node = YamlScalar(line=line, text=str(event.value), plain=plain)
            sized = _Sized(node=node, weight=1 + len(node.text) // _CHARACTERS, height=1)
            self._count(sized.weight, line)
        elif isinstance(event, yaml.SequenceStartEvent):
            sized = self._list(line, depth)
        else:
            sized = self._mapping(line, depth)
        if event.anchor:
            # Registered after its content: a value that contains itself uses an unknown anchor.
            self.anchors[event.anchor] = sized
        return sized

    def _list(self, line: int, depth: int) -> _Sized:
        items: list[_Sized] = []
        self._count(1, line)
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            items.append(self._node(event, depth + 1))
        return _Sized(
            node=YamlList(line=line, items=tuple(item.node for item in items)),
            weight=1 + sum(item.weight for item in items),
            height=1 + max((item.height for item in items), default=0),
        )

    def _mapping(self, line: int, depth: int) -> _Sized:
        values: dict[str, YamlNode] = {}
        merged: dict[str, YamlNode] = {}
        lines: dict[str, int] = {}
        weight, height = 1, 0
        self._count(1, line)
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self._key(event)
            value = self._node(next(self.events), depth + 1)
            weight += value.weight
            height = max(height, value.height)
            if key == "<<":
                for each in self._merged(value.node):
                    merged = dict(each.values) | merged
                    lines = dict(each.lines) | lines
                continue
            if key in values:
                raise MalformedJobFile(
                    self.file, event.start_mark.line + 1,
                    f"The key {key[:80]!r} is here a second time; it is also in line {lines[key]}.",
                    accepted="Each key once.",
                )  # fmt: skip
            values[key] = value.node
            lines[key] = event.start_mark.line + 1
        node = YamlMapping(line=line, values=merged | values, lines=lines)
        return _Sized(node=node, weight=weight, height=1 + height)

    def _key(self, event: Any) -> str:
        if isinstance(event, yaml.ScalarEvent):
            self._count(1, event.start_mark.line + 1)
            return str(event.value)
        raise MalformedJobFile(
            self.file, event.start_mark.line + 1, "A key is not text.",
            accepted="Fill in templates such as {{name}}, and quote values that begin with a curly "
            "bracket.",
        )  # fmt: skip

    def _merged(self, node: YamlNode) -> Iterator[YamlMapping]:
        for each in node.items if isinstance(node, YamlList) else (node,):
            if not isinstance(each, YamlMapping):
                raise MalformedJobFile(
                    self.file, node.line, "'<<' merges a value that is not a mapping.",
                    accepted="An anchor of a mapping.",
                )  # fmt: skip
            yield each

    def _alias(self, name: str, line: int, depth: int) -> _Sized:
        found = self.anchors.get(name)
        if found is None:
            raise MalformedJobFile(
                self.file, line, f"There is no anchor {name[:80]!r} before this line.",
                accepted="An anchor that is complete before it is used.",
            )  # fmt: skip
        self._check(depth + found.height - 1, line)
        self._count(found.weight, line)
        return found

    def _check(self, depth: int, line: int) -> None:
        if depth > MAX_DEPTH:
            raise MalformedJobFile(
                self.file, line, "Values are nested too deeply.",
                accepted=f"At most {MAX_DEPTH} levels.",
            )  # fmt: skip

    def _count(self, weight: int, line: int) -> None:
        self.weight += weight
        if self.weight > MAX_WEIGHT:
            raise MalformedJobFile(
                self.file, line, "The file is too large with its anchors written out.",
                accepted=f"At most {MAX_WEIGHT:,} values.",
            )  # fmt: skip
