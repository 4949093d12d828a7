"""What a failed call and a silent JupyterHub mean for other calls and for pages."""

from __future__ import annotations

import errno
import os

import pytest

from carrel.hub.files.local import LocalFiles
from carrel.hub.inventory.pool import PoolQueries

from ...doubles import STUDENT1, FakeHub
from ..fakes import API, PREFIX
from ..site import Site, site

__all__ = ["site"]


def fails(*_: object, **__: object) -> None:
    raise RuntimeError("no pool")


def test_a_failed_call_closes_its_connection_so_that_the_proxy_knows(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server closes it anyway, and the next call through the proxy got a 503."""
    monkeypatch.setattr(PoolQueries, "pool", fails)
    for answer in (site.api(STUDENT1).get(f"{API}/pool"), site.page(STUDENT1).get(PREFIX)):
        assert (answer.status_code, answer.headers["connection"]) == (500, "close")
    assert "connection" not in site.api(STUDENT1).get(f"{API}/me").headers


def test_pages_show_what_is_known_while_jupyterhub_does_not_respond_and_say_so(site: Site) -> None:
    mark = "JupyterHub does not respond: groups, users and sign-ins are shown as they were"
    assert mark not in site.page(STUDENT1).get(PREFIX).text
    hub = site.context.hub
    assert isinstance(hub, FakeHub)
    hub.away = True
    for page in ("", "requests", "submit", "usage"):
        answer = site.page(STUDENT1).get(PREFIX + page)
        assert (answer.status_code, mark in answer.text) == (200, True), page


@pytest.mark.parametrize(
    ("number", "status"), [(errno.ENOSPC, 503), (errno.EDQUOT, 503), (errno.EROFS, 503)]
)
def test_a_disk_that_cannot_be_written_refuses_with_a_sentence(
    site: Site, monkeypatch: pytest.MonkeyPatch, number: int, status: int
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(PoolQueries, "pool", fails)
    answer = site.api(STUDENT1).get(f"{API}/pool")
    assert answer.status_code == status
    assert answer.json()["detail"].startswith("The server's disk is ")
    assert "connection" not in answer.headers


def test_pages_say_that_the_disk_is_full(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = "disk is full: nothing new can be accepted"
    assert sentence not in site.page(STUDENT1).get(PREFIX).text
    monkeypatch.setattr(LocalFiles, "is_full", lambda _: True)
    assert sentence in site.page(STUDENT1).get(PREFIX).text
