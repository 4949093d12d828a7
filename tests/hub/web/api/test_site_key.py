"""The public key of the site."""

from __future__ import annotations

from carrel.hub.provenance.signature import PublicKey

from ..fakes import API, World


def test_it_is_shown_to_all_and_verifies_signatures_of_the_service() -> None:
    world = World()
    answer = world.client().get(f"{API}/site-key")
    assert answer.status_code == 200
    key = PublicKey.from_pem(answer.json()["pem"])
    assert key.verifies(world.context.signing_key.sign(b"head"), b"head")
    assert "PRIVATE" not in answer.text
