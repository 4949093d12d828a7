"""Waits for whoever speaks first: the outside, a kernel, what it prints, or its death."""

from __future__ import annotations

import codecs
import os
import selectors
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .messages import Message, MessageChannel

_CHUNK: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledEvent:
    """A message of a channel (None: it is gone), text of a pipe, or nothing in time."""

    channel: MessageChannel | None = None
    message: Message | None = None
    pipe: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pipe:
    name: str
    number: int
    decoder: codecs.IncrementalDecoder


class EventPoller:
    """Whose death is watched is heard to the last message before it is said to be gone."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._lives: dict[MessageChannel, int | None] = {}
        self._pipes: list[_Pipe] = []

    def listen(self, channel: MessageChannel, life: int | None = None) -> None:
        """``life`` is a descriptor of the process that speaks there."""
        self._lives[channel] = life
        self._selector.register(channel, selectors.EVENT_READ, channel)
        if life is not None:
            self._selector.register(life, selectors.EVENT_READ, (channel,))

    def listen_to_pipe(self, name: str, number: int) -> None:
        os.set_blocking(number, False)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        pipe = _Pipe(name=name, number=number, decoder=decoder)
        self._pipes.append(pipe)
        self._selector.register(number, selectors.EVENT_READ, pipe)

    def forget(self, channel: MessageChannel) -> None:
        """Safe to repeat."""
        if channel in self._lives:
            life = self._lives.pop(channel)
            self._selector.unregister(channel)
            if life is not None:
                self._selector.unregister(life)

    def next(self, deadline: float | None) -> PolledEvent:
        """Nothing was heard until the deadline: an empty one. Raises Garbled.

        Who is gone is said to be gone once, and forgotten.
        """
        for channel in self._lives:
            if (message := channel.waiting()) is not None:
                return PolledEvent(channel=channel, message=message)
        wait = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready = [key.data for key, _ in self._selector.select(wait)]
        # What was said comes before the death of who said it.
        for source in sorted(ready, key=lambda source: isinstance(source, tuple)):
            heard = self._hear(source)
            if heard is not None:
                return heard
        return PolledEvent()

    def _hear(self, source: _Pipe | MessageChannel | tuple[MessageChannel]) -> PolledEvent | None:
        if isinstance(source, _Pipe):
            return self._read_pipe(source)
        if isinstance(source, MessageChannel):
            goes_on = source.read()
            message = source.waiting()
            if not goes_on and message is None:
                self.forget(source)
                return PolledEvent(channel=source)
            return PolledEvent(channel=source, message=message) if message is not None else None
        self.forget(source[0])
        return PolledEvent(channel=source[0])

    def drain(self) -> Iterator[tuple[str, str]]:
        """What pipes hold at this moment."""
        found = []
        for pipe in self._pipes:
            while (heard := self._read_pipe(pipe)) is not None and heard.text:
                found.append((heard.pipe, heard.text))
        return iter(found)

    def _read_pipe(self, pipe: _Pipe) -> PolledEvent | None:
        try:
            data = os.read(pipe.number, _CHUNK)
        except BlockingIOError:
            return None
        return PolledEvent(pipe=pipe.name, text=pipe.decoder.decode(data)) if data else None
