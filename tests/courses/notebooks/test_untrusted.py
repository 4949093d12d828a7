"""Notebooks and code of any author: what cannot be read is refused, and never a RecursionError."""

from __future__ import annotations

import json

import pytest

from carrel.courses.notebooks import document, ipynb
from carrel.courses.notebooks.python_code import parse
from carrel.hub.errors import InvalidInput
from carrel.hub.schemas import NotebookIn
from carrel.hub.web.forms.job import ChosenNotebook

from ..notebook_samples import SOURCE


def deep(levels: int) -> bytes:
    inside = '{"a":' * levels + "1" + "}" * levels
    return f'{{"cells": [], "metadata": {inside}, "nbformat": 4, "nbformat_minor": 5}}'.encode()


@pytest.mark.parametrize("levels", [150, 900, 100_000])
def test_a_notebook_that_is_nested_too_deeply_is_refused(levels: int) -> None:
    assert document.read(deep(levels)) is None
    with pytest.raises(InvalidInput, match="cannot be read as a notebook"):
        ipynb.read("unit1.ipynb", deep(levels))


def test_an_output_that_is_nested_too_deeply_is_dropped() -> None:
    def output(levels: int) -> dict[str, object]:
        data = json.loads("[" * levels + "]" * levels)
        bundle = {"application/json": data}
        return {"output_type": "display_data", "data": bundle, "metadata": {}}

    assert ipynb.as_output(output(10)) is not None
    assert ipynb.as_output(output(150)) is None


@pytest.mark.parametrize(
    "source", ["-" * 100_000 + "1", "(" * 500, "a\0b", "%pip list", "a" * 9 + "("]
)
def test_code_that_cannot_be_parsed_is_none(source: str) -> None:
    assert parse(source) is None


def test_a_byte_order_mark_before_a_notebook_is_ignored_everywhere() -> None:
    content = b"\xef\xbb\xbf" + SOURCE
    assert document.read(content) == document.read(SOURCE) is not None
    assert ipynb.read("unit1.ipynb", content) == ipynb.read("unit1.ipynb", SOURCE)
    text = content.decode()
    body = NotebookIn(name="a.ipynb", content=text)
    assert body.content == SOURCE.decode()
    assert NotebookIn.model_validate_json(body.model_dump_json()) == body
    assert ChosenNotebook.read("a.ipynb", content).content == SOURCE.decode()
