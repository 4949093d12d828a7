"""What a link may name, which addresses the site allows, and tickets of confirmed material."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.hub.config.site import SiteFile
from carrel.hub.errors import CarrelError, Forbidden, InvalidInput, NotFound
from carrel.hub.open_links.material import Material, check_allowed, read_material
from carrel.hub.open_links.tickets import OpenLinks
from carrel.hub.web.html.urls import MOST_NEXT, page_in_session
from carrel.hub.web.security.signer import Signer

ALLOWED = ("https://git.example.org/physics/", "http://127.0.0.1:8080/")
COURSE = Material(url="https://git.example.org/physics/course", branch="main", path="a b.ipynb")


@pytest.mark.parametrize(
    ("url", "material"),
    [
        ("https://GIT.example.org:443/o/r/", Material(url="https://git.example.org/o/r")),
        ("http://127.0.0.1:8080/a.ipynb", Material(url="http://127.0.0.1:8080/a.ipynb")),
        (
            "https://github.com/o/r/blob/main/week%201/a.ipynb",
            Material(url="https://github.com/o/r", branch="main", path="week 1/a.ipynb"),
        ),
        (
            "https://gitlab.example.org/o/sub/r/-/tree/v2",
            Material(url="https://gitlab.example.org/o/sub/r.git", branch="v2"),
        ),
    ],
)
def test_an_address_is_brought_into_the_form_in_which_it_is_fetched(
    url: str, material: Material
) -> None:
    assert read_material(url, "", "") == material


@pytest.mark.parametrize(
    ("url", "branch", "path", "field", "says"),
    [
        ("", "", "", "url", "missing"),
        ("file:///etc/passwd", "", "", "url", "does not begin with https"),
        ("ssh://git.example.org/o/r", "", "", "url", "does not begin with https"),
        ("ext::sh -c id", "", "", "url", "does not begin with https"),
        ("https://ada:secret@git.example.org/o/r", "", "", "url", "contains a user"),
        ("https://git.example.org/physics/../other", "", "", "url", "path"),
        ("https://git.example.org/physics/%2e%2e/other", "", "", "url", "path"),
        ("https://git.example.org/physics//r", "", "", "url", "path"),
        ("https://git.example.org\\@evil.org/r", "", "", "url", "address"),
        ("https://git.example.org/o/r?x=1", "", "", "url", "after"),
        ("https://git.example.org:99999/o/r", "", "", "url", "not an address"),
        ("https://git.example.org/" + "r" * 400, "", "", "url", "bytes"),
        ("https://git.example.org/o/\u202er", "", "", "url", "U\\+202E"),
        ("https://git.example.org/o/r", "--upload-pack=id", "", "branch", "not the name"),
        ("https://git.example.org/o/r", "a..b", "", "branch", "not the name"),
        ("https://git.example.org/o/r", "a b", "", "branch", "not the name"),
        ("https://git.example.org/o/r", "", "../x", "path", "outside"),
        ("https://git.example.org/o/r", "", "/etc/passwd", "path", "outside"),
        ("https://git.example.org/o/r", "", "a\\..\\b", "path", "outside"),
        ("https://git.example.org/o/r.ipynb", "", "a", "path", "no branch and no path"),
    ],
)
def test_an_invalid_link_names_the_field(
    url: str, branch: str, path: str, field: str, says: str
) -> None:
    with pytest.raises(InvalidInput, match=says) as error:
        read_material(url, branch, path)
    assert error.value.field == field


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://git.example.org/physics/course", True),
        ("https://git.example.org/physics", True),
        ("https://git.example.org/physics-of-others/course", False),
        ("http://git.example.org/physics/course", False),
        ("https://git.example.org:8443/physics/course", False),
        ("https://git.example.org.evil.org/physics/course", False),
        ("http://127.0.0.1:8080/r.git", True),
        ("http://127.0.0.1/r.git", False),
    ],
)
def test_an_address_must_be_below_a_prefix(url: str, allowed: bool) -> None:
    material = read_material(url, "", "")
    if allowed:
        check_allowed(material, ALLOWED)
        return
    with pytest.raises(Forbidden, match="does not open") as error:
        check_allowed(material, ALLOWED)
    assert ", ".join(ALLOWED) in error.value.accepted


def test_a_site_without_prefixes_opens_nothing() -> None:
    with pytest.raises(NotFound, match="not set up") as error:
        check_allowed(COURSE, ())
    assert "[open_links] in carrel.toml" in error.value.accepted


def open_links(allowed: tuple[str, ...]) -> OpenLinks:
    return OpenLinks(allowed=allowed, signer=Signer("key"), base="https://site.example.org")


def test_a_ticket_is_for_one_user_and_for_what_the_site_allows() -> None:
    links = open_links(ALLOWED)
    ticket = links.issue("ada", COURSE)
    assert links.read("ada", ticket) == COURSE
    for user, given in (("ben", ticket), ("ada", ticket[:-1]), ("ada", ""), ("ada", "x.y")):
        with pytest.raises(NotFound, match="opens nothing for you"):
            links.read(user, given)
    with pytest.raises(NotFound, match="opens nothing"):
        links.read("ada", Signer("key").wrap("session", ticket.rpartition(".")[0]))
    with pytest.raises(Forbidden):
        open_links(ALLOWED[1:]).read("ada", ticket)


def test_the_longest_material_fits_into_the_address_of_a_session() -> None:
    material = read_material(
        "https://git.example.org/physics/".ljust(400, "r"), "ü" * 75, "é" * 150
    )
    links = open_links(ALLOWED)
    wanted = f"/user/{'u' * 64}/gpu/lab?carrel-open={links.issue('u' * 64, material)}"
    assert len(wanted) <= MOST_NEXT
    assert page_in_session("u" * 64, "gpu", wanted).startswith(wanted[:200])


@pytest.mark.parametrize(
    "prefix",
    [
        "https://git.example.org/physics",
        "git.example.org/",
        "ssh://git.example.org/",
        "https://ada@git.example.org/",
        "https://git.example.org/a/../",
        "https://git.example.org/%2e/",
        "https:///",
    ],
)
def test_the_site_file_refuses_a_prefix_that_covers_more_than_it_seems(prefix: str) -> None:
    with pytest.raises(CarrelError, match="allowed"):
        SiteFile.parse(f'[open_links]\nallowed = ["{prefix}"]\n', Path("carrel.toml"))


def test_the_site_file_lists_prefixes() -> None:
    text = '[open_links]\nallowed = ["https://Git.example.org/physics/"]\n'
    found = SiteFile.parse(text, Path("carrel.toml")).open_links.allowed
    assert found == ("https://git.example.org/physics/",)
