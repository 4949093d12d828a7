"""Limit the outputs of cells in the notebook, and more strictly in events."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from ....hub.attempts.figures import reference
from ....hub.attempts.output_limits import OutputLimits, format_size
from ....hub.records.json_value import Json, check_depth
from .outcome_messages import plain
from .text import KeptText, Lines, left_out, storable, utf8_size

if TYPE_CHECKING:
    from nbformat import NotebookNode

Cut: TypeAlias = Callable[[str, int], None]
"""Receives the kind of the output that was left out, and its size in bytes."""

_METADATA_LIMIT: Final = 1 << 16
_ERROR_LIMIT: Final = 1 << 16
_LAST_PART: Final = 20
"""This fraction of a cell's outputs (1/20) is reserved for the last ones."""
_ALWAYS: Final = frozenset({"execute_result", "error"})


class StreamOutput:
    """The text of a cell on stdout or stderr, as one output of the notebook."""

    def __init__(self, output: NotebookNode, limit: int) -> None:
        self.output = output
        self._lines = Lines(max(1, limit // 8))
        self._kept = KeptText(limit)

    def add(self, text: str, dropped: Callable[[int], None], missing: int = 0) -> None:
        """Add text.

        Args:
            dropped: receives the number of bytes that were left out.
            missing: bytes that the kernel left out before this text.
        """
        if missing:
            self._kept.add(self._lines.rest(), dropped)
            self._kept.skip(missing, dropped)
        self._kept.add(self._lines.add(text), dropped)

    def settle(self) -> None:
        self.output["text"] = storable(self._kept.text + self._lines.held)


class CellOutputs:
    """The outputs of the running cell in nbclient's list.

    The text of a stream is joined only when it is needed (``settle``): joining a million small
    pieces one by one would take quadratic time.
    """

    def __init__(self, limits: OutputLimits, cut: Cut) -> None:
        self._limits = limits
        self._cut = cut
        self._streams: dict[int, StreamOutput] = {}
        self._spent_before = 0
        """Bytes of finished cells that count towards the notebook's limit."""
        self._spent_in_cell = 0
        self._replaced: dict[str, int] = {}
        self._most_last = max(1, limits.cell_items // _LAST_PART)
        self._last: deque[NotebookNode] = deque()
        """The newest outputs of the cell that did not fit; they follow when it ends."""
        self._left_out = 0

    def start_cell(self) -> None:
        """Reset the state for the next cell."""
        self._spent_before += self._spent_in_cell
        self._spent_in_cell = 0
        self._streams = {}
        self._last.clear()
        self._left_out = 0

    def print(self, outputs: list[NotebookNode], name: str, text: str, missing: int = 0) -> None:
        stream = self._stream(outputs, name)
        if stream is None:
            self._cut("output", utf8_size(text))
        else:
            stream.add(text, lambda size: self._cut("output", size), missing)

    def _stream(self, outputs: list[NotebookNode], name: str) -> StreamOutput | None:
        last = outputs[-1] if outputs else None
        if last is None or last.get("name") != name:
            same_stream = (
                [o for o in outputs if o.get("name") == name] if self._full(outputs) else []
            )
            last = same_stream[-1] if same_stream else None
        if last is not None and id(last) in self._streams:
            return self._streams[id(last)]
        remaining = self._limits.cell_text - self._cell_text(outputs)
        if (
            self._full(outputs)
            or remaining <= 0
            or self._spent_before + self._spent_in_cell > self._limits.notebook
        ):
            return None
        output = _node({"output_type": "stream", "name": name, "text": ""})
        outputs.append(output)
        self._streams[id(output)] = stream = StreamOutput(output, remaining)
        return stream

    def _cell_text(self, outputs: list[NotebookNode]) -> int:
        if len(outputs) < 2:  # noqa: PLR2004  # a single stream may use the whole limit
            return 0
        self.settle()
        return sum(len(o["text"]) for o in outputs if o.output_type == "stream")

    def _full(self, outputs: list[NotebookNode]) -> bool:
        return len(outputs) >= self._limits.cell_items - self._most_last

    def accept(self, outputs: list[NotebookNode], output: NotebookNode) -> bool:
        """Clip a rich output or an error; return False if it is held back until the cell ends."""
        clip(output, self._limits.item, self._cut)
        if not outputs:  # no output yet, or the cell has cleared its outputs
            self._last.clear()
            self._left_out = 0
        size = _size(dict(output))
        # Outputs after one that is held back are held back too, so that the order is kept.
        if not self._last and not self._full(outputs) and self._fits(size):
            self._spent_in_cell += size
            return True
        self._last.append(output)
        if len(self._last) > self._most_last:
            self._leave_out(self._last.popleft())
        return False

    def _leave_out(self, output: NotebookNode) -> None:
        self._left_out += 1
        self._cut("output", _size(dict(output)))

    def _fits(self, size: int) -> bool:
        return self._spent_before + self._spent_in_cell + size <= self._limits.notebook

    def spend(self, size: int) -> bool:
        """Reserve space in the notebook for other data; return False if the notebook is full."""
        if not self._fits(size):
            self._cut("output", size)
            return False
        self._spent_in_cell += size
        return True

    def replace(self, what: str, size: int) -> bool:
        """Reserve space for a new version of ``what``; only its growth counts."""
        more = size - self._replaced.get(what, 0)
        if more > 0 and not self.spend(more):
            return False
        self._replaced[what] = max(size, self._replaced.get(what, 0))
        return True

    def settle(self) -> None:
        for stream in self._streams.values():
            stream.settle()

    def end(self, outputs: list[NotebookNode]) -> None:
        """Add the outputs of a cell that were held back; its result and its error always fit."""
        self.settle()
        self._spent_in_cell += sum(len(stream.output["text"]) for stream in self._streams.values())
        always = {
            output.output_type: output for output in self._last if output.output_type in _ALWAYS
        }
        kept = []
        for output in self._last:
            size = _size(dict(output))
            if self._fits(size) or output is always.get(output.output_type):
                self._spent_in_cell += size
                kept.append(output)
            else:
                self._leave_out(output)
        if self._left_out:
            were = "output was" if self._left_out == 1 else "outputs were"
            text = f"[carrel: {self._left_out:,} {were} left out]\n"
            outputs.append(_node({"output_type": "stream", "name": "stderr", "text": text}))
        outputs.extend(kept)
        self._last.clear()


def clip(output: NotebookNode, limit: int, cut: Cut) -> None:
    """Replace data that is too large by a note."""
    if output.output_type == "error":
        lines = "\n".join(output.traceback)
        if len(lines) > _ERROR_LIMIT:
            cut("output", len(lines) - _ERROR_LIMIT)
            output["traceback"] = [lines[: _ERROR_LIMIT // 2], "…", lines[-_ERROR_LIMIT // 2 :]]
        for part in ("ename", "evalue"):
            output[part] = str(output[part])[: _ERROR_LIMIT // 8]
    if "data" in output:
        for kind in output.data:
            size = _size(output.data[kind])
            if size > limit:
                cut("output", size)
        output["data"] = _node(bounded_bundle(output.data, lambda _: limit))
    if _size(output.get("metadata", {})) > _METADATA_LIMIT:
        output["metadata"] = _node({})


def bounded_bundle(data: Mapping[str, Json], limit_of: Callable[[str], int]) -> dict[str, Json]:
    """Return a MIME bundle with a note instead of parts that are too large or too deep."""
    kept: dict[str, Json] = {}
    notes = []
    for named, value in data.items():
        kind = _valid_type(named, value)
        try:
            check_depth(value)
        except ValueError:
            notes.append(f"[{kind} left out: nested too deeply]")
            continue
        size = _size(value)
        if size <= limit_of(kind):
            kept[kind] = value
        else:
            notes.append(f"[{kind} of {format_size(size)} left out]")
    if notes:
        known = [str(kept["text/plain"])] if "text/plain" in kept else []
        kept["text/plain"] = "\n".join([*known, *notes])
    return kept


def _valid_type(mime: str, value: Json) -> str:
    """Return the MIME type under which nbformat accepts the value.

    Only types that end with ``+json`` may have JSON; Altair's ends with ``.json``.
    """
    lines = value if isinstance(value, list) else [value]
    if mime == "application/json" or mime.endswith("+json"):
        return mime
    if all(isinstance(line, str) for line in lines):
        return mime
    return f"{mime.removesuffix('.json')}+json"


def event_output(output: Mapping[str, Json], limits: OutputLimits) -> dict[str, Json]:
    """Return the output, clipped for an event."""
    kind = output["output_type"]
    if kind == "stream":
        text = str(output["text"])
        return {
            "output_type": "stream",
            "name": output["name"],
            "text": storable(shortened(text, limits.event_text)),
        }
    if kind == "error":
        traceback = output["traceback"]
        assert isinstance(traceback, list)
        lines = plain("\n".join(map(str, traceback)))
        return {
            "output_type": "error",
            "ename": storable(str(output["ename"])[:200]),
            "evalue": storable(shortened(str(output["evalue"]), 2000)),
            "traceback": [shortened(lines, limits.event_text)],
        }

    def limit_of(mime: str) -> int:
        if mime.startswith("image/"):
            return limits.event_image
        return limits.event_html if mime == "text/html" else limits.event_text

    data = output["data"]
    assert isinstance(data, dict)
    kept = bounded_bundle(data, limit_of)
    shown: dict[str, Json] = {
        "output_type": kind,
        "data": kept,
        "metadata": reference(data, kept),
    }
    if kind == "execute_result":
        shown["execution_count"] = output.get("execution_count")
    return shown


def shortened(text: str, limit: int) -> str:
    """Return the beginning and the end of a text that is too long."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return text[:half] + left_out(utf8_size(text[half:-half])) + text[-half:]


def _node(value: Mapping[str, Json]) -> NotebookNode:
    # Imported here, because a runner claims its job before it imports the notebook libraries.
    from nbformat.notebooknode import from_dict  # noqa: PLC0415

    node: NotebookNode = from_dict(value)  # type: ignore[no-untyped-call]
    return node


def _size(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return sum(map(len, value))
    return len(json.dumps(value, default=str))
