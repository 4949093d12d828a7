"""Backups of a state folder without processes: contents and refusals."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from carrel.courses.files.blobs import FolderBlobs
from carrel.hub.accounts.passwords import Cost
from carrel.hub.accounts.store import Accounts
from carrel.hub.backup import copier, database
from carrel.hub.backup.create import BackupOptions, back_up
from carrel.hub.backup.manifest import CHECKSUM, MANIFEST, Manifest
from carrel.hub.backup.restore import Restored, RestoreOptions, restore, verify
from carrel.hub.config.secrets import Secrets
from carrel.hub.config.settings import Settings
from carrel.hub.config.signing_key import site_signing_key
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.errors import BackupFailed, Conflict, InvalidInput, Refused, StateInUse
from carrel.hub.records.requests import RequestFilter
from carrel.hub.scheduling.model.states import State
from carrel.hub.store import open_store
from carrel.hub.supervisor.lock import locked

from ...contracts.store_kit import furnish, granted, job, running
from ...faults.audit import audit

NOW = 1_800_000_000.0
PASSWORD = "a quiet-library"


HANDED_IN = hashlib.sha256(b"handed in").hexdigest()


class Silent:
    """Records messages and progress."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.done = 0

    def say(self, text: str) -> None:
        self.said.append(text)

    @contextmanager
    def bar(self, label: str, total: int) -> Iterator[Callable[[int], None]]:
        def advance(size: int) -> None:
            self.done += size

        yield advance


@pytest.fixture
def site(tmp_path: Path) -> StateFolder:
    """A state folder with a job, its output, an account, and JupyterHub's files."""
    state = StateFolder.at(tmp_path / "site")
    state.create()
    Settings(port=8123, hub_port=18001, service_port=18002, proxy_api_port=18003).save(state)
    Secrets.ensure(state)
    site_signing_key(state)
    state.log_head.write_text("{}")
    with closing(open_store(state.database)) as store:
        furnish(store)
        running(store, job("ran"), "D0")
    with closing(Accounts(state.accounts, cost=Cost(n=16))) as accounts:
        accounts.add("ada", PASSWORD, admin=True)
    with closing(sqlite3.connect(state.hub / "jupyterhub.sqlite")) as hub:
        hub.execute("CREATE TABLE users (name)")
        hub.execute("INSERT INTO users VALUES ('ada')")
        hub.commit()
    (state.hub / "cookie_secret").write_text("secret")
    (state.hub / "cookie_secret").chmod(0o600)
    attempt = state.outputs / "j-ran" / "1"
    attempt.mkdir(parents=True)
    (attempt.parent / "input.ipynb").write_text("{}")
    (attempt / "output.ipynb").write_text('{"cells": []}')
    FolderBlobs(state.blobs).put(b"handed in")
    (state.homes / "ada").mkdir(mode=0o750)
    (state.homes / "ada" / "notes.txt").write_text("mine")
    (state.logs / "hub.log").write_text("not kept")
    return state


def backup_of(site: StateFolder, *, homes: bool = False) -> Path:
    target = site.root.with_name("backup")
    back_up(BackupOptions(state=site, target=target, homes=homes), Silent(), lambda: NOW)
    return target


def restored(
    backup: Path, state: StateFolder, *, replace: bool = False, drained: bool = False
) -> Restored:
    options = RestoreOptions(
        backup=backup, state=state, replace=replace, drained=drained, who="cli:ada"
    )
    return restore(options, Silent(), lambda: NOW)


def other(site: StateFolder) -> StateFolder:
    return StateFolder.at(site.root.with_name("other"))


def everything(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


class TestBackup:
    def test_a_backup_contains_the_state_and_nothing_else(self, site: StateFolder) -> None:
        backup = backup_of(site)
        assert sorted(everything(backup / "state")) == [
            "carrel.db",
            f"courses/.blobs/{HANDED_IN[:2]}/{HANDED_IN[2:]}",
            "hub/accounts.db",
            "hub/cookie_secret",
            "hub/jupyterhub.sqlite",
            "log-head.json",
            "outputs/j-ran/1/output.ipynb",
            "outputs/j-ran/input.ipynb",
            "secrets.json",
            "settings.json",
            "signing-key.pem",
        ]
        found = verify(backup, Silent())
        assert (found.state, found.homes, found.made_at) == (str(site.root), False, NOW)
        assert found.revision == database.revision(backup / "state" / "carrel.db")

    def test_homes_are_included_on_request_and_their_size_is_reported(
        self, site: StateFolder
    ) -> None:
        progress, target = Silent(), site.root.with_name("backup")
        back_up(BackupOptions(state=site, target=target, homes=True), progress, lambda: NOW)
        assert (target / "state/homes/ada/notes.txt").read_text() == "mine"
        assert "homes            4 B" in progress.said
        assert progress.done == Manifest.read(target).size

    def test_a_backup_is_private(self, site: StateFolder) -> None:
        backup = backup_of(site, homes=True)
        for path in [backup, *backup.rglob("*")]:
            assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path

    def test_files_unknown_to_the_copied_database_are_left_out(self, site: StateFolder) -> None:
        (site.outputs / "j-ran" / "2").mkdir()
        (site.outputs / "j-ran" / "input.ipynb.new").write_text("half")
        (site.outputs / "j-later").mkdir()
        backup = backup_of(site)
        assert [p.name for p in (backup / "state/outputs").iterdir()] == ["j-ran"]
        assert sorted(p.name for p in (backup / "state/outputs/j-ran").iterdir()) == [
            "1",
            "input.ipynb",
        ]

    def test_links_are_kept_as_links_and_pipes_are_left_out(
        self, site: StateFolder, tmp_path: Path
    ) -> None:
        (tmp_path / "outside").write_text("not of this site")
        (site.homes / "ada" / "link").symlink_to(tmp_path / "outside")
        os.mkfifo(site.homes / "ada" / "pipe")
        (site.homes / "ada" / os.fsdecode(b"caf\xe9")).write_text("latin")
        backup = backup_of(site, homes=True)
        found = Manifest.read(backup)
        assert found.left_out == ("homes/ada/pipe",)
        assert not (backup / "state/homes/ada/link").exists()
        there = other(site)
        restored(backup, there)
        assert (there.homes / "ada" / "link").readlink() == tmp_path / "outside"
        assert (there.homes / "ada" / os.fsdecode(b"caf\xe9")).read_text() == "latin"

    def test_a_backup_is_consistent_during_writes(self, site: StateFolder) -> None:
        began, enough = threading.Event(), threading.Event()

        def submit() -> None:
            with closing(open_store(site.database)) as store:
                for number in range(10_000):
                    if enough.is_set():
                        return
                    folder = site.outputs / f"j-{number}"
                    folder.mkdir()
                    (folder / "input.ipynb").write_text("{}")
                    store.submit(job(str(number)), NOW)
                    if number > 1:
                        began.set()

        writer = threading.Thread(target=submit)
        writer.start()
        assert began.wait(60)
        try:
            backup = backup_of(site)
        finally:
            enough.set()
            writer.join()
        audit(backup / "state")
        named = database.attempts(backup / "state/carrel.db")
        assert len(named) > 1
        for name in named:
            assert (backup / "state/outputs" / name / "input.ipynb").exists(), name

    def test_refuses_a_non_empty_folder(self, site: StateFolder) -> None:
        target = site.root.with_name("backup")
        target.mkdir()
        (target / "mine").touch()
        with pytest.raises(Conflict, match="is not empty"):
            backup_of(site)
        assert [path.name for path in target.iterdir()] == ["mine"]

    def test_refuses_a_folder_inside_the_state(self, site: StateFolder) -> None:
        options = BackupOptions(state=site, target=site.root / "backups" / "one")
        with pytest.raises(InvalidInput, match="lost together with it"):
            back_up(options, Silent(), lambda: NOW)

    def test_refuses_a_folder_without_carrel(self, tmp_path: Path) -> None:
        options = BackupOptions(state=StateFolder.at(tmp_path), target=tmp_path / "b")
        with pytest.raises(InvalidInput, match="There is no Carrel"):
            back_up(options, Silent(), lambda: NOW)

    def test_a_failed_backup_leaves_no_files(
        self, site: StateFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(copier, "copy_stream", full)
        with pytest.raises(BackupFailed, match="No space left"):
            backup_of(site)
        assert list(site.root.parent.iterdir()) == [site.root]

    def test_a_killed_backup_is_recognised_as_incomplete(self, site: StateFolder) -> None:
        backup = backup_of(site)
        partial = backup.rename(backup.with_name("backup.partial"))
        (partial / MANIFEST).unlink()  # It is written last.
        with pytest.raises(InvalidInput, match="not a complete backup"):
            verify(partial, Silent())
        with pytest.raises(Conflict, match="interrupted"):
            backup_of(site)

    def test_a_damaged_database_is_not_backed_up(self, site: StateFolder) -> None:
        raw = bytearray(site.database.read_bytes())
        raw[4096:12288] = b"\xff" * 8192
        site.database.write_bytes(raw)
        with pytest.raises(BackupFailed, match=r"carrel\.db"):
            backup_of(site)
        assert list(site.root.parent.iterdir()) == [site.root]


class TestRestore:
    def test_restores_all_files_with_their_modes(self, site: StateFolder) -> None:
        (site.homes / "ada").chmod(0o500)
        backup = backup_of(site, homes=True)
        there = other(site)
        done = restored(backup, there)
        (site.homes / "ada").chmod(0o700)
        assert done.aside is None
        before, after = everything(site.root), everything(there.root)
        for name in (
            "hub/cookie_secret",
            "secrets.json",
            "signing-key.pem",
            "outputs/j-ran/1/output.ipynb",
        ):
            assert after[name] == before[name]
        assert stat.S_IMODE(there.secrets.stat().st_mode) == 0o600
        assert stat.S_IMODE((there.homes / "ada").stat().st_mode) == 0o500
        (there.homes / "ada").chmod(0o700)
        with closing(Accounts(there.accounts, cost=Cost(n=16))) as accounts:
            found = accounts.sign_in("ada", PASSWORD, address="")
        assert found is not None
        assert found.admin
        books = audit(there.root)
        assert [(request.id, request.state) for request in books.requests] == [
            ("j-ran", State.RUNNING)
        ]

    def test_a_restore_elsewhere_chooses_new_internal_ports(self, site: StateFolder) -> None:
        backup = backup_of(site)
        restored(backup, other(site))
        found = Settings.load(other(site))
        assert (found.port, found.hub_port, found.service_port) == (8123, 0, 0)
        restored(backup, site, replace=True)
        assert Settings.load(site).hub_port == 18001

    def test_refuses_a_non_empty_folder_unless_told_to_move_it(self, site: StateFolder) -> None:
        backup, before = backup_of(site), everything(site.root)
        with pytest.raises(Conflict, match="--replace"):
            restored(backup, site)
        assert everything(site.root) == before | {"run/lock": b""}
        done = restored(backup, site, replace=True)
        assert done.aside is not None
        assert (done.aside / "homes/ada/notes.txt").read_text() == "mine"
        assert not (site.homes / "ada").exists()

    def test_refuses_the_folder_of_a_running_installation(self, site: StateFolder) -> None:
        backup = backup_of(site)
        with locked(site), pytest.raises(StateInUse, match="carrel down"):
            restored(backup, site, replace=True)

    def test_refuses_a_folder_whose_job_still_runs(
        self, site: StateFolder, leased_sleeper: int
    ) -> None:
        backup = backup_of(site)
        with pytest.raises(StateInUse, match=str(leased_sleeper)):
            restored(backup, site, replace=True)
        restored(backup, other(site))

    @pytest.mark.parametrize("part", ["carrel.db", "outputs/j-ran/input.ipynb", "secrets.json"])
    @pytest.mark.parametrize("how", ["changed", "gone", "a link"])
    def test_refuses_a_damaged_backup_before_anything_is_written(
        self, site: StateFolder, part: str, how: str
    ) -> None:
        backup = backup_of(site)
        path = backup / "state" / part
        whole = path.read_bytes()
        path.unlink()
        if how == "changed":
            path.write_bytes(whole[:-1] + b"?")
        elif how == "a link":
            path.symlink_to(site.root / part)
        with pytest.raises(InvalidInput, match=f"damaged: {part}"):
            restored(backup, other(site))
        assert not other(site).root.exists()

    def test_refuses_a_manifest_that_was_changed(self, site: StateFolder) -> None:
        backup = backup_of(site)
        text = (backup / MANIFEST).read_text()
        (backup / MANIFEST).write_text(text.replace("j-ran", "j-run"))
        with pytest.raises(InvalidInput, match="damaged"):
            verify(backup, Silent())

    def test_refuses_a_manifest_that_leads_out_of_the_folder(self, site: StateFolder) -> None:
        backup = backup_of(site)
        rewrite(backup, lambda found: found["entries"][0].update(path="../elsewhere"))
        with pytest.raises(InvalidInput, match="not a path below"):
            verify(backup, Silent())

    def test_refuses_a_newer_schema(self, site: StateFolder) -> None:
        backup = backup_of(site)
        rewrite(backup, lambda found: found.update(revision="r9999"))
        with pytest.raises(Refused, match="newer Carrel"):
            verify(backup, Silent())

    def test_a_drained_restore_starts_nothing_and_queues_granted_requests_again(
        self, site: StateFolder
    ) -> None:
        with closing(open_store(site.database)) as store:
            granted(store, job("granted"), "D1")
        backup = backup_of(site)
        restored(backup, other(site), drained=True)
        with closing(open_store(other(site).database)) as store:
            assert not store.snapshot(200).takes_work
            (found,) = store.requests(RequestFilter(ids=frozenset({"j-granted"})))
        assert found.state is State.QUEUED
        audit(other(site).root)


def rewrite(backup: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a manifest and its checksum."""
    found = json.loads((backup / MANIFEST).read_text())
    change(found)
    text = json.dumps(found)
    (backup / MANIFEST).write_text(text)
    (backup / CHECKSUM).write_text(f"{hashlib.sha256(text.encode()).hexdigest()}  {MANIFEST}\n")


@pytest.fixture
def leased_sleeper(site: StateFolder) -> Iterator[int]:
    """A process that carries a lease of this state folder."""
    environment = {
        "PATH": os.environ["PATH"],
        "CARREL_STATE": str(site.root),
        "CARREL_LEASE": "j-ran.1",
    }
    child = subprocess.Popen(["sleep", "600"], env=environment)
    yield child.pid
    child.kill()
    child.wait()
