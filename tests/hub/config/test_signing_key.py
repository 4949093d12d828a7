"""The signing key of an installation."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from carrel.hub.config.signing_key import site_signing_key
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.provenance.signature import SigningKey


def test_the_key_is_created_once_and_private(tmp_path: Path) -> None:
    state = StateFolder.at(tmp_path)
    first = site_signing_key(state)
    assert site_signing_key(state) == first
    assert stat.S_IMODE(state.signing_key.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["signing-key.pem"]


def test_two_starters_have_the_same_key(tmp_path: Path) -> None:
    state, both = StateFolder.at(tmp_path), Barrier(8)

    def start(_: int) -> SigningKey:
        both.wait()
        return site_signing_key(state)

    with ThreadPoolExecutor(8) as threads:
        assert len({key.pem for key in threads.map(start, range(8))}) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["signing-key.pem"]
