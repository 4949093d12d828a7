"""Bodies that are too large, malformed or invalid get one sentence."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from carrel.hub.schemas.base import NO_PARTS
from carrel.hub.web.dependencies.bodies import MAX_API_BYTES, MAX_FORM_BYTES

from ..fakes import API, HUB_TOKEN, PREFIX, World
from ..site import GROUP, Site, site

__all__ = ["site"]

JSON = {"Content-Type": "application/json"}
NOTEBOOK = '"notebook": {"name": "a.ipynb", "content": "{}"}'


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize(
    ("body", "message", "accepted"),
    [
        (b"\xff\xfe{}", "The body is not UTF-8: byte 0 is invalid.", "JSON in UTF-8"),
        (b"{", "The body is not valid JSON", "one JSON object"),
        (b'{"group": "\\ud800"}', "The body is not valid JSON", "one JSON object"),
        (b"[" * 100_000, "The body is not valid JSON", "one JSON object"),
        (b"", "The body is not valid JSON", "one JSON object"),
        (b"[]", "The body is a list.", "an object with kind, group"),
        (b"{}", "The field 'group' is missing.", "text of 1 to 64 characters"),
        (
            f'{{"group": "a", {NOTEBOOK}, "devices": "two"}}'.encode(),
            "The field 'devices' is 'two' (text).",
            "a whole number",
        ),
        (
            f'{{"group": "a", {NOTEBOOK}, "devices": 1.5}}'.encode(),
            f"The field 'devices' is 1.5 (a number). {NO_PARTS}",
            "a whole number",
        ),
        (
            f'{{"group": "a", {NOTEBOOK}, "devices": true}}'.encode(),
            "The field 'devices' is true.",
            "a whole number",
        ),
        (
            f'{{"group": "a", {NOTEBOOK}, "kind": "kernel"}}'.encode(),
            "The field 'kind' is 'kernel' (text).",
            "'job'",
        ),
        (
            f'{{"group": "a", {NOTEBOOK}, "gpus": 1}}'.encode(),
            "There is no field 'gpus'.",
            "Known fields: kind, group, devices",
        ),
        (
            b'{"group": "a", "notebook": {"name": "", "content": "{}"}}',
            "The field 'notebook.name' is '' (text).",
            "text of 1 to 255 characters",
        ),
        (
            b'{"group": "a", "notebook": {"name": "a", "content": "{}", "path": "/"}}',
            "There is no field 'notebook.path'.",
            "Known fields: name, content",
        ),
        (
            f'{{"group": "a", {NOTEBOOK}, "labels": {{"a": 1}}}}'.encode(),
            "The field 'labels.a' is 1 (a number).",
            "text",
        ),
    ],
)
def test_case_29_an_invalid_body_gets_one_sentence(
    world: World, body: bytes, message: str, accepted: str
) -> None:
    answer = world.program("ada-all").post(f"{API}/requests", content=body, headers=JSON)
    error = answer.json()["error"]
    assert answer.status_code == 400
    assert error["code"] == "invalid"
    assert error["message"].startswith(message)
    assert accepted in error["accepted"]
    assert not world.service.calls


def test_a_long_value_is_not_sent_back(world: World) -> None:
    body = f'{{"group": "{"a" * 5000}", {NOTEBOOK}}}'
    error = world.program("ada-all").post(f"{API}/requests", content=body, headers=JSON).json()
    assert error["error"]["message"] == "The field 'group' is text of 5000 characters."


def test_a_body_with_another_content_type_is_refused(world: World) -> None:
    answer = world.program("ada-all").post(
        f"{API}/requests", content=b"{}", headers={"Content-Type": "text/plain"}
    )
    assert answer.status_code == 400
    assert "'text/plain'" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("query", "field"), [("limit=many", "limit"), ("limit=0", "limit"), ("mine=perhaps", "mine")]
)
def test_a_wrong_query_is_answered_the_same_way(world: World, query: str, field: str) -> None:
    answer = world.program("ada-all").get(f"{API}/requests?{query}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid")
    assert f"'{field}'" in answer.json()["error"]["message"]


@pytest.mark.parametrize(("path", "status"), [("nothing", 404), ("me", 405)])
def test_wrong_addresses_and_methods_have_the_same_form(
    world: World, path: str, status: int
) -> None:
    answer = world.program("ada-all").post(f"{API}/{path}")
    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"code", "message", "accepted"}


class Endless:
    """A body without a declared length that counts the bytes read."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.taken = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunk = b" " * (1 << 20)
        while self.taken < self.size:
            self.taken += len(chunk)
            yield chunk


@pytest.mark.parametrize("token", ["ada-all", HUB_TOKEN, "unknown"])
def test_a_declared_length_above_the_limit_is_refused_unread(world: World, token: str) -> None:
    body = Endless(0)
    answer = world.program(token).post(
        f"{API}/requests",
        content=body,
        headers=JSON | {"Content-Length": str(200 * 1024 * 1024)},
    )
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "too_large"
    assert "KiB" in answer.json()["error"]["accepted"]


def test_a_body_without_a_length_is_refused_once_it_is_too_large(world: World) -> None:
    body = Endless(MAX_API_BYTES + (8 << 20))
    answer = world.program("ada-all").post(f"{API}/requests", content=body, headers=JSON)
    assert answer.status_code == 413
    assert not world.service.calls


def test_forms_are_small(world: World) -> None:
    answer = world.own_page().post(f"{PREFIX}sessions", data={"group": "a" * (MAX_FORM_BYTES + 1)})
    assert answer.status_code == 413
    assert "too large" in answer.text


def test_an_internal_error_is_a_500_without_details(world: World) -> None:
    def broken(who: object) -> None:
        raise RuntimeError("secret detail")

    world.service.pool = broken  # type: ignore[method-assign,assignment]
    answer = world.program("ada-all").get(f"{API}/pool")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert answer.json()["error"]["code"] == "error"


def deep_notebook(levels: int) -> str:
    inside = '{"a":' * levels + "1" + "}" * levels
    return f'{{"cells": [], "metadata": {inside}, "nbformat": 4, "nbformat_minor": 5}}'


@pytest.mark.parametrize("levels", [150, 900, 100_000])
def test_a_notebook_nested_too_deeply_is_a_400(site: Site, levels: int) -> None:
    site.api().put(f"{API}/groups/all", json=GROUP)
    notebook = {"name": "a.ipynb", "content": deep_notebook(levels)}
    answer = site.api().post(f"{API}/requests", json={"group": "all", "notebook": notebook})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert "nested" in answer.json()["detail"]


def test_a_form_with_too_many_fields_is_refused_with_a_sentence(site: Site) -> None:
    many = "&".join(f"id=j-{number}" for number in range(1201))
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = site.page().post(f"{PREFIX}requests/cancel", content=many, headers=form)
    assert answer.status_code == 400
    assert "The form has more than 1,200 fields." in answer.text
    shared = site.api().post(f"{API}/exchange/assignment/a/b", content=many, headers=form)
    assert shared.status_code == 400


def test_an_upload_with_too_many_fields_is_refused_with_a_sentence(site: Site) -> None:
    many = [(f"f{number}", (None, "1")) for number in range(1201)]
    answer = site.page().post(f"{PREFIX}submit/inspect", files=many)
    assert answer.status_code == 400
    assert "The request cannot be read: Too many fields" in answer.text


def test_a_form_that_is_not_utf8_is_refused_with_a_sentence(site: Site) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for body in (b"group=\xff", b"group=%ff"):
        answer = site.page().post(f"{PREFIX}sessions", content=body, headers=form)
        assert (answer.status_code, "The form is not UTF-8." in answer.text) == (400, True)


def test_a_search_text_that_is_too_long_is_refused_with_a_sentence(site: Site) -> None:
    text = "%" * 60_000
    pages = site.page()
    searched = pages.post(f"{PREFIX}requests/cancel", data={"which": "all", "text": text})
    assert searched.status_code == 400
    assert "The search text has 60,000 characters." in searched.text
    assert pages.get(f"{PREFIX}requests", params={"text": "%" * 5000}).status_code == 400
