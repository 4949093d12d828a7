"""The documentation builds without warnings, loads nothing from elsewhere and matches the code."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import click
import pytest

from carrel.hub import errors
from carrel.hub.cli import cli
from carrel.hub.cli.common.client_command import AddByDefault
from carrel.hub.messages.help_pages import HELP_PAGES, help_page

from . import built_docs, config_reference, diagram, pictures, rooms
from .e2e.every_page import PAGES
from .source_tree import LAYERS, ROOT

DOCS = ROOT / "docs"
LINK = re.compile(r"\]\(([^)\s]+)\)")
COMMAND = re.compile(
    r"^(?: {4,}|\$ |)(?:\.venv/bin/)?carrel ([^A-Z\s].*)$"  # a line of a block
    r"|`(?:\.venv/bin/)?carrel ([^`A-Z\s]\S[^`]*)`",  # or within a sentence
    re.MULTILINE,
)
CSS_ADDRESS = re.compile(r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^'\")]+)")


@pytest.fixture(scope="module")
def site() -> Path:
    """The documentation, built as `make docs` does it."""
    return built_docs.ensure()


class Fetched(HTMLParser):
    """Addresses that a browser fetches to show a page, and pictures without a text alternative."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.without_words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.addresses += [given[name] for name in ("src", "srcset", "poster") if name in given]
        if tag == "link" and given.get("rel") not in ("canonical", "index", "search", "next"):
            self.addresses.append(given.get("href", ""))
        if tag == "img" and not given.get("alt"):
            self.without_words.append(given.get("src", ""))


def outside(addresses: list[str]) -> list[str]:
    return [address for address in addresses if re.match(r"(?:[a-z]+:)?//", address)]


def test_built_pages_load_nothing_from_other_hosts(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    asked = {
        (page.name, address)
        for page in pages
        for address in outside(Fetched(page.read_text(encoding="utf-8")).addresses)
    }
    styles = {
        (sheet.name, address)
        for sheet in site.rglob("*.css")
        for address in CSS_ADDRESS.findall(sheet.read_text(encoding="utf-8"))
    }
    assert asked | styles == set()


@pytest.mark.parametrize("page", sorted(set(HELP_PAGES.values())))
def test_the_help_page_of_an_error_exists(page: str, site: Path) -> None:
    path, _, section = page.partition("#")
    text = (site / path).read_text(encoding="utf-8")
    assert not section or f'id="{section}"' in text


def test_every_error_has_a_help_page_except_malformed_values() -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    without = {kind.__name__ for kind in kinds if not help_page(kind("No."))}
    assert without == {
        "CarrelError",
        "InvalidArgument",
        "InvalidInput",
        "NothingToReplay",
        "Refused",
    }


def test_pages_keep_to_the_content_security_policy(site: Path) -> None:
    inline = re.compile(r"<style|<script(?![^>]*\ssrc=)|\s(?:style|on\w+)=\"")
    for page in set(site.rglob("*.html")) - set((site / "_static/simulations").iterdir()):
        assert not inline.search(page.read_text(encoding="utf-8")), page.name


def test_every_picture_has_a_text_alternative(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert Fetched(page.read_text(encoding="utf-8")).without_words == [], page.name


def test_every_page_is_in_the_table_of_contents(site: Path) -> None:
    first = (site / "index.html").read_text(encoding="utf-8")
    for page in DOCS.rglob("*.md"):
        name = page.relative_to(DOCS).with_suffix("")
        if name.parts[0] in ("README", "index", "_build") or name.parts[0] == "decisions":
            continue
        assert f'href="{name.as_posix()}.html"' in first, f"{name} is linked from nowhere"


def test_modules_that_the_pages_name_exist() -> None:
    named = re.compile(r"`((?:hub|spawners|courses|extensions|images|tests)/[\w/]+\.py)`")
    missing = {
        (page.name, module)
        for page in [ROOT / "README.md", *DOCS.rglob("*.md")]
        for module in named.findall(page.read_text(encoding="utf-8"))
        if not (ROOT / module).is_file()
    }
    assert not missing


@pytest.mark.parametrize("page", ["README.md", "docs/README.md"])
def test_targets_of_links_between_files_exist(page: str) -> None:
    """Sphinx checks the links of all other pages."""
    for target in LINK.findall((ROOT / page).read_text(encoding="utf-8")):
        path, _, _ = target.partition("#")
        if path and not re.match(r"[a-z]+:", path):
            assert ((ROOT / page).parent / path).exists(), f"{page} links to {target}"


def commands(page: Path) -> list[str]:
    """Return the commands of Carrel in blocks and within sentences."""
    text = page.read_text(encoding="utf-8")
    return [found[1] or found[2] for found in COMMAND.finditer(text)]


@pytest.mark.parametrize(
    "page",
    [
        page
        for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
        if "reference" not in page.parts
    ],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_commands_and_options_that_a_page_names_exist(page: Path) -> None:
    for written in commands(page):
        words = re.split(r" (?:[#|;&>]|--(?= ))", f"{written} ")[0].split()
        command: click.Command = cli
        while (
            isinstance(command, click.Group) and words and re.fullmatch(r"[a-z][a-z-]*", words[0])
        ):
            found = command.get_command(click.Context(command), words.pop(0))
            assert found is not None, f"carrel {written}"
            command = found
        if isinstance(command, AddByDefault) and words:
            command = command.commands["add"]
        known = {option for each in command.params for option in each.opts} | {"--help"}
        named = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert named <= known, f"carrel {written}"


def test_the_configuration_page_matches_the_code() -> None:
    assert config_reference.PAGE.read_text(encoding="utf-8") == config_reference.page(), (
        "run: python -m tests.config_reference"
    )


def test_every_variable_of_the_code_is_on_the_configuration_page() -> None:
    assert config_reference.variables_in_code() == config_reference.variables_on_the_page(), (
        "tell of it in tests/config_reference.py"
    )


def test_the_picture_of_the_states_is_drawn_from_the_table() -> None:
    assert diagram.PICTURE.read_text(encoding="utf-8") == diagram.picture(), (
        "run: python -m tests.diagram"
    )


def test_every_screenshot_is_taken_by_a_test() -> None:
    pages = {f"{pictures.PAGE}[{place.name}]" for place in PAGES}
    taken = {pictures.taken_by(picture) for picture in pictures.pictures()}
    assert taken <= {*pages, pictures.TUTORIAL}
    assert len(taken) > 1


def test_the_picture_of_the_packages_is_drawn_from_the_layers() -> None:
    assert rooms.PICTURE.read_text(encoding="utf-8") == rooms.picture(), (
        "run: python -m tests.rooms"
    )


def test_every_package_of_the_table_is_in_the_picture() -> None:
    drawn = {room.name for number in range(len(LAYERS)) for room in rooms.rooms(number)}
    listed = {name.replace(".", "/") for _, names in LAYERS for name in names}
    assert {name.removesuffix(".py").removesuffix("/") for name in drawn} == listed
