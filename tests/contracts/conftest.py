"""The stores that every contract of a store is asked of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.hub.interfaces.store import Store
from carrel.hub.store import MemoryStore, open_store

from .store_kit import furnish


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else open_store(tmp_path / "c.db")
    furnish(made)
    yield made
    made.close()
