"""Actions of a teacher on the pages of a course."""

from __future__ import annotations

from typing import Any

import httpx

from carrel.hub.records.identity import Identity

from ....doubles import TEACHER
from ...page_checks import check_page
from ...site import Site

GUS = Identity(name="gus")


def send(site: Site, address: str, who: Identity = TEACHER, **fields: Any) -> httpx.Response:
    """Submit a form of a page; lists of files make it a multipart form."""
    token = {"csrf": site.world.form_token(f"{who.name}-oauth")}
    data = {name: value for name, value in fields.items() if isinstance(value, str)}
    sent = [(name, each) for name, value in fields.items() if name not in data for each in value]
    return site.page(who).post(address, data=token | data, files=sent or None)


def shown(answer: httpx.Response, status: int = 200) -> str:
    assert answer.status_code == status, answer.text
    check_page(answer.text)
    return answer.text
