"""Announcements: the form, the banner on every page, and closing it."""

from __future__ import annotations

import re

import pytest

from ...doubles import STUDENT1, STUDENT2
from ..fakes import API, PREFIX
from ..page_checks import check_page
from ..site import Site, site

__all__ = ["site"]

PAGE = f"{PREFIX}admin/announcements"
FORM = {"do": "announce", "level": "warning", "zone": "Europe/Berlin"}
TEXT = "All sessions stop at 18:00 <b>"


def banners(page: str) -> list[str]:
    return re.findall(r'id="announcement-.*?<p>(.*?)</p>', page, re.DOTALL)


def test_a_banner_is_shown_on_pages_until_its_user_closes_it(site: Site) -> None:
    site.clock.now = 1_800_000_000.0  # 2027-01-15, 9:00 in Berlin
    added = site.page().post(PAGE, data={**FORM, "text": TEXT, "ends_at": "2027-01-15T10:00"})
    assert (added.status_code, added.headers["location"]) == (303, PAGE)
    (line,) = site.api().get(f"{API}/audit").json()["changes"]
    assert (line["action"], line["after"]["ends_at"]) == ("announce", 1_800_003_600.0)

    (made,) = site.api(STUDENT1).get(f"{API}/announcements").json()["announcements"]
    escaped = "All sessions stop at 18:00 &lt;b&gt;"
    for path in ("", "usage", "requests/j-none"):
        assert banners(site.page(STUDENT1).get(f"{PREFIX}{path}").text) == [escaped]
    check_page(site.page(STUDENT1).get(PREFIX).text)
    visitor = site.world.client().get(f"{PREFIX}announcements").text
    assert banners(visitor) == [escaped]
    assert "<form" not in visitor

    closed = site.page(STUDENT1).post(f"{PREFIX}announcements/{made['id']}/close")
    assert closed.status_code == 303
    assert banners(site.page(STUDENT1).get(PREFIX).text) == []
    assert banners(site.page(STUDENT1).get(f"{PREFIX}announcements").text) == []
    assert banners(site.page(STUDENT2).get(f"{PREFIX}announcements").text) == [escaped]
    site.clock.now += 3600.0
    assert banners(site.world.client().get(f"{PREFIX}announcements").text) == []
    assert "(ended)" in site.page().get(PAGE).text


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({"ends_at": "2027-01-14T10:00"}, "ends_at", "The end of the announcement is in the past."),
        (
            {"starts_at": "2027-01-14T10:00", "ends_at": "2027-01-14T12:00"},
            "ends_at",
            "The end of the announcement is in the past.",
        ),
        (
            {"starts_at": "2027-01-17T10:00", "ends_at": "2027-01-16T10:00"},
            "ends_at",
            "would end before it begins",
        ),
        ({"ends_at": ""}, "ends_at", "Invalid time"),
        ({"ends_at": "1h", "text": ""}, "text", "The text has 0 characters."),
        ({"ends_at": "1h", "text": "x" * 501}, "text", "The text has 501 characters."),
        ({"ends_at": "1h", "text": "a\u202eb"}, "text", "U+202E"),
        ({"ends_at": "1h", "level": "loud"}, "level", "There is no level"),
    ],
)
def test_a_banner_that_cannot_be_is_refused_and_the_form_is_kept(
    site: Site, fields: dict[str, str], field: str, says: str
) -> None:
    site.clock.now = 1_800_000_000.0
    refused = site.page().post(PAGE, data={**FORM, "text": TEXT, **fields})
    assert refused.status_code == 400
    assert says in refused.text
    assert f'id="{field}"' in refused.text
    assert site.context.store.announcements(ended_after=0.0) == ()
    assert site.api().get(f"{API}/audit").json()["changes"] == []


def test_there_are_at_most_ten(site: Site) -> None:
    body = {"text": "Hello.", "ends_at": site.clock.now + 60}
    made = [site.api().post(f"{API}/announcements", json=body) for _ in range(11)]
    assert [answer.status_code for answer in made] == [201] * 10 + [409]
    name = made[0].json()["id"]
    assert site.api(STUDENT1).delete(f"{API}/announcements/{name}").status_code == 403
    assert site.api(STUDENT1).get(f"{API}/announcements?all=true").status_code == 403
    assert site.api(STUDENT1).post(f"{API}/announcements/{name}/close").status_code == 204
    assert len(site.api(STUDENT1).get(f"{API}/announcements").json()["announcements"]) == 9
    assert site.api().delete(f"{API}/announcements/{name}").status_code == 204
    assert site.api().delete(f"{API}/announcements/{name}").status_code == 404
    assert len(site.api().get(f"{API}/announcements?all=true").json()["announcements"]) == 9
