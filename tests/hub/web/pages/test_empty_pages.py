"""What an administrator reads on pages that have nothing to show yet."""

from __future__ import annotations

import pytest

from carrel.hub.records.identity import Identity

from ...doubles import ADMIN, STRANGER
from ..fakes import PREFIX
from ..page_checks import check_page
from ..site import Site, site

__all__ = ["site"]


def shown(site: Site, path: str, who: Identity = ADMIN) -> str:
    answer = site.page(who).get(PREFIX + path)
    assert answer.status_code == 200, answer.text
    check_page(answer.text)
    return answer.text


@pytest.mark.parametrize("path", ["", "submit", "account"])
def test_an_administrator_without_a_group_adds_themselves(site: Site, path: str) -> None:
    page = shown(site, path)
    assert f'href="{PREFIX}admin/person/admin"' in page
    assert "sk your teacher" not in page
    assert "Start one with the form" not in page
    assert "sk your teacher" in shown(site, path, STRANGER)


def test_lists_of_all_users_do_not_speak_of_your_own(site: Site) -> None:
    page = shown(site, "requests?whose=all")
    assert "There are no requests yet." in page
    assert "No request matches." not in page
    assert "No request matches." in shown(site, "requests?whose=all&text=x")
    page = shown(site, "usage?whose=all")
    assert "No device was used in this period." in page
    assert 'id="to-start"' not in page


def test_a_longer_period_is_advised_only_where_there_is_one(site: Site) -> None:
    assert "Choose a longer period" in shown(site, "admin/use?span=week")
    page = shown(site, "admin/use?span=term")
    assert "The plots begin with the first session or job on a device." in page
    assert "longer" not in page
