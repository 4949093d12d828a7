"""Wait for the next event: a message of the service or a kernel, printed text, or an exit."""

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
    """A message of a channel (None: it is closed), text of a pipe, or nothing in time."""

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
    """Waits for events. All messages of a process come before the event of its exit."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._lives: dict[MessageChannel, int | None] = {}
        self._pipes: list[_Pipe] = []

    def watch(self, channel: MessageChannel, life: int | None = None) -> None:
        """Add a channel; ``life`` is a descriptor of the process at its other end."""
        self._lives[channel] = life
        self._selector.register(channel, selectors.EVENT_READ, channel)
        if life is not None:
            self._selector.register(life, selectors.EVENT_READ, (channel,))

    def watch_pipe(self, name: str, number: int) -> None:
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
        """The next event; an empty one at the deadline. Raises Garbled.

        A closed channel gives one event, and is removed.
        """
        for channel in self._lives:
            if (message := channel.waiting()) is not None:
                return PolledEvent(channel=channel, message=message)
        wait = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready = [key.data for key, _ in self._selector.select(wait)]
        # Messages of a process come before its exit.
        for source in sorted(ready, key=lambda source: isinstance(source, tuple)):
            event = self._read(source)
            if event is not None:
                return event
        return PolledEvent()

    def _read(self, source: _Pipe | MessageChannel | tuple[MessageChannel]) -> PolledEvent | None:
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
        """What the pipes hold at this moment, by name."""
        found = []
        for pipe in self._pipes:
            while (event := self._read_pipe(pipe)) is not None and event.text:
                found.append((event.pipe, event.text))
        return iter(found)

    def _read_pipe(self, pipe: _Pipe) -> PolledEvent | None:
        try:
            data = os.read(pipe.number, _CHUNK)
        except BlockingIOError:
            return None
        return PolledEvent(pipe=pipe.name, text=pipe.decoder.decode(data)) if data else None
