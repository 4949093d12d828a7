"""Collect the outputs of one cell in the form of a notebook, up to a size limit."""

from __future__ import annotations

import json
from typing import Final

from .messages import Json, Message, text

MOST_OUTPUTS: Final = 2000
_DATA: Final = frozenset({"display_data", "execute_result"})


class TooMuch(Exception):
    """The outputs exceed their limit."""


class CellOutput:
    """Merges consecutive stream outputs, and applies clears and updates."""

    def __init__(self, most_bytes: int) -> None:
        self._most, self._size = most_bytes, 0
        self._outputs: list[dict[str, Json]] = []
        self._named: dict[str, dict[str, Json]] = {}
        self._clear_next = False

    @property
    def outputs(self) -> list[Json]:
        return [*self._outputs]

    def errors(self) -> list[tuple[str, str]]:
        """Name and text of each error output."""
        return [
            (text(each, "ename"), text(each, "evalue"))
            for each in self._outputs
            if each["output_type"] == "error"
        ]

    def add(self, output: Message) -> None:
        """Add an output. Raises TooMuch, and keeps the earlier outputs."""
        self._size += len(json.dumps(output, ensure_ascii=False))
        if self._size > self._most or len(self._outputs) >= MOST_OUTPUTS:
            raise TooMuch
        kind = text(output, "output_type")
        if kind == "clear_output":
            self._clear_next = True
            if not output.get("wait"):
                self._clear()
            return
        if kind == "update_display_data":
            self._update(output)
            return
        if self._clear_next:
            self._clear()
        if kind == "stream":
            self._add_stream(text(output, "name"), text(output, "text"))
        elif kind == "error":
            self._add_error(output)
        elif kind in _DATA:
            self._add_data(kind, output)

    def _clear(self) -> None:
        self._outputs.clear()
        self._named.clear()
        self._clear_next = False

    def _add_stream(self, name: str, words: str) -> None:
        name = "stderr" if name == "stderr" else "stdout"
        last = self._outputs[-1] if self._outputs else {}
        if last.get("output_type") == "stream" and last.get("name") == name:
            last["text"] = text(last, "text") + words
            return
        self._outputs.append({"output_type": "stream", "name": name, "text": words})

    def _add_error(self, output: Message) -> None:
        lines = output.get("traceback")
        self._outputs.append(
            {
                "output_type": "error",
                "ename": text(output, "ename"),
                "evalue": text(output, "evalue"),
                "traceback": [str(each) for each in lines] if isinstance(lines, list) else [],
            }
        )

    def _add_data(self, kind: str, output: Message) -> None:
        kept: dict[str, Json] = {"output_type": kind}
        for name in ("data", "metadata"):
            value = output.get(name)
            kept[name] = value if isinstance(value, dict) else {}
        if kind == "execute_result":
            count = output.get("execution_count")
            kept["execution_count"] = count if isinstance(count, int) else None
        self._outputs.append(kept)
        if display_id := text(output, "display_id"):
            self._named[display_id] = kept

    def _update(self, output: Message) -> None:
        shown = self._named.get(text(output, "display_id"))
        if shown is not None:
            for name in ("data", "metadata"):
                value = output.get(name)
                shown[name] = value if isinstance(value, dict) else {}
