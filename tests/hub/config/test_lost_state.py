"""A site whose database was lost does not open as a new, empty one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from carrel.hub.accounts.store import Accounts
from carrel.hub.config.lost_state import refuse_lost_state
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.errors import Refused
from carrel.hub.store import open_store


@pytest.fixture
def site(tmp_path: Path) -> StateFolder:
    """A site with one output folder."""
    state = StateFolder(root=tmp_path / "state")
    state.create()
    open_store(state.database).close()
    with closing(Accounts(state.accounts)):
        pass
    (state.outputs / "j-2222").mkdir()
    return state


def test_a_used_site_and_a_new_one_open(site: StateFolder, tmp_path: Path) -> None:
    refuse_lost_state(site)
    refuse_lost_state(StateFolder(root=tmp_path / "new"))


def test_a_first_start_that_was_killed_is_still_new(tmp_path: Path) -> None:
    state = StateFolder(root=tmp_path / "state")
    state.create()
    state.database.touch()
    (state.courses / "cs101" / "data").mkdir(parents=True)  # prepared by an administrator
    refuse_lost_state(state)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def delete(path: Path) -> None:
    path.unlink()


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def overwrite(path: Path) -> None:
    path.write_bytes(b"Dear diary, " * 1000)


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (empty, "is empty, but the site has been used: .*outputs holds 1 entries"),
        (delete, "is missing, but the site has been used: .*outputs holds 1 entries"),
        (truncate, "is truncated"),
        (overwrite, "is not a database"),
    ],
)
def test_a_lost_database_is_refused_and_left_as_it_is(
    site: StateFolder, damage: Callable[[Path], None], found: str
) -> None:
    damage(site.database)
    before = site.database.read_bytes() if site.database.exists() else None
    with pytest.raises(Refused, match=found) as refused:
        refuse_lost_state(site)
    assert "carrel restore BACKUP --replace" in str(refused.value)
    assert (site.database.read_bytes() if site.database.exists() else None) == before


@pytest.mark.parametrize("damage", [truncate, overwrite])
def test_the_databases_of_accounts_and_of_jupyterhub_are_looked_at_as_well(
    site: StateFolder, damage: Callable[[Path], None]
) -> None:
    site.hub_database.write_bytes(site.database.read_bytes())
    refuse_lost_state(site)
    for database in (site.accounts, site.hub_database):
        sound = database.read_bytes()
        damage(database)
        with pytest.raises(Refused, match=str(database)):
            refuse_lost_state(site)
        database.write_bytes(sound)


def test_a_restore_that_was_killed_between_its_renames_is_named(site: StateFolder) -> None:
    aside = site.root.with_name("state.before-20261125-120000")
    site.root.rename(aside)
    site.root.with_name("state.restoring").mkdir()
    with pytest.raises(Refused, match="a restore was interrupted") as refused:
        refuse_lost_state(site)
    assert f"mv {aside} {site.root}" in str(refused.value)
    assert not site.root.exists()
