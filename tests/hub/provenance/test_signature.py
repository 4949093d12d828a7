"""Signatures of a site, and its keys as text."""

from __future__ import annotations

import pytest

from carrel.hub.errors import InvalidInput, Unavailable
from carrel.hub.provenance.signature import PublicKey, SigningKey

KEY = SigningKey.generate()


def test_the_public_key_verifies_what_was_signed_and_nothing_else() -> None:
    signature = KEY.sign(b"content")
    assert KEY.public.verifies(signature, b"content")
    assert not KEY.public.verifies(signature, b"content.")
    assert not KEY.public.verifies(signature[:-1], b"content")
    assert not SigningKey.generate().public.verifies(signature, b"content")


def test_a_public_key_is_the_same_from_both_texts() -> None:
    out = KEY.public.out()
    assert PublicKey.from_base64(out.key) == KEY.public == PublicKey.from_pem(out.pem)
    assert (out.algorithm, out.id) == ("Ed25519", KEY.public.id)
    assert len(out.id) == 16


@pytest.mark.parametrize("text", ["", "AAAA", "not base64", "é"])
def test_another_text_is_no_key(text: str) -> None:
    with pytest.raises(InvalidInput, match="public key"):
        PublicKey.from_base64(text)
    with pytest.raises(InvalidInput, match="contains no public key of a site"):
        PublicKey.from_pem(text)


def test_the_private_key_is_not_accepted_as_a_public_one_nor_shown() -> None:
    with pytest.raises(InvalidInput):
        PublicKey.from_pem(KEY.pem)
    assert "PRIVATE" not in repr(KEY)


def test_a_damaged_private_key_says_where_it_is_restored_from() -> None:
    with pytest.raises(Unavailable, match=r"restore signing-key\.pem from a backup"):
        SigningKey(KEY.pem[:60]).sign(b"")
