"""The documentation at /help, the links to it from errors, and what is shown without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.hub.messages import help_pages
from carrel.hub.web.html import documentation
from carrel.hub.web.security.headers import ALWAYS

from ..fakes import World

HELP = "/services/carrel/help"
PAGE = "<title>Carrel</title>"


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of the built documentation, with one page."""
    (tmp_path / "index.html").write_text(PAGE)
    for module in (help_pages, documentation):
        monkeypatch.setattr(module, "BUILT", tmp_path)
    return tmp_path


def test_the_documentation_is_served_under_the_policy_of_all_pages(built: Path) -> None:
    found = World().client().get(f"{HELP}/")
    assert found.text == PAGE
    assert found.headers["Content-Security-Policy"] == ALWAYS["Content-Security-Policy"]
    (built / "_static" / "simulations").mkdir(parents=True)
    (built / "_static" / "simulations" / "s1.html").write_text("<style>b{color:red}</style>")
    report = World().client().get(f"{HELP}/_static/simulations/s1.html")
    assert "style-src 'self' 'unsafe-inline'" in report.headers["Content-Security-Policy"]
    assert World().client().get(HELP).headers["Location"] == f"{HELP}/"


def test_a_page_that_does_not_exist_is_an_error_page(built: Path) -> None:
    found = World().client().get(f"{HELP}/how-to/fly.html")
    assert (found.status_code, "Page not found." in found.text) == (404, True)
    assert f'href="{HELP}/how-to/solve-errors.html#not-found"' in found.text


def test_an_installation_without_it_says_how_to_build_it(built: Path) -> None:
    (built / "index.html").unlink()
    found = World().client().get(f"{HELP}/")
    assert found.status_code == 404
    assert "Build it with `make docs`" in found.text


def test_a_problem_has_the_page_about_it_as_its_type() -> None:
    found = World().client().get("/services/carrel/api/v1/requests").json()
    assert found["type"] == f"{HELP}/how-to/solve-errors.html#not-signed-in"
