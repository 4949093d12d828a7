"""After a form was sent, its address can be opened: it shows the form, or leads to its page."""

from __future__ import annotations

import re

import httpx
import pytest
from fastapi.routing import iter_route_contexts

from ..fakes import PREFIX, World
from ..site import Site, site

__all__ = ["site"]

IDS = {
    "request_id": "j-7f3k2m9p",
    "course": "cs101",
    "assignment": "ps1",
    "group": "cs101",
    "name": "ada",
    "person": "ada",
    "number": "10000",
    "regrade": "9",
    "item_id": "g-7f3k2m9p",
    "code": "c",
}
NOT_FOUND_IS_SHOWN = {303, 200, 404}


def forms(world: World) -> list[str]:
    """Return the addresses of all forms of pages."""
    found = {
        str(route.path)
        for route in iter_route_contexts(world.app.routes)
        if "POST" in (route.methods or ()) and "/api/" not in str(route.path)
    }
    return sorted(re.sub(r"{(\w+)}", lambda name: IDS[name[1]], path) for path in found)


def test_the_address_of_every_form_leads_to_a_page(site: Site) -> None:
    addresses = forms(site.world)
    assert len(addresses) > 25
    for address in addresses:
        answer = opened(site, address)
        assert answer.status_code in NOT_FOUND_IS_SHOWN, address
        assert "text/html" in answer.headers["content-type"], address
        if answer.history:
            redirect = answer.history[0]
            assert redirect.status_code == 303
            assert address.startswith(redirect.headers["location"].rstrip("/"))


def opened(site: Site, address: str) -> httpx.Response:
    return site.page().get(address, follow_redirects=True)


@pytest.mark.parametrize(
    ("form", "page"),
    [
        ("requests/cancel", "requests"),
        ("requests/j-7f3k2m9p/cancel", "requests/j-7f3k2m9p"),
        ("admin/groups/remove", "admin"),
        ("course/cs101/assignment/ps1/check", "course/cs101/assignment/ps1"),
        ("submit/inspect", "submit"),
        ("sessions/stop", ""),
        ("logout", ""),
    ],
)
def test_an_address_without_a_page_leads_to_the_one_above(site: Site, form: str, page: str) -> None:
    answer = site.page().get(f"{PREFIX}{form}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{PREFIX}{page}")
