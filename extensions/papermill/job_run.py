"""Submit the notebook of one papermill call as a job, follow it, and cancel it on Ctrl-C."""

from __future__ import annotations

import logging
import queue
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

import nbformat
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillException

from ...hub.client import Client, job_builder, session_home
from ...hub.errors import CarrelError, NotFound, Unavailable
from ...hub.schemas import EventOut, JobIn, NotebookIn, RequestOut
from .options import VARIABLE, JobOptions

if TYPE_CHECKING:
    from .job_notebook import JobNotebook

_FETCH_SECONDS: Final = 0.5
_FETCH_SHARE: Final = 10
"""A fetch of the output takes at most one tenth of the time."""
_TERMINATED: Final = 128 + signal.SIGTERM

_Item = RequestOut | EventOut | CarrelError | None


@dataclass(slots=True)
class JobRun:
    """One job, from its submission to its end."""

    body: JobIn
    client: Client

    @classmethod
    def of(
        cls, nb: nbformat.NotebookNode, kernel_name: str, arguments: Mapping[str, object]
    ) -> JobRun:
        """Check the options and form the job. Raises CarrelError; nothing is submitted."""
        options = JobOptions.current(arguments)
        calls = logging.getLogger("httpx")
        if calls.level == logging.NOTSET:
            calls.setLevel(logging.WARNING)  # papermill shows what any library logs from INFO on
        client = Client.from_environment(options.site)
        place = job_builder.working_folder(
            Path.cwd(),
            home=session_home(options.site),
            upload=options.uploads,
            inputs=[Path(each).expanduser() for each in options.inputs],
            workdir=options.workdir,
        )
        content = nbformat.writes(nb)  # type: ignore[no-untyped-call]
        fields = options.fields() | place.fields
        fields |= {
            "notebook": NotebookIn(name=_name(arguments.get("input_path")), content=content),
            "kernel": kernel_name,
            "group": options.group or job_builder.only_group(client, f"{VARIABLE}GROUP"),
        }
        return cls(job_builder.job(fields, maker="papermill"), client)

    def execute(self, manager: JobNotebook) -> None:
        """Submit the job and follow it to its end.

        Raises:
            PapermillException: it ended without an error in a cell, and not as it should.
            DeadKernelError: its kernel died, for which papermill has an exit status of its own.
        """
        with self.client, _terminated_as_exit():
            job = self.client.submit(self.body)
            try:
                manager.say(f"Submitted {job.id} to {self.client.site.base}")
                ended = self._follow(job, manager)
            except Unavailable as error:
                raise Unavailable(
                    error.message, accepted=f"{job.id} continues: carrel output {job.id}"
                ) from error
            except (KeyboardInterrupt, SystemExit):
                self.client.cancel(job.id, "papermill was interrupted.")
                manager.say(f"Cancelled {job.id}.")
                self._fetch(job.id, manager)
                raise
        cause = ended.cause
        if cause is None or cause.code == "succeeded":
            manager.succeeded = True
        elif cause.code == "kernel_died":
            raise DeadKernelError(f"{job.id}: {cause.message}")
        elif cause.code != "cell_error":
            raise PapermillException(f"{job.id}: {cause.message}")

    def _follow(self, job: RequestOut, manager: JobNotebook) -> RequestOut:
        """Merge the output of the job into the notebook whenever it changes, until its end."""
        items: queue.Queue[_Item] = queue.Queue()
        # A daemon thread, so that an interrupted caller need not wait for an idle stream.
        threading.Thread(target=self._listen, args=(job.id, items), daemon=True).start()
        latest, reason, changed, next_fetch = job, "", False, 0.0
        while True:
            try:
                pause = max(0.0, next_fetch - time.monotonic()) if changed else None
                item = items.get(timeout=pause)
            except queue.Empty:
                next_fetch, changed = self._fetch(job.id, manager), False
                continue
            match item:
                case RequestOut():
                    latest = item
                    now = item.wait.sentence if item.wait else ""
                    if now != reason:
                        reason = now
                        manager.waits(now)
                case EventOut():
                    changed = True
                case CarrelError():
                    raise item
                case None:
                    self._fetch(job.id, manager)
                    return latest

    def _listen(self, job_id: str, items: queue.Queue[_Item]) -> None:
        try:
            for item in self.client.follow(job_id):
                items.put(item)
            items.put(None)
        except CarrelError as error:
            items.put(error)

    def _fetch(self, job_id: str, manager: JobNotebook) -> float:
        """Merge the output so far; return the earliest time of the next fetch."""
        began = time.monotonic()
        try:
            content = self.client.output(job_id).content.decode("utf-8-sig")
        except NotFound:
            pass  # it has not started
        else:
            manager.merge(nbformat.reads(content, as_version=4))  # type: ignore[no-untyped-call]
        now = time.monotonic()
        return now + max(_FETCH_SECONDS, _FETCH_SHARE * (now - began))


def _name(input_path: object) -> str:
    """Return the name of the notebook for the job; the input may be a stream or an address."""
    name = PurePosixPath(str(input_path).partition("?")[0]).name
    is_path = isinstance(input_path, str) and name.endswith(".ipynb")
    return name if is_path else "notebook.ipynb"


@contextmanager
def _terminated_as_exit() -> Iterator[None]:
    """Raise SystemExit on SIGTERM, which papermill's own engine takes for the end of its kernel."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def leave(*_: object) -> None:
        raise SystemExit(_TERMINATED)

    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
