"""Recognise the interactive figures of plotting libraries, and read their specifications.

An event has no room for a figure with its library: it carries a reference to the output notebook.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Final

from ..records.json_value import Json

REFERENCE: Final = "carrel_figure"
"""In the metadata of an output in an event: the library, and the digest of the HTML or of the
specification."""
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
_DRAWN: Final = ("application/vnd.plotly", "application/vnd.vegalite", "application/vnd.vega.")
_PLOTLY_CALL: Final = re.compile(r"Plotly\.newPlot\(")
_VEGA_CALL: Final = re.compile(r"\}\)\((?=\{)|var spec = (?=\{)")
_SPACE: Final = re.compile(r"\s*")


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
    found: dict[str, Json] = {"library": library, "html": digest(str(html)) if whole else ""}
    # The specification is in the event only if the event has the part that it is read from.
    if not whole and specification(kept) is None:
        source = specification_source(data)
        if source:
            found["specification"] = digest(source)
    return {REFERENCE: found}


def specification(data: Mapping[str, Json]) -> Json:
    """Return what Plotly's or Vega's JavaScript library draws; None if the output has none.

    It is the JSON of the output, or that in the HTML which loads the library from elsewhere.
    """
    for mime, value in data.items():
        if mime.startswith(_DRAWN) and isinstance(value, dict):
            return value
    html = data.get(HTML)
    if not isinstance(html, str):
        return None
    match library_of({HTML: html}):
        case "Plotly":
            call = _PLOTLY_CALL.search(html)
            parts = _arguments(html, call.end())[1:] if call else []
            drawn = dict(zip(("data", "layout", "config"), parts, strict=False))
            return drawn if isinstance(drawn.get("data"), list) else None
        case "Vega-Lite (Altair)":
            call = _VEGA_CALL.search(html)
            first = _arguments(html, call.end())[:1] if call else []
            return first[0] if first and isinstance(first[0], dict) else None
    return None


def specification_source(data: Mapping[str, Json]) -> str:
    """Return the text whose digest identifies a specification in the output notebook."""
    for mime, value in data.items():
        if mime.startswith(_DRAWN) and isinstance(value, dict):
            return json.dumps(value, sort_keys=True, separators=(",", ":"))
    html = data.get(HTML)
    return html if isinstance(html, str) and specification(data) is not None else ""


def _arguments(text: str, at: int) -> list[Json]:
    """Read the arguments of a JavaScript call as far as they are JSON."""
    found: list[Json] = []
    decoder = json.JSONDecoder()
    while True:
        try:
            value, at = decoder.raw_decode(text, _after_space(text, at))
        except (ValueError, RecursionError):
            return found
        found.append(value)
        at = _after_space(text, at)
        if text[at : at + 1] != ",":
            return found
        at += 1


def _after_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return at if space is None else space.end()


def digest(html: str) -> str:
    return hashlib.sha256(html.encode(errors="replace")).hexdigest()
