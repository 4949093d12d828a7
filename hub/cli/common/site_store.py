"""The store of the installation on this machine, for administrators' commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from ...config.state_folder import StateFolder
from ...interfaces.store import Store
from ...store import open_store
from .operator_options import existing


@contextmanager
def site_store(state: StateFolder) -> Iterator[Store]:
    """Open the store, also beside the running service.

    Raises:
        InvalidInput: the folder contains no installation.
        Refused: its database is lost or damaged.
    """
    existing(state)
    with closing(open_store(state.database)) as store:
        yield store
