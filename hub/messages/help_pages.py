"""The page of the documentation about each error, for error pages, REST and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ..errors import (
    BackendFailed,
    BackupFailed,
    CarrelError,
    Conflict,
    Forbidden,
    ImageFailed,
    NotAMember,
    NotFound,
    NotSignedIn,
    OverMaximum,
    PortBusy,
    StaleEpoch,
    StateInUse,
    TooLarge,
    TooManyCalls,
    Unavailable,
)
from ..records.edits import ChangedMeanwhile

BUILT: Final = Path(__file__).parents[1] / "web" / "help"
"""The built documentation; missing in a checkout before ``make docs``."""
_ERRORS = "how-to/solve-errors.html"
HELP_PAGES: Final[Mapping[type[CarrelError], str]] = MappingProxyType(
    {
        OverMaximum: f"{_ERRORS}#above-a-maximum",
        NotAMember: f"{_ERRORS}#not-a-member-of-the-group",
        TooLarge: f"{_ERRORS}#too-large",
        NotFound: f"{_ERRORS}#not-found",
        NotSignedIn: f"{_ERRORS}#not-signed-in",
        Forbidden: f"{_ERRORS}#not-allowed",
        Conflict: f"{_ERRORS}#not-possible-in-the-current-state",
        ChangedMeanwhile: f"{_ERRORS}#changed-meanwhile",
        StaleEpoch: "explanation/leases-and-epochs.html",
        Unavailable: f"{_ERRORS}#not-available",
        TooManyCalls: f"{_ERRORS}#too-many-calls",
        StateInUse: f"{_ERRORS}#carrel-does-not-start",
        PortBusy: f"{_ERRORS}#carrel-does-not-start",
        BackupFailed: "how-to/back-up-and-restore.html",
        ImageFailed: "how-to/images.html#build-them",
        BackendFailed: f"{_ERRORS}#a-session-or-job-does-not-start",
    }
)
"""The page of an error class and those derived from it, relative to the start of the help.

Malformed values have none: their messages say what is accepted.
"""

_OF_THIS_MACHINE = (StateInUse, PortBusy, BackupFailed, ImageFailed, BackendFailed)
"""Errors of commands for administrators, whose site may not be running."""


def help_page(error: CarrelError) -> str:
    """Return the page about an error, relative to the start of the help; empty if there is none."""
    return next((HELP_PAGES[kind] for kind in type(error).__mro__ if kind in HELP_PAGES), "")


def local_help(error: CarrelError) -> str:
    """Return the address of the page about an error of this machine in the installation's files.

    Empty for other errors, and if the documentation is not built.
    """
    if not isinstance(error, _OF_THIS_MACHINE):
        return ""
    path, _, section = help_page(error).partition("#")
    if not path or not (BUILT / path).is_file():
        return ""
    return (BUILT / path).as_uri() + (f"#{section}" if section else "")
