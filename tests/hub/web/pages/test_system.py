"""The pages about the site: health, doctor, backups."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

from carrel.hub.errors import Unavailable
from carrel.hub.interfaces.backups import BackupProgress
from carrel.hub.records.diagnostics import Finding, Severity
from carrel.hub.supervisor.doctor_run import DoctorRun
from carrel.hub.web.monitoring.readiness import Readiness

from ..fakes import PREFIX
from ..page_checks import check_page, text_of
from ..site import Site, site

__all__ = ["site"]


class FakeBackups:
    """Backups that are started and stay running."""

    folder = "/backup"

    def __init__(self) -> None:
        self.now = BackupProgress()

    def start(self, *, homes: bool, who: str) -> bool:
        if self.now.running:
            return False
        self.now = BackupProgress(target="/backup/one", running=True, copied=512, total=2048)
        return True

    def progress(self) -> BackupProgress:
        return self.now


def test_the_health_page_names_the_part_that_does_not_respond(site: Site) -> None:
    def away() -> None:
        raise Unavailable("JupyterHub does not answer.")

    web = site.world.web
    checks = {"store": lambda: None, "hub": away}
    site.world.app.state.web = replace(web, readiness=Readiness(checks))
    check_page(site.page().get(f"{PREFIX}admin/health").text)
    shown = text_of(site.page().get(f"{PREFIX}admin/health/live").text)
    assert "A part does not respond" in shown
    assert "JupyterHub FAILED JupyterHub does not answer." in shown
    assert "Store ok" in shown
    assert "devices: 2 free." in shown


def test_the_doctor_runs_on_request_and_shows_results_as_they_come(site: Site) -> None:
    first, last = threading.Event(), threading.Event()

    def checks() -> Iterator[Finding]:
        yield Finding(
            subject="disk", verdict=Severity.WARNING, what="2 GiB are free.", mend="Free some."
        )
        first.set()
        last.wait(60)
        raise Unavailable("The engine does not answer.", accepted="Start it.")

    run = DoctorRun(checks, site.clock)
    site.world.app.state.web = replace(site.world.web, doctor=run)
    page, at = site.page(), f"{PREFIX}admin/doctor"
    assert "have not run" in page.get(at).text
    assert page.post(at).headers["location"] == at
    assert first.wait(60)
    page.post(at)  # while it runs: no second run
    running = page.get(f"{at}/live").text
    assert 'hx-trigger="every 1s"' in running
    last.set()
    for thread in threading.enumerate():
        if thread.name == "doctor":
            thread.join(60)
    done = page.get(at).text
    check_page(done)
    assert "hx-trigger" not in done
    shown = text_of(done)
    assert "disk warning 2 GiB are free. Free some." in shown
    assert "doctor unknown The engine does not answer. Start it." in shown


def test_a_backup_is_started_followed_and_listed(site: Site) -> None:
    page, at = site.page(), f"{PREFIX}admin/backup"
    assert "carrel backup DIR" in page.get(at).text
    assert page.post(at).status_code == 409
    backups = FakeBackups()
    site.world.app.state.web = replace(site.world.web, backups=backups)
    assert "No backup has been recorded yet." in page.get(at).text
    started = page.post(at, data={"homes": "yes"})
    assert (started.status_code, started.headers["location"]) == (303, at)
    shown = page.get(at).text
    check_page(shown)
    assert "512 bytes of 2.0 KiB" in text_of(shown)
    assert "A backup is running." in page.post(at).text
    backups.now = BackupProgress(target="/backup/one", error="The disk is full.")
    assert "/backup/one was not written. The disk is full." in text_of(page.get(at).text)
