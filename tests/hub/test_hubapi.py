"""What JupyterHub's answers become."""

from __future__ import annotations

import httpx
import pytest

from carrel.hub.errors import NotFound
from carrel.hub.hubapi import HubApi


def test_a_user_who_is_gone_is_named() -> None:
    """The hub's own answer says no more than ``None``."""
    gone = httpx.MockTransport(lambda _: httpx.Response(404, json={"message": None}))
    with pytest.raises(NotFound, match=r"^JupyterHub knows no user ben\. An administrator can"):
        HubApi("http://hub/api", "token", transport=gone).user("ben")
