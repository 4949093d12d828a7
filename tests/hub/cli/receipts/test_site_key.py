"""``carrel site-key``."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.hub.provenance.signature import PublicKey, SigningKey

from ....fake_service import PREFIX, FakeService
from ..invocation import Carrel, carrel, service

__all__ = ["carrel", "service"]


def test_the_key_is_written_to_a_file_without_being_signed_in(
    carrel: Carrel, service: FakeService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = SigningKey.generate().public
    monkeypatch.delenv("CARREL_TOKEN")
    service.extra["GET", f"{PREFIX}/site-key"] = lambda handler: handler.say(
        200, key.out().model_dump()
    )
    shown = carrel("site-key", "--site", service.url)
    assert (shown.output, shown.exit_code) == (key.pem, 0)
    written = carrel("site-key", "--site", service.url, "-o", "site.pem")
    assert written.output == f"Wrote key {key.id} to site.pem.\n"
    assert PublicKey.from_pem((tmp_path / "site.pem").read_text()) == key
