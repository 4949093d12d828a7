"""Tests of the cipher and its key file."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from carrel.hub.errors import Unavailable
from carrel.hub.secrets.cipher import Cipher


@pytest.fixture
def cipher(tmp_path: Path) -> Cipher:
    return Cipher(tmp_path / "encryption.keys")


def test_a_value_returns_from_its_token_and_is_not_in_it(cipher: Cipher) -> None:
    token = cipher.encrypt(b"p\0ssw\xff", purpose="secret:ada:TOKEN")
    assert cipher.decrypt(token, purpose="secret:ada:TOKEN") == b"p\0ssw\xff"
    assert cipher.encrypt(b"p\0ssw\xff", purpose="secret:ada:TOKEN") != token
    assert cipher.key_file.stat().st_mode & 0o777 == 0o600


def test_a_token_that_was_changed_or_is_for_another_purpose_is_refused(cipher: Cipher) -> None:
    token = cipher.encrypt(b"value", purpose="secret:ada:TOKEN")
    for broken in (token[:-6] + "AAAAAA", "", "not a token"):
        with pytest.raises(Unavailable):
            cipher.decrypt(broken, purpose="secret:ada:TOKEN")
    with pytest.raises(Unavailable):
        cipher.decrypt(token, purpose="secret:eve:TOKEN")


def test_after_a_rotation_only_the_new_key_is_needed(cipher: Cipher) -> None:
    old = cipher.encrypt(b"value", purpose="secret")
    cipher.add_key()
    assert cipher.decrypt(old, purpose="secret") == b"value"
    new = cipher.renew(old)
    cipher.drop_keys(keep=1)
    assert cipher.decrypt(new, purpose="secret") == b"value"
    with pytest.raises(Unavailable, match=r"encryption\.keys"):
        cipher.decrypt(old, purpose="secret")


def test_without_its_key_file_nothing_is_decrypted(cipher: Cipher) -> None:
    token = cipher.encrypt(b"value", purpose="secret")
    cipher.key_file.unlink()
    with pytest.raises(Unavailable):
        cipher.decrypt(token, purpose="secret")
    cipher.key_file.write_text("not a key\n")
    with pytest.raises(Unavailable):
        cipher.decrypt(token, purpose="secret")


def test_processes_that_create_the_key_file_at_once_share_one_key(cipher: Cipher) -> None:
    tokens: list[str] = []
    threads = [
        threading.Thread(target=lambda: tokens.append(cipher.encrypt(b"x", purpose="p")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [cipher.decrypt(token, purpose="p") for token in tokens] == [b"x"] * 8
    assert [each.name for each in cipher.key_file.parent.iterdir()] == ["encryption.keys"]
