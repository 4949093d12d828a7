"""The report of each month is written once as files, and administrators are told."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import pytest

from carrel.hub.notifications.channel_store import ChannelStore
from carrel.hub.notifications.outbox_store import OutboxStore
from carrel.hub.notifications.records import MAIL, Channel
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas.notifications.events import NotificationEvent
from carrel.hub.transitions import lifecycle
from carrel.hub.usage.site_report import SiteReports
from carrel.hub.workflows.monthly_reports import MonthlyReports
from carrel.spawners.fake import FakeBackend

from ...contracts.store_kit import DONE, furnish, job, running
from ...stores import new_store
from ..doubles import Clock, FakeHub, build, device

NOVEMBER_3 = datetime(2026, 11, 3, 9, tzinfo=UTC).timestamp()
DAY = 86400.0


def monthly(folder: Path) -> tuple[MonthlyReports, Clock]:
    """A site on 3 November 2026; ada used a device for an hour on 10 October."""
    clock = Clock(now=NOVEMBER_3)
    store = new_store()
    furnish(store)
    context = build(store, FakeBackend(devices=(device(0),), clock=clock), FakeHub(), clock, folder)
    made = MonthlyReports(
        enabled=True,
        context=context,
        reports=SiteReports(store=store, clock=clock, costs={}, currency=""),
        folder=folder / "reports",
        courses=frozenset,
        channels=ChannelStore(store.transactions),
        outbox=OutboxStore(store.transactions),
        stopping=threading.Event(),
    )
    return made, clock


def used_in_october(made: MonthlyReports) -> None:
    store, at = made.context.store, datetime(2026, 10, 10, tzinfo=UTC).timestamp()
    store.note_capacity(at)
    lease = running(store, job("a"), "D0", at=at)
    store.renew({lease.id: at + 3600}, until=at + 4000)
    store.apply("j-a", lifecycle.stop, State.SUCCEEDED, DONE, now=at + 3600)
    store.apply_to_lease(lease.id, lifecycle.finish, now=at + 3600, charge_until=at + 3600)


def channel(made: MonthlyReports, owner: str) -> None:
    now = made.context.clock() - DAY
    made.channels.add(
        Channel(
            id=f"c-{owner}",
            owner=owner,
            kind=MAIL,
            sealed="",
            shown="",
            created_at=now,
            confirmed_at=now,
            chosen={NotificationEvent.REPORT: now},
        )
    )


def waiting(made: MonthlyReports) -> dict[str, int]:
    return {name: len(made.outbox.waiting(f"c-{name}")) for name in ("admin", "student1")}


def test_the_report_is_written_once_and_administrators_are_told_once(tmp_path: Path) -> None:
    made, clock = monthly(tmp_path)
    used_in_october(made)
    for owner in ("admin", "student1"):
        channel(made, owner)
    file = made.step()
    assert file is not None
    assert sorted(each.name for each in made.folder.iterdir()) == [
        "report-2026-10-01-2026-10-31.csv",
        "report-2026-10-01-2026-10-31.html",
    ]
    assert file.stat().st_mode & 0o777 == 0o600
    assert "user,ada,3600.0,1.0," in file.read_text()
    page = file.with_suffix(".html").read_text()
    assert "Report of 1 Oct 2026 to 31 Oct 2026 (UTC)" in page
    assert "<script" not in page
    written = file.stat().st_mtime_ns
    clock.pass_(3600.0)
    made.step()
    assert file.stat().st_mtime_ns == written
    assert waiting(made) == {"admin": 1, "student1": 0}


def test_a_site_that_did_not_exist_in_the_last_month_has_no_report(tmp_path: Path) -> None:
    made, _ = monthly(tmp_path)
    made.context.store.note_capacity(NOVEMBER_3)
    assert made.step() is None
    assert not made.folder.exists()


def test_a_file_that_a_crash_left_out_is_written(tmp_path: Path) -> None:
    made, _ = monthly(tmp_path)
    used_in_october(made)
    file = made.step()
    assert file is not None
    for missing in (file, file.with_suffix(".html")):
        missing.unlink()
        assert made.step() == file
        assert missing.exists()


def test_a_report_that_is_written_is_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, _ = monthly(tmp_path)
    used_in_october(made)
    file = made.step()

    def fail(*_: object, **__: object) -> NoReturn:
        raise AssertionError("it was computed")

    monkeypatch.setattr(SiteReports, "report", fail)
    assert made.step() == file


def test_the_thread_outlives_an_error_that_nobody_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, _ = monthly(tmp_path)
    steps: list[float] = []

    def fail(_: MonthlyReports) -> NoReturn:
        steps.append(0.0)
        if len(steps) == 2:
            made.stopping.set()
        raise ValueError("unexpected")

    monkeypatch.setattr(MonthlyReports, "step", fail)
    monkeypatch.setattr("carrel.hub.workflows.monthly_reports.EVERY_SECONDS", 0.0)
    made.start()
    assert made.stopping.wait(10)
    assert len(steps) >= 2


def test_private_files_are_utf_8_in_every_locale(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from carrel.hub.files.private_file import "
        "write_private; write_private(Path(sys.argv[1]), 'Zo' + chr(0xEB))"
    )
    file = tmp_path / "name"
    env = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", code, str(file)], env=env, check=True)
    assert file.read_text(encoding="utf-8") == "Zoë"
