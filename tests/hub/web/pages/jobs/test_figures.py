"""Interactive figures on the page of a job (issue 28, item 31)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import nbformat
import pytest
from pydantic import JsonValue

from carrel.hub.attempts.figures import (
    REFERENCE,
    digest,
    specification,
    specification_source,
)
from carrel.hub.attempts.output_limits import OutputLimits
from carrel.hub.supervisor import figure_libraries
from carrel.hub.supervisor.figure_libraries import FILES
from carrel.hub.web.html.cell_output import OutputForm, shown
from carrel.spawners.runner.attempt.outputs import clip, event_output

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


@pytest.fixture(autouse=True)
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment without the libraries, in which ``install`` puts some."""
    monkeypatch.setattr(figure_libraries, "folder", lambda prefix=None: tmp_path)
    return tmp_path


def install(prefix: Path) -> None:
    for name in FILES.values():
        path = prefix / "node_modules" / name
        path.parent.mkdir(parents=True)
        path.write_text(f"// {name}")


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
    assert ("an administrator runs: python -m" in note[1]) == (case != "Bokeh")


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


PLOTLY: dict[str, JsonValue] = {"data": [{"y": [1, 3]}], "layout": {"title": {"text": "</script>"}}}
BAR: dict[str, JsonValue] = {"mark": "bar", "data": {"values": [{"a": 1}]}}
PLOTLY_HTML = (
    '<script src="https://cdn.plot.ly/plotly-3.0.0.min.js"></script><script>Plotly.newPlot( "f", '
    '[{"y": [1, 3]}], {"title": {"text": "\\u003c/script>"}}, {"responsive": true} )</script>'
)
ALTAIR_HTML = (
    "<script>(function(spec, embedOpt){ load('https://cdn.jsdelivr.net/npm/vega@6?noext');"
    " vegaEmbed(d, spec, embedOpt) })(" + json.dumps(BAR) + ', {"mode": "vega-lite"});</script>'
)
DRAWN: dict[str, tuple[dict[str, JsonValue], str, JsonValue]] = {
    "Plotly": ({"application/vnd.plotly.v1+json": PLOTLY}, "plotly", PLOTLY),
    "Plotly from elsewhere": (
        {"text/html": PLOTLY_HTML},
        "plotly",
        {**PLOTLY, "config": {"responsive": True}},
    ),
    "Altair": ({"application/vnd.vegalite.v5+json": BAR, "text/plain": "x"}, "vega", BAR),
    "Altair's own type": ({"application/vnd.vegalite.v6.json": BAR}, "vega", BAR),
    "Altair from elsewhere": ({"text/html": ALTAIR_HTML}, "vega", BAR),
    "Altair's whole page": (
        {
            "text/html": f"<script>vegaEmbed; var spec = {json.dumps(BAR)};</script>"
            '<script src="https://cdn.jsdelivr.net/npm/vega@6"></script>'
        },
        "vega",
        BAR,
    ),
    "Vega": ({"application/vnd.vega.v6+json": {"marks": []}}, "vega", {"marks": []}),
}


def drawn_in(html: str) -> tuple[str, object]:
    """Return the library and the specification of the only figure of a frame."""
    ((library, text),) = re.findall(
        r'class="carrel-figure" data-library="(\w+)"><script type="application/json">(.*?)</script',
        html,
    )
    return library, json.loads(text)


@pytest.mark.parametrize("case", DRAWN)
def test_an_installed_library_draws_the_specification_of_a_figure(
    world: World, libraries: Path, case: str
) -> None:
    install(libraries)
    data, library, drawn = DRAWN[case]
    (frame,) = check_page(show(world, displayed(data))).all("iframe")
    assert (frame["sandbox"], frame["loading"]) == ("allow-scripts", "lazy")
    assert frame["data-libraries"] == f"{PREFIX}static/figures/"
    framed = world.browser().get(str(frame["src"]), headers={"Sec-Fetch-Dest": "iframe"})
    assert drawn_in(framed.text) == (library, drawn)
    policy = framed.headers["content-security-policy"].split("; ")
    assert policy[:2] == ["sandbox allow-scripts", "default-src 'none'"]
    (nonce,) = re.findall(r'<script nonce="([^"]{20,})">', framed.text)
    assert f"script-src 'nonce-{nonce}' 'unsafe-eval'" in policy
    assert not [part for part in policy if "http" in part or "connect-src" in part]
    again = world.browser().get(str(frame["src"]), headers={"Sec-Fetch-Dest": "iframe"})
    assert nonce not in again.text
    alone = world.browser().get(str(frame["src"]))
    assert "script-src" not in alone.headers["content-security-policy"]


@pytest.mark.parametrize("case", ["Plotly", "Altair from elsewhere"])
def test_a_specification_that_is_too_large_for_an_event_comes_from_the_notebook(
    world: World, libraries: Path, case: str
) -> None:
    install(libraries)
    data, library, drawn = DRAWN[case]
    filler = "x" * 100_000
    if "text/html" in data:
        data = {"text/html": f"{data['text/html']}<!--{filler}-->"}
    else:
        assert isinstance(drawn, dict)
        drawn = {**drawn, "filler": filler}
        data = dict.fromkeys(data, drawn)
    sent = displayed(data)
    assert filler not in json.dumps(sent)
    assert sent["metadata"] == {
        REFERENCE: {
            "library": sent["metadata"][REFERENCE]["library"],  # type: ignore[index,call-overload]
            "html": "",
            "specification": digest(specification_source(data)),
        }
    }
    (frame,) = check_page(show(world, sent)).all("iframe")
    framed = {"Sec-Fetch-Dest": "iframe"}
    world.service.outputs["j-aaaaaaaa"] = ("a.ipynb", notebook_with(PLOTLY))
    assert world.browser().get(str(frame["src"]), headers=framed).status_code == 404
    world.service.outputs["j-aaaaaaaa"] = ("a.ipynb", notebook_with(PLOTLY, data))
    found = world.browser().get(str(frame["src"]), headers=framed)
    assert drawn_in(found.text) == (library, drawn)


def notebook_with(*outputs: dict[str, JsonValue]) -> bytes:
    made = [{"output_type": "display_data", "metadata": {}, "data": data} for data in outputs]
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": "f", "execution_count": 1}
    written = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {},
        "cells": [{**cell, "outputs": made}],
    }
    return json.dumps(written).encode()


@pytest.mark.parametrize("case", DRAWN)
def test_the_notebook_of_a_job_draws_the_same_figures(
    world: World, libraries: Path, case: str
) -> None:
    data, library, drawn = DRAWN[case]
    other: dict[str, JsonValue] = {"text/html": "<script>alert(1)</script>"}
    world.service.outputs["j-aaaaaaaa"] = ("a.ipynb", notebook_with(data, other))
    address, framed = f"{PREFIX}requests/j-aaaaaaaa/notebook/content", {"Sec-Fetch-Dest": "iframe"}
    without = world.browser().get(address, headers=framed)
    assert without.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    install(libraries)
    found = world.browser().get(address, headers=framed)
    assert drawn_in(found.text) == (library, drawn)
    policy = found.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'")
    assert "unsafe-inline' 'unsafe-eval" not in policy  # the notebook's own scripts do not run
    alone = world.browser().get(address)
    assert alone.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert "carrel-figure" not in alone.text


def test_only_the_files_of_the_libraries_are_served(world: World, libraries: Path) -> None:
    def status(name: str) -> int:
        return world.browser().get(f"{PREFIX}static/figures/{name}").status_code

    assert {status(name) for name in FILES} == {404}
    install(libraries)
    answer = world.browser().get(f"{PREFIX}static/figures/plotly.js")
    assert answer.text == "// plotly.js-dist-min/plotly.min.js"
    assert "javascript" in answer.headers["content-type"]
    tag = {"If-None-Match": answer.headers["etag"]}
    again = world.browser().get(f"{PREFIX}static/figures/plotly.js", headers=tag)
    assert again.status_code == 304
    secret = libraries / "package.json"
    secret.write_text("{}")
    for name in ("package.json", "../package.json", "%2e%2e/package.json", ""):
        assert status(name) == 404


@pytest.mark.parametrize(
    "html",
    [
        "Plotly.newPlot(",
        'Plotly.newPlot("f", x)',
        'Plotly.newPlot("f", 3, {})',
        "vegaEmbed })(" + "[" * 100_000,
        'vegaEmbed })({"a": ' + "[" * 100_000,
    ],
)
def test_html_without_a_readable_specification_is_not_drawn(html: str) -> None:
    assert specification({"text/html": html}) is None


def test_the_output_notebook_has_altairs_type_as_one_that_is_valid() -> None:
    data = {
        "application/vnd.vegalite.v6.json": BAR,
        "text/plain": "x",
        "text/html": ["<p>", "</p>"],
    }
    made = {"output_type": "display_data", "metadata": {}, "data": data}
    output = nbformat.from_dict(made)  # type: ignore[no-untyped-call]
    clip(output, 1000, lambda what, size: None)
    assert output["data"] == {
        "application/vnd.vegalite.v6+json": BAR,
        "text/plain": "x",
        "text/html": ["<p>", "</p>"],
    }
    nbformat.validate(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(outputs=[output])]))
