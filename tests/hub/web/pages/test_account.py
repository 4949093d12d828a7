"""One's own password, one-time links and accounts from a table, on their pages."""

from __future__ import annotations

import re

import pytest

from ...doubles import ADMIN, STUDENT1, FakeHub
from ..fakes import API, PREFIX
from ..page_checks import check_page
from ..site import Site, site

__all__ = ["site"]

ACCOUNT, PASSWORD, IMPORT = (
    f"{PREFIX}{name}" for name in ("account", "password", "admin/people/import")
)
OLD, NEW = "a long password", "another password"
SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}


def link_of(page: str) -> str:
    (code,) = re.findall(r"http://127.0.0.1:8000/services/carrel/password#([\w-]+)", page)
    return str(code)


def audited(site: Site) -> list[tuple[str, str, str, str]]:
    lines = site.api().get(f"{API}/audit").json()["changes"]
    return [(line["action"], line["target"], line["who"], line["why"]) for line in lines]


def set_by(site: Site, code: str, password: str = NEW, again: str = NEW) -> int:
    fields = {"code": code, "password": password, "again": again}
    return site.world.client(**SAME_ORIGIN).post(PASSWORD, data=fields).status_code


def test_the_own_password_is_changed_with_the_current_one(site: Site) -> None:
    check_page(site.page().get(ACCOUNT).text)
    fields = {"current": OLD, "password": NEW, "again": NEW}
    done = site.page().post(ACCOUNT, data=fields)
    assert (done.status_code, done.headers["location"]) == (303, f"{PASSWORD}?done=yes")
    assert "Your password is set" in site.world.client().get(f"{PASSWORD}?done=yes").text
    assert site.accounts.sign_in("admin", NEW) is not None
    assert list(site.accounts.password_resets()) == ["admin"], "all sign-ins end"
    assert audited(site) == [("new password", "admin", "admin", "")]


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({"current": "wrong"}, "current", "The current password is wrong."),
        ({"again": "x"}, "again", "The two new passwords differ."),
        ({"password": "short", "again": "short"}, "password", "The password has 5 characters."),
    ],
)
def test_a_wrong_form_changes_nothing(
    site: Site, fields: dict[str, str], field: str, says: str
) -> None:
    given = {"current": OLD, "password": NEW, "again": NEW, **fields}
    refused = site.page().post(ACCOUNT, data=given)
    assert refused.status_code == 400
    assert says in refused.text
    (marked,) = re.findall(r'id="(\w+)"[^>]*aria-invalid', refused.text)
    assert marked == field
    assert site.accounts.sign_in("admin", OLD) is not None
    assert audited(site) == []


def test_sign_in_limits_hold_for_the_own_password(site: Site) -> None:
    fields = {"current": "wrong", "password": NEW, "again": NEW}
    asked = [site.page().post(ACCOUNT, data=fields) for _ in range(5)]
    asked.append(site.page().post(ACCOUNT, data={**fields, "current": OLD}))
    assert [answer.status_code for answer in asked] == [400] * 5 + [429]
    assert "Too many failed sign-ins." in asked[-1].text
    assert audited(site) == []


def test_a_one_time_link_sets_the_password_once(site: Site) -> None:
    shown = site.page().post(f"{PREFIX}admin/person/admin", data={"do": "link"})
    code = link_of(shown.text)
    assert code not in site.page().get(f"{PREFIX}admin/person/admin").text
    assert site.accounts.sign_in("admin", OLD) is not None, "it works until then"
    check_page(site.world.client().get(PASSWORD).text)
    assert set_by(site, code, "short", "short") == 400
    assert set_by(site, code) == 303
    assert site.accounts.sign_in("admin", NEW) is not None
    assert set_by(site, code) == 404
    assert audited(site) == [
        ("new password", "admin", "admin", "By a one-time link."),
        ("password link", "admin", "admin", ""),
    ]


def test_a_link_ends_by_a_newer_one_and_by_a_new_password(site: Site) -> None:
    def link() -> str:
        return str(site.api().post(f"{API}/people/admin/link").json()["code"])

    first, second = link(), link()
    assert set_by(site, first) == 404
    site.accounts.set_password("admin", OLD)
    assert set_by(site, second) == 404
    assert set_by(site, "") == 404


def test_the_form_of_a_link_accepts_no_other_site(site: Site) -> None:
    code = site.api().post(f"{API}/people/admin/link").json()["code"]
    fields = {"code": code, "password": NEW, "again": NEW}
    foreign = site.world.client(**{"Sec-Fetch-Site": "cross-site"})
    assert foreign.post(PASSWORD, data=fields).status_code == 403
    assert site.accounts.sign_in("admin", OLD) is not None


def test_a_table_is_previewed_and_then_its_good_rows_are_created(site: Site) -> None:
    table = "name,groups\nzoe,cs101\nadmin,\nkim,cs102\n"
    shown = site.page().post(IMPORT, files={"file": ("class.csv", table.encode())})
    assert "1 account would be created." in shown.text
    assert "There is no group cs102." in shown.text
    assert site.accounts.find("zoe") is None
    check_page(shown.text)

    done = site.page().post(IMPORT, files={"table": (None, table), "do": (None, "save")})
    code = link_of(done.text)
    assert site.accounts.sign_in("zoe", NEW) is None
    assert set_by(site, code) == 303
    assert site.accounts.sign_in("zoe", NEW) is not None
    assert site.context.hub.user("zoe").groups == {"cs101"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "No file is selected."),
        (b"name,mail\nada,x\n", "a column &#39;mail&#39;, which is not known"),
        (b"name\n\xff\n", "is not UTF-8 text"),
    ],
)
def test_a_file_that_is_no_table_is_refused(site: Site, content: bytes, says: str) -> None:
    refused = site.page().post(IMPORT, files={"file": ("class.csv", content)})
    assert refused.status_code == 400
    assert says in refused.text


def test_a_site_with_another_sign_in_has_no_passwords(site: Site) -> None:
    hub = site.context.hub
    assert isinstance(hub, FakeHub)
    hub.own_accounts = False
    assert "kept by the sign-in system" in site.page(ADMIN).get(ACCOUNT).text
    assert "kept by the sign-in system" in site.page(STUDENT1).get(ACCOUNT).text
    for path in ("admin/people", "admin/people/import"):
        page = site.page().get(f"{PREFIX}{path}").text
        assert "sign-in system of your site" in page
    fields = {"current": OLD, "password": NEW, "again": NEW}
    assert site.page().post(ACCOUNT, data=fields).status_code == 409
    assert site.api().post(f"{API}/people/admin/link").status_code == 409
    assert site.api().post(f"{API}/people/import", json={"table": "name\nzoe\n"}).status_code == 409
    assert site.accounts.sign_in("admin", OLD) is not None
