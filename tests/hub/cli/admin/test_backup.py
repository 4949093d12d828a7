"""``carrel backup`` and ``carrel restore``."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from carrel.hub.cli import cli
from carrel.hub.config.secrets import Secrets
from carrel.hub.config.settings import Settings
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.errors import CarrelError
from carrel.hub.store import open_store


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    made = StateFolder.at(tmp_path / "site")
    made.create()
    Settings().save(made)
    Secrets.ensure(made)
    open_store(made.database).close()
    (made.homes / "ada").mkdir()
    return made


def carrel(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


def test_backup_and_restore_report_json(state: StateFolder, tmp_path: Path) -> None:
    target, there = tmp_path / "backup", tmp_path / "there"
    made = json.loads(carrel("backup", target, "--state", state.root, "--json").stdout)
    assert made["backup"] == str(target)
    assert (made["homes"], made["left_out"]) == (False, [])
    checked = json.loads(carrel("restore", target, "--check", "--json").stdout)
    assert checked == {"state": None, "aside": None} | without(made, "backup")
    done = json.loads(carrel("restore", target, "--state", there, "--json").stdout)
    assert done == {"state": str(there), "aside": None} | without(made, "backup")
    with closing(open_store(there / "carrel.db")) as store:
        assert store.groups() == ()


def test_a_replaced_folder_is_reported_with_the_command_for_its_homes(
    state: StateFolder, tmp_path: Path
) -> None:
    target = tmp_path / "backup"
    carrel("backup", target, "--state", state.root)
    said = carrel("restore", target, "--state", state.root, "--replace").stdout
    (aside,) = tmp_path.glob("site.before-*")
    assert f"The former state folder is in {aside}." in said
    assert f"cp -a {aside}/homes {state.root}" in said


def test_sizes_are_reported_before_the_copy(state: StateFolder, tmp_path: Path) -> None:
    (state.homes / "ada" / "data").write_bytes(b"x" * 2048)
    without_homes = carrel("backup", tmp_path / "one", "--state", state.root)
    assert "left out  (--homes includes them)" in without_homes.stderr
    with_homes = carrel("backup", tmp_path / "two", "--state", state.root, "--homes")
    assert "homes        2.0 KiB" in with_homes.stderr


def test_a_refusal_is_one_sentence_that_names_what_is_accepted(
    state: StateFolder, tmp_path: Path
) -> None:
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup" / "mine").touch()
    refused = carrel("backup", tmp_path / "backup", "--state", state.root).exception
    assert isinstance(refused, CarrelError)
    assert str(refused) == (
        f"{tmp_path / 'backup'} exists and is not empty. Name a new folder, "
        "for example with the date in its name."
    )


def without(found: dict[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in found.items() if key != name}


def test_a_backup_is_in_the_audit_log_of_a_site_of_the_same_version(
    state: StateFolder, tmp_path: Path
) -> None:
    target = tmp_path / "one"
    size = json.loads(carrel("backup", target, "--state", state.root, "--json").stdout)["bytes"]
    with closing(sqlite3.connect(state.database)) as older, older:
        older.execute("UPDATE alembic_version SET version_num = 'r0022'")
    said = carrel("backup", tmp_path / "two", "--state", state.root)
    assert said.exit_code == 0
    assert "Not in the audit log: the site runs another version" in said.stderr
    with closing(sqlite3.connect(state.database)) as found, found:
        assert found.execute("SELECT version_num FROM alembic_version").fetchall() == [("r0022",)]
        (entry,) = found.execute("SELECT action, target, after FROM changes").fetchall()
    assert (entry[:2], json.loads(entry[2])["bytes"]) == (("backup", str(target)), size)
