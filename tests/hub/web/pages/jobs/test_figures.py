"""Interactive figures on the page of a job (issue 28, item 31)."""

from __future__ import annotations

import json
import re

import pytest
from pydantic import JsonValue

from carrel.hub.attempts.figures import REFERENCE, digest
from carrel.hub.attempts.output_limits import OutputLimits
from carrel.hub.web.html.cell_output import OutputForm, shown
from carrel.spawners.runner.attempt.outputs import event_output

from ...fakes import PREFIX, World, job, lease
from ...page_checks import check_page

WITH_LIBRARY = (
    "<div><script>/**\n* plotly.js v4.1.1\n*/</script>"
    '<div id="f"></div><script>Plotly.newPlot("f", [{"y": [1, 2]}])</script></div>'
)
PNG = "iVBORw0KGgo="
FIGURES: dict[str, dict[str, JsonValue]] = {
    "Plotly, JSON only": {"application/vnd.plotly.v1+json": {"data": []}},
    "Plotly, its library in another output": {
        "application/vnd.plotly.v1+json": {"data": []},
        "text/html": '<div><script>Plotly.newPlot("f", [])</script></div>',
    },
    "Plotly, its library from elsewhere": {
        "text/html": '<script src="https://cdn.plot.ly/plotly.min.js"></script>'
        "<script>/* plotly.js v4 */ Plotly.newPlot('f', [])</script>"
    },
    "Altair": {
        "text/html": "<div></div><script>load('https://cdn.jsdelivr.net/npm/vega@6?noext');"
        "vegaEmbed('#a', {})</script>",
        "text/plain": "alt.Chart(...)",
    },
    "Altair, JSON only": {
        "application/vnd.vegalite.v6.json": {"mark": "bar"},
        "text/plain": "<VegaLite 6 object>\n\nIf you see this message, …",
    },
    "Bokeh": {
        "application/vnd.bokehjs_exec.v0+json": "",
        "text/html": '<div id="b"></div><script src="https://cdn.bokeh.org/x.js"></script>',
    },
    "Plotly, too large for an event": {
        "application/vnd.plotly.v1+json": {"data": [{"y": [0] * 20_000}]}
    },
}


def displayed(data: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the output as the runner reports it."""
    sent = event_output({"output_type": "display_data", "data": data}, OutputLimits())
    parsed: dict[str, JsonValue] = json.loads(json.dumps(sent))
    return parsed


@pytest.fixture
def world() -> World:
    made = World()
    made.service.put(job(state="running", lease=lease(id="j-aaaaaaaa.1").model_dump()))
    return made


def show(world: World, *outputs: dict[str, JsonValue]) -> str:
    world.service.happen("j-aaaaaaaa", "cell_started", {"index": 0, "number": 1})
    for output in outputs:
        data = {"index": 0, "number": 1, "output": output}
        world.service.happen("j-aaaaaaaa", "cell_output", data)
    return world.browser().get(f"{PREFIX}requests/j-aaaaaaaa").text


@pytest.mark.parametrize("case", FIGURES)
def test_a_figure_that_cannot_be_drawn_is_named_with_a_download(world: World, case: str) -> None:
    html = show(world, displayed(FIGURES[case]))
    assert check_page(html).all("iframe") == []
    note = re.search(r'<p class="note figure">(.*?)</p>', html, re.DOTALL)
    assert note is not None
    assert "without the library that draws it: see it in JupyterLab" in note[1]
    assert f'href="{PREFIX}api/v1/requests/j-aaaaaaaa/output" download' in note[1]


@pytest.mark.parametrize("case", FIGURES)
@pytest.mark.parametrize("mime", ["image/png", "image/svg+xml"])
def test_the_static_form_of_a_figure_is_shown(world: World, case: str, mime: str) -> None:
    html = show(world, displayed({**FIGURES[case], mime: PNG}))
    pictures = [image for image in check_page(html).all("img") if image.get("class") == "picture"]
    assert [image["src"] for image in pictures] == [f"{PREFIX}requests/j-aaaaaaaa/outputs/2"]
    assert check_page(html).all("iframe") == []


def test_html_without_a_script_is_the_static_form_of_a_figure() -> None:
    data: dict[str, JsonValue] = {"application/vnd.plotly.v1+json": {}, "text/html": "<svg></svg>"}
    found = shown(1, displayed(data))
    assert found is not None
    assert found.form is OutputForm.FRAME


def test_a_figure_with_its_library_runs_in_a_frame_without_origin_and_network(
    world: World,
) -> None:
    html = show(world, displayed({"text/html": WITH_LIBRARY}))
    (frame,) = check_page(html).all("iframe")
    assert (frame["sandbox"], frame["loading"]) == ("allow-scripts", "lazy")
    address = f"{PREFIX}requests/j-aaaaaaaa/outputs/2"
    assert frame["src"] == address
    framed = world.browser().get(address, headers={"Sec-Fetch-Dest": "iframe"})
    assert framed.text.endswith(WITH_LIBRARY)
    policy = framed.headers["content-security-policy"].split("; ")
    assert policy[:2] == ["sandbox allow-scripts", "default-src 'none'"]
    assert "script-src 'unsafe-inline' 'unsafe-eval'" in policy
    assert not [part for part in policy if "http" in part or "connect-src" in part]
    for opened in ({}, {"Sec-Fetch-Dest": "document"}):
        alone = world.browser().get(address, headers=opened)
        assert alone.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
        assert "script-src" not in alone.headers["content-security-policy"]


def test_a_figure_that_is_too_large_for_an_event_comes_from_the_notebook(world: World) -> None:
    html = WITH_LIBRARY + "<!--" + "x" * 100_000 + "-->"
    sent = displayed({"text/html": html})
    assert sent["metadata"] == {REFERENCE: {"library": "Plotly", "html": digest(html)}}
    (frame,) = check_page(show(world, sent)).all("iframe")
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": "f", "execution_count": 1}
    output = {"output_type": "display_data", "metadata": {}, "data": {"text/html": [html]}}
    written = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    cell["outputs"] = [output]
    world.service.outputs["j-aaaaaaaa"] = ("a.ipynb", json.dumps(written).encode())
    framed = {"Sec-Fetch-Dest": "iframe"}
    found = world.browser().get(str(frame["src"]), headers=framed)
    assert found.text.endswith(html)
    assert found.headers["content-security-policy"].startswith("sandbox allow-scripts")
    output["data"] = {"text/html": "another"}
    world.service.outputs["j-aaaaaaaa"] = ("a.ipynb", json.dumps(written).encode())
    assert world.browser().get(str(frame["src"]), headers=framed).status_code == 404


def test_other_html_with_a_script_stays_without_scripts(world: World) -> None:
    page = check_page(show(world, displayed({"text/html": "<script>alert(1)</script>"})))
    assert [frame["sandbox"] for frame in page.all("iframe")] == [""]
    address = f"{PREFIX}requests/j-aaaaaaaa/outputs/2"
    answer = world.browser().get(address, headers={"Sec-Fetch-Dest": "iframe"})
    assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")


@pytest.mark.parametrize("found", [3, {"library": "<b>", "html": []}])
def test_a_reference_of_any_form_is_ignored(found: JsonValue) -> None:
    output: dict[str, JsonValue] = {"output_type": "display_data", "data": {"text/plain": "x"}}
    result = shown(1, {**output, "metadata": {REFERENCE: found}})
    assert result is not None
    assert (result.form, result.text) == (OutputForm.TEXT, "x")
