"""The process in which a student's cells run, and each snapshot of it.

It obeys the warden, one order at a time. A snapshot is a fork of it that goes on obeying over a
line of its own. Nothing that is hidden is here while a student's cell runs; whatever leaves here
may be the student's own word, and is taken as that.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import sys
from collections.abc import Callable
from typing import Final, NoReturn

from . import isolation, remote_values, value_server
from .messages import Json, Message, MessageChannel, text
from .shell import SandboxShell, error, flush
from .tamper_check import TamperCheck

# Kept here, since a student's code may put others in their place.
_exit: Final = os._exit
_fork: Final = os.fork
_getpid: Final = os.getpid


class Interrupts:
    """SIGINT means the cell that runs, and nothing between two cells.

    A process that a cell forked ends here: it has come back to where only the kernel goes on.
    """

    owner = 0

    def __init__(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def __enter__(self) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def __exit__(self, *raised: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if _getpid() != self.owner:
            _exit(0)


class StudentKernel:
    """``door`` is where a new snapshot hands the other end of its line to the warden."""

    def __init__(
        self, shell: SandboxShell, prints: TamperCheck, channel: MessageChannel, door: socket.socket
    ) -> None:
        self._shell, self._prints = shell, prints
        self._channel, self._door = channel, door
        self._interrupts = Interrupts()
        self._own()
        self._shell.show.sink = lambda output: self._channel.send({"output": output})

    def _own(self) -> None:
        self._interrupts.owner = self._shell.show.owner = _getpid()

    def obey(self) -> NoReturn:
        """Until the warden hangs up."""
        orders: dict[str, Callable[[Message], None]] = {
            "run": self._run,
            "mark": self._mark,
            "test": self._test,
            "ask": self._ask,
        }
        while (order := self._channel.receive()) is not None:
            orders[text(order, "do")](order)
        _exit(0)

    def _run(self, order: Message) -> None:
        self._cell(order, ())

    def _cell(self, order: Message, tampered: tuple[str, ...]) -> None:
        self._shell.show.errors = 0
        try:
            with self._interrupts:
                result = self._shell.run(text(order, "source"))
                flush()
        except KeyboardInterrupt:
            self._done(order, status="error")
            return
        if self._shell.leaving:
            _exit(0)
        problem = result.error_before_exec or result.error_in_exec
        if problem is not None and not self._shell.show.errors:
            self._shell.show(error(type(problem).__name__, str(problem), ["No traceback."]))
        failed = problem is not None or bool(self._shell.show.errors)
        if text(order, "do") == "test":
            tampered = (*tampered, *self._prints.changes(text(order, "source")))
        self._done(order, status="error" if failed else "ok", tampered=sorted(set(tampered)))

    def _done(self, order: Message, **members: Json) -> None:
        self._channel.send({"done": order["nonce"], **members})

    def _mark(self, order: Message) -> None:
        """What a fork changes by itself is put back: numbers drawn stay those of the seed."""
        flush()
        drawn = random.getstate()
        here, there = os.pipe()
        try:
            child = _fork()
        except OSError:
            self._done(order, status="error")
            return
        if child:
            # Until the snapshot stands at the door: its end of the pipe is closed then.
            os.close(there)
            os.read(here, 1)
            os.close(here)
            self._done(order, status="ok")
            return
        os.close(here)
        isolation.hide()
        random.setstate(drawn)
        _forget_loop()
        self._own()
        mine, theirs = socket.socketpair()
        name = text(order, "mark").encode()
        socket.send_fds(self._door, [name], [theirs.fileno()])
        theirs.close()
        os.close(there)
        self._channel.end.close()
        self._channel = MessageChannel(mine, self._channel.most_bytes)

    def _test(self, order: Message) -> None:
        if order.get("asks"):
            remote_values.prepare(self._shell.user_ns, self._question)
        self._cell(order, self._prints.changes(text(order, "source")))

    def _question(self, question: Json) -> Json:
        """Of a test that runs apart: the answer comes from where the student's code is."""
        flush()
        self._channel.send({"question": question})
        answer = self._channel.receive()
        if answer is None:
            _exit(0)
        return answer.get("answer")

    def _ask(self, order: Message) -> None:
        try:
            with self._interrupts:
                value = value_server.answer(self._shell.user_ns, order.get("question"))
                flush()
        except KeyboardInterrupt:
            self._done(order, status="error")
            return
        self._done(order, status="ok", value=value)


def _forget_loop() -> None:
    """Of asyncio: a fork shares its descriptors with the process that it came from."""
    helpers = sys.modules.get("IPython.core.async_helpers")
    if helpers is not None:
        vars(helpers)["_asyncio_event_loop"] = None
