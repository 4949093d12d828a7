"""Members of a group: look them up and change them in JupyterHub, which stores them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import click

from ...accounts.store import Accounts
from ...attempts.compile_caches import OwnerCompileCaches
from ...config.state_folder import StateFolder
from ...errors import NotFound, Unavailable
from ...groups.users import Users
from ..common.notes import note
from ..common.operator_options import hub_of, operator
from ..common.site_store import site_store


def check_members(state: StateFolder, names: tuple[str, ...]) -> None:
    """Check that JupyterHub is running and knows these users, before anything changes."""
    if not names:
        return
    with closing(hub_of(state)) as hub, closing(Accounts(state.accounts)) as accounts:
        for name in names:
            try:
                hub.user(name)
            except NotFound as error:
                if accounts.find(name) is not None:
                    hub.add_user(name, admin=False)  # has not signed in yet
                    continue
                raise NotFound(
                    f"JupyterHub does not know {name}.",
                    accepted=f"Create an account with: carrel user add {name} --group GROUP",
                ) from error


def warn_unknown(state: StateFolder, teachers: tuple[str, ...]) -> None:
    """Warn about unknown names: they are mistyped, or use another sign-in."""
    with closing(Accounts(state.accounts)) as accounts:
        unknown = [name for name in teachers if accounts.find(name) is None]
    if unknown:
        note(f"Note: no account exists for {', '.join(unknown)} (yet).")


def join(state: StateFolder, name: str, members: tuple[str, ...]) -> None:
    if members:
        with people_of(state) as people:
            people.join(name, members, who=operator())
        for member in members:
            click.echo(f"{member} is a member of {name}.")


def leave(state: StateFolder, name: str, leavers: tuple[str, ...]) -> None:
    if leavers:
        with people_of(state) as people:
            people.leave(name, leavers, who=operator())
        for leaver in leavers:
            click.echo(f"{leaver} is not a member of {name} any more.")


@contextmanager
def people_of(state: StateFolder) -> Iterator[Users]:
    """Open the accounts of this installation."""
    with (
        site_store(state) as store,
        closing(hub_of(state)) as hub,
        closing(Accounts(state.accounts)) as accounts,
    ):
        caches = OwnerCompileCaches(state.compile_caches, most_bytes=0)
        yield Users(store, time.time, hub, accounts, caches)


def members(state: StateFolder, name: str) -> list[str] | None:
    """Return members by name; None if JupyterHub is not responding."""
    try:
        with closing(hub_of(state)) as hub:
            return sorted(one.name for one in hub.users() if name in one.groups)
    except Unavailable:
        return None
