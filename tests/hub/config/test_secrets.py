"""Tokens between the processes are kept, and those that a newer version needs are created."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from carrel.hub.config.secrets import Secrets
from carrel.hub.config.state_folder import StateFolder


def test_missing_secrets_are_created_and_existing_ones_kept(tmp_path: Path) -> None:
    state = StateFolder.at(tmp_path)
    first = Secrets.ensure(state)
    assert Secrets.ensure(state) == first
    older = json.loads(state.secrets.read_text())
    del older["metrics_token"]
    state.secrets.write_text(json.dumps(older))
    newer = Secrets.ensure(state)
    assert newer.hub_token == first.hub_token
    assert newer.metrics_token not in ("", first.metrics_token)
    assert Secrets.ensure(state) == newer
    assert stat.S_IMODE(state.secrets.stat().st_mode) == 0o600
