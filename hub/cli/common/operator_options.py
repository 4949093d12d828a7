"""Options and checks of administrators' commands."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from ...config.lost_state import refuse_lost_state
from ...config.secrets import Secrets
from ...config.settings import Settings
from ...config.state_folder import DEFAULT_STATE, StateFolder
from ...jupyterhub.client import HubApi

F = TypeVar("F", bound=Callable[..., object])


def state_option(function: F) -> F:
    """Add ``--state DIR``, also from CARREL_STATE; the command receives a StateFolder."""
    return click.option(
        "--state",
        metavar="DIR",
        default=DEFAULT_STATE,
        envvar="CARREL_STATE",
        show_default=True,
        show_envvar=True,
        callback=_folder,
        help="State folder of this Carrel.",
    )(function)


def existing(state: StateFolder) -> Settings:
    """Return the settings of an installation that has been started before.

    Raises:
        InvalidInput: the folder contains no installation.
        Refused: its database is lost or damaged.
    """
    refuse_lost_state(state)
    return Settings.load(state)


def hub_of(state: StateFolder) -> HubApi:
    """Return a client of the running JupyterHub, with the rights of the service."""
    return HubApi(existing(state).hub_api_url, Secrets.ensure(state).service_token)


def operator() -> str:
    """Return the user at the command line of this machine, for the audit log."""
    return f"cli:{getpass.getuser()}"


def _folder(_context: click.Context, _parameter: click.Parameter, value: str) -> StateFolder:
    return StateFolder.at(Path(value))
