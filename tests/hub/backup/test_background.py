"""Backups that the service makes in the background."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.hub.backup.background import BackgroundBackups
from carrel.hub.backup.manifest import Manifest
from carrel.hub.backup.staging import drafted
from carrel.hub.config.settings import Settings
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.errors import InvalidInput
from carrel.hub.records.audit import AuditAction, ChangeFilter
from carrel.hub.store import open_store


@pytest.fixture
def backups(tmp_path: Path) -> Iterator[BackgroundBackups]:
    state = StateFolder.at(tmp_path / "site")
    state.create()
    Settings().save(state)
    store = open_store(state.database)
    yield BackgroundBackups(state, Settings(), store, lambda: 1_800_000_000.0)
    store.close()


def finish() -> None:
    for thread in threading.enumerate():
        if thread.name == "backup":
            thread.join(60)


def test_a_backup_lies_beside_the_state_folder_and_is_recorded(
    backups: BackgroundBackups,
) -> None:
    assert backups.start(homes=True, who="admin")
    finish()
    progress = backups.progress()
    target = backups.state.root.with_name("site.backups") / "carrel-2027-01-15-080000"
    assert (progress.target, progress.running, progress.error) == (str(target), False, "")
    manifest = Manifest.read(target)
    assert manifest.homes
    (entry,) = backups.store.changes(ChangeFilter(action=AuditAction.BACKUP))
    assert (entry.who, entry.target) == ("admin", str(target))
    assert entry.after["bytes"] == manifest.size == progress.copied


def test_a_failed_backup_says_why_and_is_not_recorded(backups: BackgroundBackups) -> None:
    Path(backups.folder).write_text("a file where the folder would be")
    backups.start(homes=False, who="admin")
    finish()
    assert "cannot be created" in backups.progress().error
    assert backups.store.changes(ChangeFilter()) == ()


def test_a_folder_inside_the_state_folder_is_refused(backups: BackgroundBackups) -> None:
    backups.settings = Settings(backup_folder=str(backups.state.root / "backups"))
    with pytest.raises(InvalidInput, match="would be lost together with it"):
        backups.start(homes=False, who="admin")
    assert not backups.progress().running


def test_what_an_ended_service_left_of_a_backup_is_removed_at_the_next_start(
    backups: BackgroundBackups,
) -> None:
    folder = Path(backups.folder)
    names = ("carrel-2027-01-14-080000", "carrel-2027-01-15-090000", "carrel-mine")
    interrupted, under_way, other = (folder / f"{name}.partial" for name in names)
    for left in (interrupted, other):
        (left / "state").mkdir(parents=True)
    target = under_way.with_suffix("")
    with drafted(target, "partial", under_way="another site is backed up", failed=""):
        backups.remove_interrupted()
        assert sorted(folder.iterdir()) == [under_way, other]
    progress = backups.progress()
    assert progress.target == str(folder / names[0])
    assert progress.error == "The service ended during the backup. Start it again."


def test_a_start_without_backups_creates_no_folder(backups: BackgroundBackups) -> None:
    backups.remove_interrupted()
    assert not Path(backups.folder).exists()
    assert not backups.progress().error
