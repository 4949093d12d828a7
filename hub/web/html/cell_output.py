"""Cell outputs on pages: text as text, everything else in a sandbox.

Outputs are untrusted. Text is escaped, and its ANSI colours become classes (``ansi.py``). Markdown
and LaTeX become HTML without scripts and styles (``markdown.py``, ``latex.py``). An image is an
``<img>`` whose URL returns only images. HTML is in an ``<iframe sandbox>`` whose response forbids
scripts, also when it is opened directly. An interactive figure runs its own script when a reader
opens it: in a frame without an origin and without a network.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from markupsafe import Markup
from pydantic import JsonValue

from ...attempts.figures import (
    LIBRARIES,
    REFERENCE,
    digest,
    is_self_contained,
    library_of,
)
from ...attempts.notebook_format import read_notebook
from ...errors import InvalidInput
from ...records.json_value import Json
from ...supervisor import figure_libraries
from . import latex
from .ansi import coloured, is_blank, plain
from .drawn_figure import can_be_drawn, figure_in_output
from .frame_style import Theme, output_style
from .markdown import IMAGES, NO_HTML, markdown_html

_SVG = "image/svg+xml"
_HTML = "text/html"
_MARKDOWN, _LATEX = "text/markdown", "text/latex"
_TEXTS = (_MARKDOWN, _LATEX, "text/plain", "application/json")
_HEADINGS_FROM = 5
"""Below the headings of the notebook's own Markdown."""
_ROW = re.compile(r"<tr[\s>]", re.IGNORECASE)
_FRAME_HEIGHTS = (6 * 16, 26 * 16)
_ROW_HEIGHT = 28
_PLAIN_FRAME_HEIGHT = 12 * 16
_FIGURE_HEIGHT = 32 * 16
_SANDBOX = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
SANDBOXED: Mapping[str, str] = {
    "Content-Security-Policy": _SANDBOX,
    "X-Frame-Options": "SAMEORIGIN",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of a response with output of a notebook."""
FIGURE: Mapping[str, str] = {
    **SANDBOXED,
    # Vega compiles its expressions. Nothing is loaded from or sent to anywhere.
    "Content-Security-Policy": _SANDBOX.replace("sandbox;", "sandbox allow-scripts;").replace(
        "img-src data:;", "img-src data: blob:; script-src 'unsafe-inline' 'unsafe-eval';"
    ),
}
"""Headers of an interactive figure in its frame."""


def drawn_figure_headers(nonce: str) -> Mapping[str, str]:
    """Return the headers of a frame in which only scripts with this nonce run."""
    policy = FIGURE["Content-Security-Policy"].replace("'unsafe-inline' 'unsafe-eval'", "{}")
    allowed = f"'nonce-{nonce}' 'unsafe-eval'"  # Plotly compiles its shaders' drivers
    return {**FIGURE, "Content-Security-Policy": policy.format(allowed)}


class OutputForm(StrEnum):
    """Display form of an output."""

    STREAM = "stream"
    TEXT = "text"
    RICH = "rich"
    IMAGE = "image"
    FRAME = "frame"
    FIGURE = "figure"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One output.

    Attributes:
        event_id: id of its event, which is part of its address.
        name: for a stream, stdout or stderr.
        text: with its ANSI colours; for images and frames, the alternative text.
        html: Markdown or LaTeX as HTML that is safe within the page.
        overwrites: its first line replaces the last line of the stream before it.
        renderer: for an interactive figure, the library that draws it.
        height: for a frame, in pixels: a frame without scripts cannot report its own.
        note: a sentence about the parts that the page leaves out.
    """

    form: OutputForm
    event_id: int
    name: str = ""
    text: str = ""
    html: Markup = NO_HTML
    overwrites: bool = False
    renderer: str = ""
    height: int = 0
    note: str = ""


def shown(event_id: int, output: JsonValue) -> Shown | None:
    """Choose the best representation of an nbformat output; None if there is none."""
    if not isinstance(output, dict):
        return None
    match output.get("output_type"):
        case "stream":
            text, overwrites = settle(coloured(joined(output.get("text"))))
            name = "stderr" if output.get("name") == "stderr" else "stdout"
            return Shown(
                form=OutputForm.STREAM,
                event_id=event_id,
                name=name,
                text=text,
                overwrites=overwrites,
            )
        case "error":
            trace = output.get("traceback")
            lines = trace if isinstance(trace, list) else []
            text = "\n".join(joined(line) for line in lines) or joined(output.get("evalue"))
            return Shown(form=OutputForm.ERROR, event_id=event_id, text=coloured(text))
        case "display_data" | "execute_result" | "update_display_data":
            data = output.get("data")
            if not isinstance(data, dict):
                return None
            return _figure(event_id, output, data) or _display(event_id, data)
        case _:
            return None


def figure_html(output: JsonValue) -> tuple[str, str]:
    """Return the HTML of a figure that has its library in it, or else the digest of the HTML."""
    data = output.get("data") if isinstance(output, dict) else None
    if not isinstance(output, dict) or not isinstance(data, dict):
        return "", ""
    library, html = _library(output, data), joined(data.get(_HTML))
    if library and is_self_contained(library, html):
        return html, ""
    return "", _reference(output).get("html", "")


def specification_of(output: JsonValue) -> tuple[str, Json, str]:
    """Return library and specification of a figure that is drawn here, or else its digest."""
    data = output.get("data") if isinstance(output, dict) else None
    if not isinstance(output, dict) or not isinstance(data, dict):
        return "", None, ""
    library, drawn = figure_in_output(data)
    if library:
        return library, drawn, ""
    reference = _reference(output)
    return "", None, reference["specification"] if can_be_drawn(reference) else ""


def _installation(library: str) -> str:
    if library == "Bokeh" or figure_libraries.installed():
        return ""
    return (
        f" To have figures of {library} drawn here, an administrator runs: "
        f"{figure_libraries.COMMAND}"
    )


def _figure(
    event_id: int, output: Mapping[str, JsonValue], data: Mapping[str, JsonValue]
) -> Shown | None:
    """Show an interactive figure that has no static form."""
    library = _library(output, data)
    static = any(mime in data for mime in (*IMAGES, _SVG))
    # Without a script, the HTML is a static form itself.
    if not library or static or "<script" not in joined(data.get(_HTML, "<script")):
        return None
    drawable = specification_of(dict(output))
    if any(figure_html(dict(output))) or any(drawable):
        return Shown(
            form=OutputForm.FIGURE, event_id=event_id, renderer=library, height=_FIGURE_HEIGHT
        )
    return Shown(
        form=OutputForm.FIGURE,
        event_id=event_id,
        renderer=library,
        note=f"An interactive figure of {library}, without the library that draws it: see it in "
        f"JupyterLab. A static form (PNG or SVG) would be shown here.{_installation(library)}",
    )


def _library(output: Mapping[str, JsonValue], data: Mapping[str, JsonValue]) -> str:
    named = _reference(output).get("library", "")
    if named in LIBRARIES:
        return named
    texts: dict[str, Json] = dict.fromkeys(data)
    return library_of({**texts, **({_HTML: joined(data[_HTML])} if _HTML in data else {})})


def _reference(output: Mapping[str, JsonValue]) -> Mapping[str, str]:
    metadata = output.get("metadata")
    found = metadata.get(REFERENCE) if isinstance(metadata, dict) else None
    if not isinstance(found, dict):
        return {}
    return {name: value for name, value in found.items() if isinstance(value, str)}


def _display(event_id: int, data: Mapping[str, JsonValue]) -> Shown | None:
    alternative = plain(joined(data.get("text/plain")))
    if any(mime in data for mime in (*IMAGES, _SVG)):
        return Shown(form=OutputForm.IMAGE, event_id=event_id, text=alternative)
    if _HTML in data:
        return Shown(
            form=OutputForm.FRAME,
            event_id=event_id,
            text=alternative,
            height=_frame_height(joined(data[_HTML])),
            note="Scripts do not run here." if "<script" in joined(data[_HTML]) else "",
        )
    for mime in _TEXTS:
        if mime in data:
            left_out = sorted(other for other in data if other not in _TEXTS)
            note = f"Not shown here: {', '.join(left_out)}." if left_out else ""
            text = joined(data[mime])
            if mime in (_MARKDOWN, _LATEX):
                return Shown(
                    form=OutputForm.RICH, event_id=event_id, html=_rich(mime, text), note=note
                )
            return Shown(form=OutputForm.TEXT, event_id=event_id, text=coloured(text), note=note)
    if not data:
        return None
    return Shown(
        form=OutputForm.TEXT, event_id=event_id, note=f"Not shown here: {', '.join(sorted(data))}."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputContent:
    """The response at the URL of an output."""

    mime: str
    data: bytes


def content(output: JsonValue, theme: Theme = "light") -> OutputContent | None:
    """Return the image or HTML of an output; None if it has neither."""
    data = output.get("data") if isinstance(output, dict) else None
    if not isinstance(data, dict):
        return None
    for mime in IMAGES:
        if mime in data:
            try:
                return OutputContent(mime=mime, data=base64.b64decode(joined(data[mime])))
            except ValueError:  # not base64, or not even ASCII
                return None
    if _SVG in data:
        return OutputContent(mime=_SVG, data=joined(data[_SVG]).encode(errors="replace"))
    if _HTML in data:
        page = html_page(joined(data[_HTML]), theme)
        return OutputContent(mime="text/html; charset=utf-8", data=page)
    return None


def html_page(html: str, theme: Theme) -> bytes:
    """Return the page of HTML output, to be sent with the headers ``SANDBOXED`` or ``FIGURE``."""
    page = f"<!doctype html><meta charset=utf-8><style>{output_style(theme)}</style>"
    return (page + html).encode(errors="replace")


def figure_in(notebook: bytes, digest_of_html: str) -> str:
    """Find the HTML of a figure in an output notebook; empty if it is not there."""
    try:
        cells = read_notebook("output", notebook).node.cells
    except InvalidInput:
        return ""
    for cell in cells:
        for output in cell.get("outputs", ()):
            html = output.get("data", {}).get(_HTML)
            if isinstance(html, str) and digest(html) == digest_of_html:
                return html
    return ""


def _rich(mime: str, text: str) -> Markup:
    if mime == _LATEX:
        return latex.output_html(text)
    return markdown_html(text, headings_from=_HEADINGS_FROM)


def settle(text: str) -> tuple[str, bool]:
    """Apply carriage returns as a terminal does, and return whether the text began with one."""
    lines = text.replace("\r\n", "\n").split("\n")
    overwrites = lines[0].startswith("\r")
    return "\n".join(_last(line) for line in lines), overwrites


def join(before: str, after: Shown) -> str:
    """Append an output to the text of its stream."""
    if after.overwrites:
        before = before[: before.rfind("\n") + 1]
    return before + after.text


def _last(line: str) -> str:
    parts = line.split("\r")
    return next((part for part in reversed(parts) if not is_blank(part)), "") or parts[-1]


def _frame_height(html: str) -> int:
    rows = len(_ROW.findall(html))
    least, most = _FRAME_HEIGHTS
    return min(max(least, rows * _ROW_HEIGHT + 24), most) if rows else _PLAIN_FRAME_HEIGHT


def joined(value: object) -> str:
    """Join text that nbformat stores as a list of lines."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return "" if value is None else str(value)
