"""Frames in which Plotly and Vega draw a figure from its specification.

The specification is untrusted. It is data in the frame, whose only scripts are Carrel's and the
library's; the frame has no origin and no network. Browsers keep no cache for such a frame, so that
the page around it fetches the library, once, and sends its text (``static/carrel.js``).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from pydantic import JsonValue

from ...attempts.figures import HTML, digest, library_of, specification, specification_source
from ...records.json_value import Json, parse_json
from ...supervisor import figure_libraries

_SCRIPT = Path(__file__).parents[1] / "static" / "figure.js"
_STYLE = (
    ":root{color-scheme:light}body{margin:8px;font-family:system-ui,sans-serif;background:#fff;"
    "color:#1b2733}.carrel-figure{overflow:auto}"
)


def figure_page(library: str, drawn: Json, nonce: str) -> bytes:
    """Return the page that draws one figure, white in the dark theme too, as images are."""
    page = (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Figure</title>"
        f"<style>{_STYLE}</style>{figure_place(library, drawn)}{figure_script(nonce)}"
    )
    return page.encode(errors="replace")


def figure_place(library: str, drawn: Json) -> str:
    """Return the HTML of one figure for ``figure_script``."""
    name = "plotly" if library == "Plotly" else "vega"
    text = json.dumps(drawn).replace("<", "\\u003c")
    return (
        f'<div class="carrel-figure" data-library="{name}">'
        f'<script type="application/json">{text}</script></div>'
    )


def figure_script(nonce: str) -> str:
    return f'<script nonce="{nonce}">{_script()}</script>'


def new_nonce() -> str:
    return secrets.token_urlsafe(16)


def figure_in_output(data: Mapping[str, JsonValue]) -> tuple[str, Json]:
    """Return the library and the specification of an output that can be drawn."""
    texts = _joined(data)
    drawn = specification(texts)
    return (
        (library_of(texts), drawn)
        if drawn is not None and figure_libraries.installed()
        else ("", None)
    )


def figure_in_notebook(content: bytes, wanted: str) -> tuple[str, Json]:
    """Find the figure whose specification has this digest in an output notebook."""
    for data in _bundles(_parsed(content)):
        texts = _joined(data)
        source = specification_source(texts)
        if source and digest(source) == wanted:
            return library_of(texts), specification(texts)
    return "", None


def place_figures(content: bytes) -> bytes | None:
    """Replace figures of a notebook without a static form by ``figure_place``; None without any."""
    notebook, found = _parsed(content), False
    for data in _bundles(notebook):
        library, drawn = ("", None) if is_static(data) else figure_in_output(data)
        if library:
            data.clear()
            data[HTML] = figure_place(library, drawn)
            found = True
    return json.dumps(notebook).encode() if found else None


def _parsed(content: bytes) -> object:
    try:
        return parse_json(content)
    except ValueError:  # the notebook is still being written, or not one
        return None


def _bundles(notebook: object) -> Iterator[dict[str, JsonValue]]:
    """Iterate over the data of outputs, also those that are not valid in nbformat.

    Altair's type, ``application/vnd.vegalite.v6.json``, is one: it should end with ``+json``.
    """
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    for cell in cells if isinstance(cells, list) else ():
        outputs = cell.get("outputs") if isinstance(cell, dict) else None
        for output in outputs if isinstance(outputs, list) else ():
            data = output.get("data") if isinstance(output, dict) else None
            if isinstance(data, dict):
                yield data


def is_static(data: Mapping[str, JsonValue]) -> bool:
    """Return whether the output has a form that needs no script."""
    html = _joined(data).get(HTML, "<script")
    return any(mime.startswith("image/") for mime in data) or "<script" not in str(html)


def can_be_drawn(reference: Mapping[str, str]) -> bool:
    return bool(reference.get("specification")) and figure_libraries.installed()


def _joined(data: Mapping[str, JsonValue]) -> dict[str, Json]:
    """Join HTML that nbformat stores as a list of lines."""
    found: dict[str, Json] = dict(data)
    lines = found.get(HTML)
    if isinstance(lines, list):
        found[HTML] = "".join(line for line in lines if isinstance(line, str))
    return found


@cache
def _script() -> str:
    return _SCRIPT.read_text(encoding="utf-8")
