"""The hub's sign-in over the embedded accounts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest
from tornado import web

from carrel.hub.accounts import Accounts, CarrelAuthenticator
from carrel.hub.accounts.passwords import Cost

PASSWORD = "a long password"


def request(**headers: str) -> SimpleNamespace:
    """A stand-in for a handler, with what sign-in reads of it."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return SimpleNamespace(request=SimpleNamespace(headers=named, remote_ip="127.0.0.1"))


@pytest.fixture
def authenticator(tmp_path: Path) -> CarrelAuthenticator:
    path = tmp_path / "accounts.db"
    accounts = Accounts(path, cost=Cost(n=2**4, r=1, p=1))
    accounts.add("ada", PASSWORD, admin=True)
    accounts.add("ben", PASSWORD, admin=False)
    return CarrelAuthenticator(database=str(path))


def sign_in(authenticator: CarrelAuthenticator, name: str, password: str, **headers: str) -> object:
    async def ask() -> object:
        return await authenticator.get_authenticated_user(
            request(**headers), {"username": name, "password": password}
        )

    return asyncio.run(ask())


def test_name_and_role_come_from_the_account(authenticator: CarrelAuthenticator) -> None:
    ada, ben = (sign_in(authenticator, name, PASSWORD) for name in ("Ada", "ben"))
    assert isinstance(ada, dict)
    assert isinstance(ben, dict)
    assert (ada["name"], ada["admin"]) == ("ada", True)
    assert (ben["name"], ben["admin"]) == ("ben", False)


def test_the_hub_knows_administrators_before_they_sign_in(
    authenticator: CarrelAuthenticator,
) -> None:
    assert authenticator.admin_users == {"ada"}


def test_demo_administrators_are_known_before_their_accounts_exist(
    authenticator: CarrelAuthenticator,
) -> None:
    authenticator.demo = True
    assert authenticator.admin_users == {"ada", "admin"}


def test_an_existing_account_named_admin_keeps_its_role_in_a_demo(
    authenticator: CarrelAuthenticator,
) -> None:
    authenticator.accounts.add("admin", PASSWORD, admin=False)
    authenticator.demo = True
    assert authenticator.admin_users == {"ada"}


def test_a_wrong_password_is_refused(authenticator: CarrelAuthenticator) -> None:
    assert sign_in(authenticator, "ada", "wrong") is None


def test_a_sign_in_limit_is_reported_on_the_page(authenticator: CarrelAuthenticator) -> None:
    for _ in range(5):
        sign_in(authenticator, "ada", "wrong")
    with pytest.raises(web.HTTPError) as refused:
        sign_in(authenticator, "ada", PASSWORD)
    assert refused.value.status_code == 429
    assert str(refused.value.log_message).startswith("Too many failed sign-ins. Try again in ")


@pytest.mark.parametrize(
    ("headers", "address"),
    [
        ({}, ""),
        ({"X_Forwarded_For": "192.0.2.7"}, "192.0.2.7"),
        # Clients can forge the entries further left, and X-Real-IP.
        ({"X_Forwarded_For": "198.51.100.1, 192.0.2.7", "X_Real_IP": "198.51.100.2"}, "192.0.2.7"),
        # A reverse proxy of the department, named in the configuration.
        ({"X_Forwarded_For": "192.0.2.7, 10.0.0.9"}, "192.0.2.7"),
    ],
)
def test_sign_in_limits_count_by_the_last_hop_that_is_not_a_trusted_proxy(
    authenticator: CarrelAuthenticator,
    headers: dict[str, str],
    address: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    addresses: list[str] = []
    monkeypatch.setattr(
        authenticator.accounts, "sign_in", lambda *_, address: addresses.append(address)
    )
    authenticator.trusted_proxies = ["10.0.0.9"]
    sign_in(authenticator, "ada", PASSWORD, **headers)
    assert addresses == [address]


def test_a_user_whose_account_is_removed_is_signed_out(
    authenticator: CarrelAuthenticator, tmp_path: Path
) -> None:
    def refresh(name: str) -> object:
        return asyncio.run(authenticator.refresh_user(SimpleNamespace(name=name)))

    assert refresh("ada") == {"name": "ada", "admin": True}
    Accounts(tmp_path / "accounts.db").remove("ada")
    assert refresh("ada") is False


def test_names_are_matched_whole(authenticator: CarrelAuthenticator) -> None:
    assert authenticator.validate_username("ada")
    for name in ("ada\n", "ada/../ben", "", "..", "a\u202eb"):
        assert not authenticator.validate_username(name)
