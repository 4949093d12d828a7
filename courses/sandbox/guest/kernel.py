"""Run the student's cells: the kernel process, and each snapshot of it.

It executes the commands of the supervisor, one at a time. A snapshot is a fork that continues over
a channel of its own. Hidden tests are not here while the student's cells run, and messages from
here are not trusted: the student's code can forge them.
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
from .iteration_guard import IterationGuard
from .messages import Json, Message, MessageChannel, text
from .shell import SandboxShell, error, flush
from .tamper_check import TamperCheck

# Kept here: the student's code may replace them in the module ``os``.
_exit: Final = os._exit
_fork: Final = os.fork
_getpid: Final = os.getpid


class Interrupts:
    """Let SIGINT interrupt the running cell, and do nothing between two cells.

    A process that the cell forked ends here: only the kernel itself goes on.
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
    """``door`` is the socket on which a new snapshot sends its channel to the supervisor."""

    def __init__(
        self,
        shell: SandboxShell,
        tampering: TamperCheck,
        channel: MessageChannel,
        door: socket.socket,
    ) -> None:
        self._shell, self._tampering = shell, tampering
        self._channel, self._door = channel, door
        self._interrupts = Interrupts()
        self._take_ownership()
        self._shell.show.sink = lambda output: self._channel.send({"output": output})

    def _take_ownership(self) -> None:
        self._interrupts.owner = self._shell.show.owner = _getpid()

    def serve_commands(self) -> NoReturn:
        """Execute commands until the supervisor disconnects."""
        commands: dict[str, Callable[[Message], None]] = {
            "run": self._run,
            "mark": self._mark,
            "test": self._test,
            "ask": self._ask,
        }
        while (command := self._channel.receive()) is not None:
            commands[text(command, "do")](command)
        _exit(0)

    def _run(self, command: Message) -> None:
        self._cell(command, ())

    def _cell(self, command: Message, tampered: tuple[str, ...]) -> None:
        self._shell.show.errors = 0
        try:
            with self._interrupts:
                guard = IterationGuard() if text(command, "do") == "test" else None
                result = self._shell.run(text(command, "source"), guard=guard)
                flush()
        except KeyboardInterrupt:
            self._done(command, status="error")
            return
        if self._shell.leaving:
            _exit(0)
        problem = result.error_before_exec or result.error_in_exec
        if problem is not None and not self._shell.show.errors:
            self._shell.show(error(type(problem).__name__, str(problem), ["No traceback."]))
        failed = problem is not None or bool(self._shell.show.errors)
        if text(command, "do") == "test":
            tampered = (*tampered, *self._tampering.changes(text(command, "source")))
        self._done(command, status="error" if failed else "ok", tampered=sorted(set(tampered)))

    def _done(self, command: Message, **members: Json) -> None:
        self._channel.send({"done": command["nonce"], **members})

    def _mark(self, command: Message) -> None:
        """Fork a snapshot. What a fork changes is restored, such as the state of ``random``."""
        flush()
        random_state = random.getstate()
        here, there = os.pipe()
        try:
            child = _fork()
        except OSError:
            self._done(command, status="error")
            return
        if child:
            # The snapshot closes its end of the pipe once it has sent its channel.
            os.close(there)
            os.read(here, 1)
            os.close(here)
            self._done(command, status="ok")
            return
        os.close(here)
        isolation.hide()
        random.setstate(random_state)
        _drop_event_loop()
        self._take_ownership()
        mine, theirs = socket.socketpair()
        name = text(command, "mark").encode()
        socket.send_fds(self._door, [name], [theirs.fileno()])
        theirs.close()
        os.close(there)
        self._channel.end.close()
        self._channel = MessageChannel(mine, self._channel.most_bytes)

    def _test(self, command: Message) -> None:
        if command.get("asks"):
            remote_values.prepare(self._shell.user_ns, self._question)
        self._cell(command, self._tampering.changes(text(command, "source")))

    def _question(self, question: Json) -> Json:
        """Ask for a name of the student's code, in a test that runs in another sandbox."""
        flush()
        self._channel.send({"question": question})
        answer = self._channel.receive()
        if answer is None:
            _exit(0)
        return answer.get("answer")

    def _ask(self, command: Message) -> None:
        try:
            with self._interrupts:
                value = value_server.answer(self._shell.user_ns, command.get("question"))
                flush()
        except KeyboardInterrupt:
            self._done(command, status="error")
            return
        self._done(command, status="ok", value=value)


def _drop_event_loop() -> None:
    """Drop the asyncio event loop: a fork shares its descriptors with its parent."""
    helpers = sys.modules.get("IPython.core.async_helpers")
    if helpers is not None:
        vars(helpers)["_asyncio_event_loop"] = None
