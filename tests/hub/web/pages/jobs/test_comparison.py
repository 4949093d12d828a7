"""The page and the API that compare two jobs: real processes over a fake service."""

from __future__ import annotations

import base64
import json
from io import BytesIO
from typing import Any

import pytest

from carrel.hub.comparison.schemas import ComparisonOut
from carrel.hub.records.identity import Identity
from carrel.hub.web.html.cell_output import OutputContent
from carrel.hub.web.html.cell_output import content as content_of
from carrel.hub.web.html.output_cache import displayed_outputs

from ...fakes import API, NOW, PREFIX, World, job
from ...page_checks import text_of

RUNS = f"{PREFIX}compare?a=j-aaaaaaaa&b=j-bbbbbbbb"


def _png(shade: int) -> str:
    from PIL import Image  # noqa: PLC0415  # takes long to import

    file = BytesIO()
    Image.new("L", (4, 2), shade).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def _notebook(loss: float, shade: int) -> bytes:
    def code(source: str, *outputs: dict[str, Any]) -> dict[str, Any]:
        return {
            "cell_type": "code",
            "id": source[:4],
            "metadata": {},
            "execution_count": 1,
            "source": source,
            "outputs": list(outputs),
        }

    cells = [
        code("same = '<b>'"),
        code("train()", {"output_type": "stream", "name": "stdout", "text": f"loss {loss}\n"}),
        code(
            "plot()",
            {"output_type": "display_data", "metadata": {}, "data": {"image/png": _png(shade)}},
        ),
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


@pytest.fixture
def world() -> World:
    made = World()
    for name, lr, loss, shade in (("j-aaaaaaaa", 0.1, 0.5, 0), ("j-bbbbbbbb", 0.2, 0.75, 9)):
        made.service.put(
            job(id=name, state="succeeded", ended=True, ended_at=NOW, parameters={"lr": lr})
        )
        made.service.outputs[name] = ("train.ipynb", _notebook(loss, shade))
    return made


def test_the_page_shows_what_differs_and_folds_what_is_equal(world: World) -> None:
    page = world.browser().get(RUNS)
    assert page.status_code == 200
    text = " ".join(text_of(page.text).split())
    assert "The runs differ: 2 outputs, 1 parameter." in text
    assert "lr parameter 0.1 0.2 ≠ different" in text
    assert "1 line changed. 1 number differs, by at most 0.25" in text
    assert "8 of 8 pixels differ (100.00%), by at most 9 of 255" in text
    assert '<details class="compared-cell equal"><summary>Cell 1' in page.text
    assert "same = &#39;&lt;b&gt;&#39;" in page.text
    picture = f"{PREFIX}requests/j-bbbbbbbb/cells/3/outputs/0"
    assert f'src="{picture}"' in page.text
    image = world.browser().get(picture)
    assert (image.headers["content-type"], image.content[:4]) == ("image/png", b"\x89PNG")
    assert "sandbox" in image.headers["content-security-policy"]
    assert world.browser().get(picture.replace("cells/3", "cells/9")).status_code == 404
    assert world.browser("unknown").get(picture).status_code != 200


def test_the_api_ignores_parts_and_takes_a_tolerance_and_a_file(world: World) -> None:
    body = {
        "a": {"request": "j-aaaaaaaa"},
        "b": {"notebook": _notebook(0.5000001, 0).decode(), "name": "own.ipynb"},
        "tolerance": {"relative": 1e-3},
        "ignore": ["environment"],
    }
    found = world.program("ada-reads").post(f"{API}/comparisons", json=body)
    assert found.status_code == 200, found.text
    compared = ComparisonOut.model_validate_json(found.content)
    assert compared.summary.outputs == 0
    assert compared.b.name == "own.ipynb"
    assert not compared.equal  # the file has no parameters


@pytest.mark.parametrize(
    ("changes", "status", "sentence"),
    [
        ({"state": "running", "ended": False}, 409, "has not ended: it is running"),
        ({"command": ["make"], "notebook": ""}, 400, "is a notebook and j-bbbbbbbb a command"),
        ({"kind": "session"}, 400, "is a session"),
        ({"owner": "bob"}, 404, "no request j-bbbbbbbb"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(
    world: World, changes: dict[str, Any], status: int, sentence: str
) -> None:
    world.service.put(job(id="j-bbbbbbbb", **{"state": "succeeded", "ended": True} | changes))
    page = world.browser().get(RUNS)
    assert (page.status_code, sentence in text_of(page.text)) == (status, True)
    body = {"a": {"request": "j-aaaaaaaa"}, "b": {"request": "j-bbbbbbbb"}}
    assert world.program("ada-reads").post(f"{API}/comparisons", json=body).status_code == status


@pytest.mark.parametrize(
    ("notebook", "status", "sentence"),
    [
        ("not json", 400, "is not a notebook"),
        ('{"cells": 1}', 400, "is not a notebook"),
        (" " * (33 << 20), 413, "too large to be compared"),
    ],
)
def test_a_file_that_is_no_notebook_is_refused(
    world: World, notebook: str, status: int, sentence: str
) -> None:
    body = {"a": {"request": "j-aaaaaaaa"}, "b": {"notebook": notebook}}
    found = world.program("ada-reads").post(f"{API}/comparisons", json=body)
    assert (found.status_code, sentence in found.text) == (status, True)


def test_the_notebook_of_many_pictures_is_read_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[str]()
    known = world.service.output

    def output(who: Identity, request_id: str) -> tuple[str, bytes]:
        read.append(request_id)
        return known(who, request_id)

    monkeypatch.setattr(world.service, "output", output)
    picture = f"{PREFIX}requests/j-bbbbbbbb/cells/3/outputs/0"
    for _ in range(3):
        assert world.browser().get(picture).status_code == 200
    assert world.browser().get(picture.replace("cells/3", "cells/2")).status_code == 404
    assert read == ["j-bbbbbbbb"]
    assert world.browser("unknown").get(picture).status_code != 200
    world.service.put(job(id="j-bbbbbbbb", state="running", ended=False))
    assert world.browser().get(picture).status_code == 404


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"not json", 400),
        (b'{"cells": 1}', 400),
        (b"[" * 100_000, 400),
        (b" " * (33 << 20), 413),
        (b'{"cells": [1, {"outputs": 1}, {"outputs": [1, {"data": 1}]}]}', 404),
        (b'{"cells": [{"metadata": 1}, {}, {"outputs": [{"data": {"image/png": 1}}]}]}', 404),
    ],
)
def test_a_picture_of_a_damaged_notebook_is_refused(
    world: World, content: bytes, status: int
) -> None:
    world.service.outputs["j-bbbbbbbb"] = ("train.ipynb", content)
    found = world.browser().get(f"{PREFIX}requests/j-bbbbbbbb/cells/3/outputs/0")
    assert found.status_code == status


def test_cells_of_papermill_are_not_counted_and_surrogates_are_replaced() -> None:
    notebook = {
        "cells": [
            {"metadata": {"tags": ["injected-parameters"]}, "outputs": [{"data": {}}]},
            {"outputs": [{"data": {"image/svg+xml": ["<svg>", "\ud800"], "text/plain": "x"}}]},
            {"outputs": [{"data": {"image/png": "\u00e9"}}]},
        ]
    }
    ((svg,), (png,)) = displayed_outputs("a.ipynb", json.dumps(notebook).encode())
    assert content_of(svg) == OutputContent(mime="image/svg+xml", data=b"<svg>?")
    assert content_of(png) is None
