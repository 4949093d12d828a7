"""The card of the account page that shows and deletes what one's jobs have compiled."""

from __future__ import annotations

from pathlib import Path

from ...doubles import STUDENT1, TEACHER
from ..compile_caches import leave, offered
from ..fakes import API, PREFIX
from ..page_checks import check_page, text_of
from ..site import Site, made_site, site

__all__ = ["site"]

ACCOUNT, FORM = f"{PREFIX}account", f"{PREFIX}account/compile-cache"


def test_what_is_kept_is_shown_and_one_entry_or_all_are_deleted(site: Site) -> None:
    assert "Nothing is kept at present." in site.page(STUDENT1).get(ACCOUNT).text
    first, second = (leave(site, STUDENT1, f"{name} & c.ipynb") for name in "ab")
    leave(site, TEACHER, "of-the-teacher.ipynb")
    page = site.page(STUDENT1).get(ACCOUNT).text
    check_page(page)
    text = text_of(page)
    for shown in ("a &amp; c.ipynb", "b &amp; c.ipynb", first, second, "of at most 1.0 MiB"):
        assert shown in text
    assert "of-the-teacher" not in text
    assert page.count("data-confirm=") == 3

    done = site.page(STUDENT1).post(FORM, data={"do": "remove", "request": first})
    assert (done.status_code, done.headers["location"]) == (303, f"{ACCOUNT}#compile-cache-title")
    page = site.page(STUDENT1).get(ACCOUNT).text
    assert (first in page, second in page) == (False, True)
    again = site.page(STUDENT1).post(FORM, data={"do": "remove", "request": first})
    assert again.status_code == 404
    assert f"Nothing is kept that the job {first} has compiled." in text_of(again.text)

    assert site.page(STUDENT1).post(FORM, data={"do": "clear"}).status_code == 303
    assert "Nothing is kept at present." in site.page(STUDENT1).get(ACCOUNT).text
    assert offered(site, TEACHER, "of-the-teacher.ipynb")


def test_a_form_without_an_entry_or_an_action_deletes_nothing(site: Site) -> None:
    leave(site, STUDENT1, "a.ipynb")
    for fields in ({}, {"do": "remove"}, {"do": "remove", "request": " "}, {"do": "x"}):
        assert site.page(STUDENT1).post(FORM, data=fields).status_code in (400, 404), fields
    assert len(site.api(STUDENT1).get(f"{API}/compile-cache").json()["entries"]) == 1


def test_a_site_that_keeps_nothing_says_so(tmp_path: Path) -> None:
    with made_site(tmp_path, compile_cache_bytes=0) as site:
        assert "This site keeps no compiled code." in site.page(STUDENT1).get(ACCOUNT).text
