"""The runner's main thread: claim the attempt, start its threads, and wait for signals."""

from __future__ import annotations

import ctypes
import logging
import os
import select
import signal
import socket
import sys
import time
import traceback
import warnings
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Final, NoReturn

import psutil

from ...hub.attempts.journal import DISK_FULL, Journal, log_line
from ...hub.attempts.secret_values import SecretMissing, SecretValues
from ...hub.attempts.service_client import AttemptClient, Away, Delivery, Fenced, Rejected
from ...hub.attempts.spec import CLAIM, EVENTS, FILES, AttemptSpec
from ...hub.errors import InvalidInput
from ...hub.records.json_value import Json
from ...hub.records.requests import CauseCode
from ..processes.lease_processes import wait_gone
from .attempt import outcome_messages as outcome
from .attempt.attempt import AttemptMonitor
from .attempt.compile_cache import conclude_compile_cache
from .attempt.gang_member import join
from .attempt.job_meter import start_job_meter
from .attempt.log import Log
from .attempt.output_masker import Masker
from .attempt.reporter import EventReporter, Report
from .warm_start import WarmRunner, adopt_job, prepare_runner

if TYPE_CHECKING:
    from .attempt.attempt import Attempt
    from .notebook.attempt import NotebookAttempt

WAIT_OPTION: Final = "--wait"
_SPACE_SECONDS: Final = 1.0
"""Pause between two attempts to save the output on a full disk."""
EXIT_SUCCEEDED: Final = 0
EXIT_FAILED: Final = 1
EXIT_NO_ORDER: Final = 2
EXIT_CLAIMED: Final = 3
"""Another runner has claimed this attempt."""
EXIT_FENCED: Final = 4
EXIT_STOPPED: Final = 5
EXIT_CRASHED: Final = 70

_INTERRUPT_SECONDS = 0.8
_KILL_SECONDS = 1.1
_DELIVERY_SECONDS = 5.0
_DELIVERY_WHEN_STOPPED_SECONDS = 1.0
_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


class WakeUp:
    """Wakes the main thread on a signal, at the end of the work, or when the attempt is fenced."""

    def __init__(self) -> None:
        self._receiver, self._sender = socket.socketpair()
        self._receiver.setblocking(False)
        self._sender.setblocking(False)
        self.signal: int | None = None
        self.fenced = False

    def catch_signals(self) -> None:
        """Make SIGINT and SIGTERM wake the main thread instead of killing the process."""
        signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        self.signal = self.signal or number

    def set(self) -> None:
        """Wake the main thread, from any thread."""
        try:
            self._sender.send(b"\0")
        except BlockingIOError:
            return  # it has been woken already

    def fence(self) -> None:
        self.fenced = True
        self.set()

    @property
    def stop(self) -> bool:
        return self.fenced or self.signal is not None

    def wait(self, seconds: float | None = None) -> None:
        """Sleep until woken, or for this many seconds."""
        woken, _, _ = select.select([self._receiver], [], [], seconds)
        if woken:
            self._receiver.recv(4096)


def main(arguments: list[str]) -> int:
    waits = arguments[:1] == [WAIT_OPTION]
    if len(arguments) != 1 + waits:
        return _exit_with(
            f"usage: python -m carrel.spawners.runner [{WAIT_OPTION}] FOLDER", EXIT_NO_ORDER
        )
    folder = Path(arguments[-1])
    # A parent may have left SIGINT ignored. Until the claim succeeds, a signal ends the runner.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    warm = prepare_runner(folder) if waits else None
    try:
        order = AttemptSpec.read(folder)
    except InvalidInput as error:
        return _exit_with(str(error), EXIT_NO_ORDER)
    if warm is not None:
        adopt_job(order, folder)
    if order.job.resumes:
        os.environ["CARREL_RESUMES"] = order.job.resumes  # carrel.resume_path() reads it
    if not take_claim(folder):
        return _exit_with(f"lease {order.lease_id} already has a runner", EXIT_CLAIMED)
    service = AttemptClient(folder)
    try:
        if order.member is None:
            service.claim()
        else:
            os.environ.update(join(order, order.member, service))
        values = SecretValues.fetch(service) if order.job.secrets else SecretValues()
    except (Fenced, Rejected, Away) as error:
        return _exit_with(f"lease {order.lease_id} may not run: {error}", EXIT_FENCED)
    except SecretMissing as error:
        return fail(folder, service, outcome.missing_secret(str(error)))
    return run(order, folder, service, warm, values)


def take_claim(folder: Path) -> bool:
    """Claim the attempt; returns True in exactly one process, ever."""
    try:
        descriptor = os.open(folder / CLAIM, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{os.getpid()}\n")
    return True


def fail(folder: Path, service: AttemptClient, end: outcome.AttemptOutcome) -> int:
    """Report the end of a job that cannot be started."""
    log_line(end.message)
    journal = Journal(folder / EVENTS)
    delivery = Delivery(service, lambda: None, journal.sync)
    delivery.start()
    delivery.put(journal.write("ended", end.as_event()))
    delivery.finish(_DELIVERY_SECONDS)
    return EXIT_FAILED


def run(
    order: AttemptSpec,
    folder: Path,
    service: AttemptClient,
    warm: WarmRunner | None = None,
    values: SecretValues | None = None,
) -> int:
    """Execute the job with its secrets, which no process finds after its end."""
    wake_up = WakeUp()
    wake_up.catch_signals()
    values = values or SecretValues()
    with values.in_environment():
        return execute(order, folder, service, warm, masker=Masker(values.all), wake_up=wake_up)


def execute(
    order: AttemptSpec,
    folder: Path,
    service: AttemptClient,
    warm: WarmRunner | None,
    *,
    masker: Masker,
    wake_up: WakeUp,
) -> int:
    """Execute the job in a second thread and deliver events from a third; wait for signals here."""
    adopt_orphans()
    start_job_meter(folder)
    journal = Journal(folder / EVENTS)
    delivery = Delivery(service, wake_up.fence, journal.sync)
    delivery.start()

    def report(kind: str, data: Mapping[str, Json]) -> None:
        delivery.put(journal.write(kind, data))

    attempt = prepare(order, folder, report, warm, masker)
    monitor = AttemptMonitor(attempt)
    monitor.start()
    work = ThreadPoolExecutor(1, thread_name_prefix="work").submit(attempt.execute)
    work.add_done_callback(lambda _: wake_up.set())
    while not work.done() and not wake_up.stop:
        wake_up.wait()
    if not work.done():
        stop_work(attempt, work)
    monitor.stop()
    outcome = _judge(attempt, work, wake_up)
    _conclude(attempt, outcome, wake_up)
    end_descendants(attempt)
    attempt.finish(outcome)
    conclude_compile_cache(attempt, report)
    _write_provenance(attempt)
    attempt.log.write(f"carrel: {outcome.message}\n")
    attempt.log.close()
    if wake_up.fenced:
        return EXIT_FENCED
    attempt.reporter.end()
    if not (wake_up.stop and outcome.code is CauseCode.LOST):
        report("ended", outcome.as_event())
    delivery.finish(_DELIVERY_WHEN_STOPPED_SECONDS if wake_up.stop else _DELIVERY_SECONDS)
    if wake_up.stop:
        return EXIT_STOPPED
    return EXIT_SUCCEEDED if outcome.code is CauseCode.SUCCEEDED else EXIT_FAILED


def prepare(
    order: AttemptSpec, folder: Path, report: Report, warm: WarmRunner | None, masker: Masker
) -> Attempt:
    reporter = EventReporter(report, order.limits)
    log = Log(sys.stdout.fileno(), order.limits, reporter.cut, masker)
    if order.member is None:
        (folder / FILES).mkdir(mode=0o700, exist_ok=True)
    # Imported here, because the imports take half a second, which would delay the claim, and a
    # command does not need papermill.
    if order.job.command:
        from .attempt.command import CommandAttempt  # noqa: PLC0415

        if warm is not None:
            warm.end_server()
        return CommandAttempt(order, folder, reporter, log)
    attempt = _notebook_attempt(order)(report, order, folder, reporter, log)
    attempt.masker = masker
    if warm is not None:
        attempt.fork_server = str(warm.socket)
    return attempt


def _notebook_attempt(order: AttemptSpec) -> type[NotebookAttempt]:
    if order.job.sweep is not None:
        from .sweep.attempt import SweepAttempt  # noqa: PLC0415

        return SweepAttempt
    from .notebook.attempt import NotebookAttempt  # noqa: PLC0415

    return NotebookAttempt


def stop_work(attempt: Attempt, work: Future[None]) -> None:
    """Interrupt the cell or command, then kill it if needed; takes less than 2 s."""
    attempt.interrupt()
    wait([work], _INTERRUPT_SECONDS)
    if not work.done():
        attempt.kill()
        wait([work], _KILL_SECONDS)


def _judge(attempt: Attempt, work: Future[None], wake_up: WakeUp) -> outcome.AttemptOutcome:
    if wake_up.fenced:
        return outcome.fenced()
    error = work.exception() if work.done() else TimeoutError("the work did not stop")
    if wake_up.signal is not None and (error is not None or attempt.failed):
        return outcome.stopped(wake_up.signal)
    return attempt.judge(error)


def _conclude(attempt: Attempt, outcome: outcome.AttemptOutcome, wake_up: WakeUp) -> None:
    """Save the outcome; while the disk is full, wait for space until the attempt is stopped.

    If the outcome cannot be saved, the last save of the work remains.
    """
    waiting = False
    try:
        while True:
            try:
                return attempt.conclude(outcome)
            except OSError as error:
                if error.errno not in DISK_FULL or wake_up.stop:
                    raise
                if not waiting:
                    log_line("the disk is full: waiting for space to save the output")
                waiting = True
                wake_up.wait(_SPACE_SECONDS)
    except (OSError, RuntimeError) as error:
        # RuntimeError: work that hangs was changing the notebook at that moment.
        log_line(f"the outcome could not be saved in the output: {error}")


def _write_provenance(attempt: Attempt) -> None:
    """Write the part of the receipt that only the runner knows; the job does not depend on it."""
    try:
        attempt.write_provenance()
    except (OSError, ValueError) as error:
        log_line(f"inputs and environment could not be recorded: {error}")


def adopt_orphans() -> None:
    """Become the parent of all processes that the job leaves behind, so that they can be found."""
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_descendants(attempt: Attempt) -> None:
    """Stop all processes of the attempt: they would hold devices that have been released."""
    left = list(attempt.processes())
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in left:
            try:
                process.send_signal(number)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        if wait_gone(left, time.monotonic() + _INTERRUPT_SECONDS / 2):
            return


def _exit_with(text: str, status: int) -> int:
    log_line(text)
    return status


def leave(status: int) -> NoReturn:
    """Exit at once: threads of a hanging kernel client would delay a normal exit."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _quiet_libraries() -> None:
    """Keep messages and warnings of the runner's own libraries out of the log of the job.

    Those of the job's code come from its kernel, or its command, and stay.
    """
    logging.getLogger().addHandler(logging.NullHandler())
    warnings.simplefilter("ignore")


def _crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    traceback.print_exception(kind, error, trace)
    leave(EXIT_CRASHED)


def run_and_leave(arguments: list[str]) -> NoReturn:
    """Run in a process of its own, also one that a fork server has forked."""
    sys.excepthook = _crash
    _quiet_libraries()
    leave(main(arguments))


if __name__ == "__main__":
    run_and_leave(sys.argv[1:])
