"""Recognise the interactive figures of plotting libraries among the outputs of cells.

An event has no room for a figure with its library: it carries a reference to the output notebook.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final

from ..records.json_value import Json

REFERENCE: Final = "carrel_figure"
"""In the metadata of an output in an event: the library, and the digest of the HTML."""
HTML: Final = "text/html"
_MIMES: Final = {
    "application/vnd.plotly": "Plotly",
    "application/vnd.vegalite": "Vega-Lite (Altair)",
    "application/vnd.vega.": "Vega",
    "application/vnd.bokehjs": "Bokeh",
}
_MARKS: Final = {
    "Plotly.newPlot(": "Plotly",
    "vegaEmbed": "Vega-Lite (Altair)",
    "Bokeh.embed": "Bokeh",
}
LIBRARIES: Final = frozenset({*_MIMES.values(), *_MARKS.values()})
_ELSEWHERE: Final = re.compile(
    r"""<script[^<>]*\ssrc=|<script\stype=["']module["']>\s*import|cdn\.jsdelivr\.net/npm/vega@"""
)
_PLOTLY_ITSELF: Final = "plotly.js v"
"""Begins Plotly's library; other figures of Plotly count on one that was loaded before."""


def library_of(data: Mapping[str, Json]) -> str:
    """Return the library that draws an output; empty if it is not an interactive figure."""
    for mime in data:
        for prefix, library in _MIMES.items():
            if mime.startswith(prefix):
                return library
    html = data.get(HTML)
    if isinstance(html, str):
        return next((library for mark, library in _MARKS.items() if mark in html), "")
    return ""


def is_self_contained(library: str, html: str) -> bool:
    """Return whether the HTML of a figure has its library in it."""
    return (
        "<script" in html
        and _ELSEWHERE.search(html) is None
        and (library != "Plotly" or _PLOTLY_ITSELF in html)
    )


def reference(data: Mapping[str, Json], kept: Mapping[str, Json]) -> dict[str, Json]:
    """Return the metadata that describe a figure whose representations do not all fit."""
    library, html = library_of(data), data.get(HTML)
    if not library or data.keys() <= kept.keys():
        return {}
    whole = isinstance(html, str) and HTML not in kept and is_self_contained(library, html)
    return {REFERENCE: {"library": library, "html": digest(str(html)) if whole else ""}}


def digest(html: str) -> str:
    return hashlib.sha256(html.encode(errors="replace")).hexdigest()
