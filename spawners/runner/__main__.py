"""The runner's main thread: claims the attempt, then only listens, so that it can always stop."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Mapping
from concurrent.futures import Future, wait
from dataclasses import asdict
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Final, NoReturn

import psutil

from ...hub.attempts.journal import Journal
from ...hub.attempts.service_client import AttemptClient, Away, Delivery, Fenced, Rejected
from ...hub.attempts.spec import CLAIM, EVENTS, FILES, AttemptSpec
from ...hub.errors import InvalidInput
from ...hub.records.json_value import Json
from ...hub.records.requests import CauseCode
from ..processes.lease_processes import wait_gone
from .attempt import outcome
from .attempt.attempt import AttemptMonitor
from .attempt.log import Log
from .attempt.reporter import EventReporter, Report
from .warm_start import WarmRunner, adopt_job, make_ready, worker

if TYPE_CHECKING:
    from .attempt.attempt import Attempt

AHEAD: Final = "--wait"
EXIT_SUCCEEDED: Final = 0
EXIT_FAILED: Final = 1
EXIT_NO_ORDER: Final = 2
EXIT_CLAIMED: Final = 3
"""Another runner has this attempt."""
EXIT_FENCED: Final = 4
EXIT_STOPPED: Final = 5
EXIT_CRASHED: Final = 70

_INTERRUPT_SECONDS = 0.8
_KILL_SECONDS = 1.1
_DELIVERY_SECONDS = 5.0
_DELIVERY_WHEN_STOPPED_SECONDS = 1.0
_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


class WakeUp:
    """What the main thread listens to: signals, the end of the work, a fence."""

    def __init__(self) -> None:
        self._ear, self._rope = socket.socketpair()
        self._ear.setblocking(False)
        self._rope.setblocking(False)
        self.signal: int | None = None
        self.fenced = False

    def hear_signals(self) -> None:
        """From here on SIGINT and SIGTERM ring instead of killing."""
        signal.set_wakeup_fd(self._rope.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        self.signal = self.signal or number

    def ring(self) -> None:
        """From any thread."""
        try:
            self._rope.send(b"\0")
        except BlockingIOError:
            return  # it rings already

    def fence(self) -> None:
        self.fenced = True
        self.ring()

    @property
    def stop(self) -> bool:
        return self.fenced or self.signal is not None

    def wait(self) -> None:
        select.select([self._ear], [], [])
        self._ear.recv(4096)


def main(arguments: list[str]) -> int:
    ahead = arguments[:1] == [AHEAD]
    if len(arguments) != 1 + ahead:
        return _say(f"usage: python -m carrel.spawners.runner [{AHEAD}] FOLDER", EXIT_NO_ORDER)
    folder = Path(arguments[-1])
    # A parent may have left SIGINT ignored; before the claim is answered a signal just ends us.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    ready = make_ready(folder) if ahead else None
    try:
        order = AttemptSpec.read(folder)
    except InvalidInput as error:
        return _say(str(error), EXIT_NO_ORDER)
    if ready is not None:
        adopt_job(order, folder)
    if not take_claim(folder):
        return _say(f"lease {order.lease_id} already has a runner", EXIT_CLAIMED)
    service = AttemptClient(folder)
    try:
        service.claim()
    except (Fenced, Rejected, Away) as error:
        return _say(f"lease {order.lease_id} may not run: {error}", EXIT_FENCED)
    return run(order, folder, service, ready)


def take_claim(folder: Path) -> bool:
    """True for exactly one process, ever."""
    try:
        descriptor = os.open(folder / CLAIM, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{os.getpid()}\n")
    return True


def run(
    order: AttemptSpec, folder: Path, service: AttemptClient, ready: WarmRunner | None = None
) -> int:
    """Execute in a second thread, deliver events from a third, and listen."""
    bell = WakeUp()
    bell.hear_signals()
    adopt_orphans()
    journal = Journal(folder / EVENTS)
    delivery = Delivery(service, bell.fence, journal.sync)
    delivery.start()

    def report(kind: str, data: Mapping[str, Json]) -> None:
        delivery.put(journal.write(kind, data))

    attempt = prepare(order, folder, report, ready)
    watch = AttemptMonitor(attempt)
    watch.start()
    work = (ready.worker if ready else worker()).submit(attempt.execute)
    work.add_done_callback(lambda _: bell.ring())
    while not work.done() and not bell.stop:
        bell.wait()
    if not work.done():
        wind_down(attempt, work)
    watch.stop()
    ending = _judge(attempt, work, bell)
    _conclude(attempt, ending)
    end_descendants()
    attempt.log.write(f"carrel: {ending.message}\n")
    attempt.log.close()
    if bell.fenced:
        return EXIT_FENCED
    attempt.teller.end()
    report("ended", {**asdict(ending), "code": str(ending.code)})
    delivery.finish(_DELIVERY_WHEN_STOPPED_SECONDS if bell.stop else _DELIVERY_SECONDS)
    if bell.stop:
        return EXIT_STOPPED
    return EXIT_SUCCEEDED if ending.code is CauseCode.SUCCEEDED else EXIT_FAILED


def prepare(order: AttemptSpec, folder: Path, report: Report, ready: WarmRunner | None) -> Attempt:
    teller = EventReporter(report, order.limits)
    log = Log(sys.stdout.fileno(), order.limits, teller.cut)
    (folder / FILES).mkdir(mode=0o700, exist_ok=True)
    # Imported only now: the claim must not wait for half a second of imports, and a command
    # needs no papermill.
    if order.command:
        from .attempt.command import CommandAttempt  # noqa: PLC0415

        if ready is not None:
            ready.worker.submit(ready.spare.end)
        return CommandAttempt(order, folder, teller, log)
    from .notebook.execution import NotebookAttempt  # noqa: PLC0415

    attempt = NotebookAttempt(report, order, folder, teller, log)
    attempt.spare = ready.spare if ready is not None else None
    return attempt


def wind_down(attempt: Attempt, work: Future[None]) -> None:
    """Interrupt the cell or command; kill it where that does not help. Below 2 s in all."""
    attempt.interrupt()
    wait([work], _INTERRUPT_SECONDS)
    if not work.done():
        attempt.kill()
        wait([work], _KILL_SECONDS)


def _judge(attempt: Attempt, work: Future[None], bell: WakeUp) -> outcome.AttemptOutcome:
    if bell.fenced:
        return outcome.fenced()
    error = work.exception() if work.done() else TimeoutError("the work did not stop")
    if bell.signal is not None and (error is not None or attempt.failed):
        return outcome.cancelled(bell.signal)
    return attempt.judge(error)


def _conclude(attempt: Attempt, ending: outcome.AttemptOutcome) -> None:
    """Save the end; the last save of the work stays where that cannot be done."""
    try:
        attempt.conclude(ending)
    except (OSError, RuntimeError) as error:
        # A full disk, or a notebook that the work, which hangs, was just changing.
        print(f"carrel: the end could not be saved in the output: {error}", flush=True)


def adopt_orphans() -> None:
    """Become the parent of whatever the notebook leaves behind, to find it in the end."""
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_descendants() -> None:
    """Leave no process behind: it would hold a device that has been given back."""
    left = psutil.Process().children(recursive=True)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in left:
            try:
                process.send_signal(number)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        if wait_gone(left, time.monotonic() + _INTERRUPT_SECONDS / 2):
            return


def _say(text: str, status: int) -> int:
    print(f"carrel: {text}", flush=True)
    return status


def leave(status: int) -> NoReturn:
    """End at once: the threads of a hanging kernel client would hold a normal exit up."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    traceback.print_exception(kind, error, trace)
    leave(EXIT_CRASHED)


if __name__ == "__main__":
    sys.excepthook = _crash
    leave(main(sys.argv[1:]))
