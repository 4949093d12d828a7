"""Fixtures that run every contract of the store on each database that Carrel supports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest

from carrel.hub.interfaces.store import Store
from carrel.hub.store import SqlStore

from ..stores import new_store
from .store_kit import furnish

NewStore = Callable[..., SqlStore]
DATABASES: Mapping[str, NewStore] = {"sqlite": new_store}
"""How to make an empty store, by database; each takes ``half_life``."""


@pytest.fixture(params=DATABASES)
def make_store(request: pytest.FixtureRequest) -> Iterator[NewStore]:
    """Return a function that makes an empty store, which is closed after the test."""
    made: list[SqlStore] = []

    def make(**settings: float) -> SqlStore:
        made.append(DATABASES[request.param](**settings))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture
def store(make_store: NewStore) -> Store:
    """Return a store with one group, one node and two devices."""
    made = make_store()
    furnish(made)
    return made
