"""Pages of the service neither load nor run foreign content."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

import pytest

import carrel.hub.web
from carrel.hub.groups.membership import GroupChoice

from ..fakes import PREFIX, World, full
from ..reading import pages_and_parts

TEMPLATES = Path(carrel.hub.web.__file__).parent / "templates"
TEMPLATE_NAMES = sorted(str(path.relative_to(TEMPLATES)) for path in TEMPLATES.rglob("*.html"))
PLACES = {
    "request_id": "j-cccccccc",
    "server": "experiments",
    "event_id": "1",
    "cell": "1",
    "group": "cs101",
    "course": "cs101",
    "assignment": "ps1",
    "submission": "1",
    "person": "student1",
    "name": "ps1.html",
    "number": "1",
    "regrade": "1",
    "item_id": "g-cccccccc",
    "code": "c",
    "check": "g-cccccccc",
}
STREAMS = ("/events", "/feed")
MADE_BY_NOTEBOOKS = ("/outputs/{event_id}", "/outputs/{number}", "/notebook/content")
STRICT = {
    "default-src": "'self'",
    "img-src": "'self' data:",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}
FIGURES = frozenset({"job_macros.html", "notebook.html"})
INLINE = {
    "a script": re.compile(r"<script(?![^>]*\ssrc=)|javascript:", re.I),
    "a style": re.compile(r"<style|\sstyle=", re.I),
    "a handler": re.compile(r"\son[a-z]+=|\shx-on|\shx-vals=['\"]?js:", re.I),
    "another host": re.compile(r"(?:src|href|action)=['\"]?(?:https?:)?//", re.I),
}


def policy(header: str) -> dict[str, str]:
    parts = (part.strip().partition(" ") for part in header.split(";"))
    return {name: value for name, _, value in parts}


@pytest.mark.parametrize("who", ["ada-oauth", "root-oauth", "nobody"])
def test_every_address_forbids_foreign_content(who: str) -> None:
    world = World()
    full(world)
    browser = world.browser(who)
    for path in sorted(pages_and_parts(world.app)):
        if path.endswith(STREAMS):
            continue
        answer = browser.get(path.replace(":file", "").format(**PLACES))
        found = policy(answer.headers["content-security-policy"])
        if path.endswith(MADE_BY_NOTEBOOKS) and answer.is_success:
            assert (found["sandbox"], found["default-src"]) == ("", "'none'"), path
        else:
            assert found == STRICT, path
        assert answer.headers["x-content-type-options"] == "nosniff", path


def test_the_response_to_an_internal_error_has_the_same_headers() -> None:
    world = World()
    world.service.offered = cast(list[GroupChoice], None)
    answer = world.browser().get(PREFIX)
    assert answer.status_code == 500
    assert policy(answer.headers["content-security-policy"]) == STRICT


def test_an_error_in_a_frame_is_a_sentence_without_origin_script_and_link() -> None:
    world = World()
    full(world)
    refused = []
    for path in sorted(pages_and_parts(world.app)):
        if path.endswith(STREAMS):
            continue
        address = path.replace(":file", "").format(**PLACES)
        answer = world.browser().get(address, headers={"Sec-Fetch-Dest": "iframe"})
        if answer.status_code < 400 or "html" not in answer.headers["content-type"]:
            continue
        refused.append(path)
        found = policy(answer.headers["content-security-policy"])
        allowed = (found["sandbox"], found["default-src"], found["frame-ancestors"])
        assert allowed == ("", "'none'", "'self'"), path
        assert answer.headers["x-frame-options"] == "SAMEORIGIN", path
        assert re.search(r"<p>[^<]+</p>$", answer.text), path
        assert not re.search(r"<(a|form|script)\b", answer.text), path
    assert {path for path in refused if path.endswith("/content")}


def test_a_notebook_that_is_too_large_says_so_in_its_frame() -> None:
    world = World()
    full(world)
    world.service.outputs["j-cccccccc"] = ("a.ipynb", b" " * (60 << 20))
    address = f"{PREFIX}requests/j-cccccccc/notebook/content"
    answer = world.browser().get(address, headers={"Sec-Fetch-Dest": "iframe"})
    assert answer.status_code == 413
    assert "<p>a.ipynb has 60 MiB, which is too large to display. Download it" in answer.text


@pytest.mark.parametrize("template", TEMPLATE_NAMES)
def test_no_template_has_anything_inline(template: str) -> None:
    text = (TEMPLATES / template).read_text()
    assert {what for what, pattern in INLINE.items() if pattern.search(text)} == set()


def test_output_of_notebooks_is_framed_without_an_origin() -> None:
    for template in TEMPLATES.rglob("*.html"):
        for other in re.findall(r"<iframe[^>]*>", template.read_text()):
            # A figure runs its script without an origin: it reaches neither page nor cookies. The
            # response for a whole notebook allows Carrel's script only if there are figures.
            figure = 'sandbox="allow-scripts"' if template.name in FIGURES else ""
            assert 'sandbox=""' in other or (figure and figure in other), template.name
