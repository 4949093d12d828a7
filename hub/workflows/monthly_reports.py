"""Write the report of each month when it is over, and notify administrators.

There is no schedule to lose: the report of the last month is written when it is missing, on
whichever day of this month the service starts, and the outbox takes each announcement once. Months
before the last one are not written later: the report page and ``carrel report`` have them.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..files.csv_table import csv_of
from ..files.private_file import write_private
from ..messages import site_report as report_messages
from ..notifications.channel_store import ChannelStore
from ..notifications.collector import DIGEST_SECONDS, GIVEN_UP_SECONDS
from ..notifications.outbox_store import OutboxStore
from ..notifications.records import NewEntry
from ..records.identity import Identity
from ..runtime.context import Context
from ..schemas.notifications.events import NotificationEvent
from ..usage.site_report import SiteReports, last_month

EVERY_SECONDS: Final = 3600.0
_SERVICE: Final = Identity(name="carrel", admin=True)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class MonthlyReports:
    """Writes ``report-FIRST-LAST.csv`` and ``.html`` of the last calendar month (UTC).

    Attributes:
        enabled: whether ``start`` does anything.
        folder: created on the first report; only the service's account reads it.
        courses: returns the names of the groups that are courses.
        stopping: set when the service ends.
    """

    enabled: bool
    context: Context
    reports: SiteReports
    folder: Path
    courses: Callable[[], Collection[str]]
    channels: ChannelStore
    outbox: OutboxStore
    stopping: threading.Event

    def start(self) -> None:
        if self.enabled:
            threading.Thread(target=self._run, name="monthly-reports", daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                self.step()
            except Exception:
                log.exception("the monthly report is tried again in an hour")
            if self.stopping.wait(EVERY_SECONDS):
                return

    def step(self) -> Path | None:
        """Write the files of the last month that are missing, and announce the report.

        Returns:
            The CSV file; None if the site did not exist in that month.
        """
        since, until = last_month(self.context.clock())
        if not self.context.store.capacity(until):
            return None
        file, page = (
            self.folder / report_messages.file_name(since, until, kind) for kind in ("csv", "html")
        )
        if not (file.exists() and page.exists()):
            self._write(since, until, file, page)
        self._announce(report_messages.period_text(since, until), file)
        return file

    def _write(self, since: float, until: float, file: Path, page: Path) -> None:
        found = self.reports.report(_SERVICE, since=since, until=until, courses=self.courses())
        self.folder.mkdir(mode=0o700, exist_ok=True)
        if not page.exists():
            write_private(page, report_messages.page(found))
        # Its time is that of the announcement: an existing one keeps it.
        if not file.exists():
            write_private(file, csv_of(report_messages.csv_rows(found)))
            now = self.context.clock()
            os.utime(file, (now, now))
        log.info("wrote the report %s", file.stem)

    def _announce(self, period: str, file: Path) -> None:
        """Notify administrators whose channels told of reports when the file was written."""
        at = file.stat().st_mtime
        if not 0 <= self.context.clock() - at < GIVEN_UP_SECONDS:
            return
        chosen = self.channels.chosen()
        if not chosen:
            return
        admins = {user.name for user in self.context.hub.users() if user.admin}
        first, last = file.stem.removeprefix("report-")[:10], file.stem[-10:]
        entries = [
            NewEntry(
                channel=channel.id,
                event=NotificationEvent.REPORT,
                key=f"report/{file.stem}",
                text=f"The report of {period} is written.",
                path=f"report?since={first}&until={last}",
                at=at,
                due_at=at + DIGEST_SECONDS,
                expires_at=at + GIVEN_UP_SECONDS,
            )
            for owner in sorted(admins & chosen.keys())
            for channel in chosen[owner]
            if channel.chosen.get(NotificationEvent.REPORT, at + 1) <= at
        ]
        self.outbox.put(entries)
