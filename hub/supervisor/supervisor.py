"""The loop that starts the components, restarts those that end, and stops them in order.

It sleeps in one ``select`` on the pidfds of the processes and on a pipe that signal handlers
write to, so that it reacts to an exit or Ctrl-C at once.
"""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from ..errors import BackendFailed, Unavailable
from .child_process import Backoff, Child, Component
from .liveness import LivenessCheck

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """Limits of start, restart and stop; durations are in seconds.

    Attributes:
        start: until all components must be ready at the first start.
        early_deaths: number of exits of a component before that which fails the start.
        ask: between two readiness probes.
        stop: from SIGTERM to SIGKILL, per component.
        check: between two liveness probes of a component that is ready.
        missed: number of liveness probes in a row without a response after which a component is
            killed, and then restarted; each takes up to ten seconds.
    """

    start: float = 180.0
    early_deaths: int = 4
    ask: float = 0.15
    stop: float = 10.0
    check: float = 5.0
    missed: int = 3


class Supervisor:
    def __init__(
        self,
        parts: Sequence[Component],
        *,
        logs: Path,
        run: Path,
        say: Callable[[str], None],
        ready: Callable[[], bool] = lambda: True,
        backoff: Backoff | None = None,
        patience: RestartPolicy | None = None,
    ) -> None:
        self._children = [
            Child(part, logs=logs, run=run, backoff=backoff or Backoff()) for part in parts
        ]
        self._say = say
        self._everything_ready = ready
        self._patience = patience or RestartPolicy()
        self._selector = selectors.DefaultSelector()
        self._stopping = False
        self._complete = False
        self._woken, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._woken, selectors.EVENT_READ)

    @property
    def children(self) -> tuple[Child, ...]:
        return tuple(self._children)

    def request_stop(self) -> None:
        """Stop; a second call kills the components at once.

        Safe to call from a signal handler and from another thread.
        """
        if self._stopping:
            self._patience = RestartPolicy(stop=0.2)
            for child in self._children:
                child.kill()
        self._stopping = True
        os.write(self._wake, b".")

    def run(self, when_ready: Callable[[], None]) -> None:
        """Run until a stop is requested; all components are stopped on any exit.

        Raises:
            Unavailable: a component did not become ready; the message has the end of its log.
        """
        try:
            with self._signals():
                try:
                    self._start(when_ready)
                    while not self._stopping:
                        self._step()
                finally:
                    self._stop_all()
        finally:
            self._selector.close()
            os.close(self._woken)
            os.close(self._wake)

    def _start(self, when_ready: Callable[[], None]) -> None:
        now = time.monotonic()
        deadline = now + self._patience.start
        for child in self._children:
            self._start_child(child, now)
        while not self._stopping:
            if all(child.ready for child in self._children) and self._everything_ready():
                self._complete = True
                when_ready()
                return
            self._check_start(deadline)
            self._step()

    def _step(self) -> None:
        """Wait for the next event and handle it."""
        for key, _ in self._selector.select(self._until_next()):
            if key.data is None:
                os.read(self._woken, 512)
            else:
                self._handle_exit(key.data)
        now = time.monotonic()
        for child in self._children:
            if self._stopping:
                return
            if child.due is not None and child.due <= now:
                self._restart_child(child, now)
            elif child.process is not None:
                self._probe(child)

    def _start_child(self, child: Child, now: float) -> None:
        child.start(now)
        assert child.process is not None
        self._selector.register(os.pidfd_open(child.process.pid), selectors.EVENT_READ, child)

    def _restart_child(self, child: Child, now: float) -> None:
        """Start it again; if that fails, for lack of memory for example, try later."""
        try:
            self._start_child(child, now)
        except BackendFailed as error:
            child.postpone(now)
            self._say(str(error))

    def _handle_exit(self, child: Child) -> None:
        self._unwatch(child)
        now = time.monotonic()
        status = child.reap(now)
        if not self._stopping:
            wait = max(0.0, (child.due or now) - now)
            self._say(
                f"{child.part.title} ended ({_ending(status)}) and restarts in {wait:.1f} s; "
                f"its log is {child.log}."
            )

    def _probe(self, child: Child) -> None:
        if not child.noted:
            child.save_note()
        if not child.ready:
            child.ready = child.part.ready()
            if child.ready and child.starts > 1:
                self._say(f"{child.part.title} is back.")
        elif not child.settled:
            child.settled = child.part.settled()
        else:
            self._check_liveness(child)

    def _check_liveness(self, child: Child) -> None:
        """Kill a component that hangs: its end is noticed, and it is restarted."""
        now = time.monotonic()
        if child.liveness is None:
            child.liveness = LivenessCheck(child.part.alive, every=self._patience.check, now=now)
        if child.liveness.poll(now) >= self._patience.missed:
            self._say(f"{child.part.title} does not respond any more and is restarted.")
            child.liveness = None
            child.kill()

    def _until_next(self) -> float:
        """Return the seconds until the next restart or probe."""
        now = time.monotonic()
        waits = [max(0.0, child.due - now) for child in self._children if child.due is not None]
        if not self._complete or not all(c.ready and c.settled for c in self._children):
            waits.append(self._patience.ask)
        waits.append(self._patience.check)
        return min(waits)

    def _check_start(self, deadline: float) -> None:
        """Raise Unavailable if the first start has failed or takes too long."""
        for child in self._children:
            if child.deaths >= self._patience.early_deaths:
                raise self._failed(child, f"ended {child.deaths} times at the start")
        if time.monotonic() >= deadline:
            late = next((c for c in self._children if not c.ready), self._children[-1])
            raise self._failed(late, f"is not ready after {self._patience.start:.0f} s")

    def _failed(self, child: Child, what: str) -> Unavailable:
        end = child.tail() or "(it is empty)"
        return Unavailable(f"{child.part.title} {what}. The end of {child.log}:\n{end}")

    def _stop_all(self) -> None:
        """Stop the components in reverse order of their start."""
        self._stopping = True
        for child in reversed(self._children):
            self._unwatch(child)
            child.stop(self._patience.stop)

    def _unwatch(self, child: Child) -> None:
        for key in list(self._selector.get_map().values()):
            if key.data is child:
                self._selector.unregister(key.fileobj)
                os.close(key.fd)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def handle(_number: int, _frame: FrameType | None) -> None:
            self.request_stop()

        before = {number: signal.signal(number, handle) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _ending(status: int) -> str:
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"
