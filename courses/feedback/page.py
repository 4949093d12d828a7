"""Write feedback pages with nbgrader's own template, without scripts and hidden tests."""

from __future__ import annotations

import html
import re
import threading
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Final

import nbgrader
from nbconvert.exporters import HTMLExporter
from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbconvert.preprocessors.sanitize import SanitizeHTML
from nbformat import NotebookNode
from nbgrader.preprocessors import GetGrades
from traitlets.config import Config

from ...hub.messages import units
from ..grading.answer_key import NotebookKey
from ..notebooks import ipynb

_FORMGRADER: Final = Path(nbgrader.__file__).parent / "server_extensions/formgrader"
_SCRIPT: Final = re.compile(r"<script\b.*?</script\s*>", re.DOTALL | re.IGNORECASE)
_BODY: Final = re.compile(r"<body\b[^>]*>", re.IGNORECASE)
_FONT: Final = re.compile(r"@font-face\s*\{[^}]*\}")
_LINK: Final = re.compile(r"""\b(href|src)\s*=\s*("[^"]*"|'[^']*'|[^\s>"']+)""", re.IGNORECASE)
_SAFE_SCHEMES: Final = ("http://", "https://", "mailto:", "data:image/png;", "data:image/jpeg;")
_POLICY: Final = (
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    "style-src 'unsafe-inline'; img-src data:; font-src data:\">"
)
_ONE_BY_ONE: Final = threading.Lock()
"""Held while a page is written: the exporter stores its notebook."""


def feedback_page(
    node: NotebookNode,
    key: NotebookKey,
    *,
    assignment: str,
    student: str,
    gradebook: str,
    sentences: Mapping[str, str],
    provisional: int = 0,
) -> str:
    """The page of one graded notebook, with scores and comments of the gradebook at this URL.

    ``sentences`` of the verdicts, by cell, replace the outputs of hidden tests. ``provisional`` is
    the number of cells that wait for a person.
    """
    role = {
        "student": student,
        "assignment": assignment,
        "notebook": key.name,
        "db_url": gradebook,
    }
    shown = deepcopy(node)
    for cell in shown.cells:
        _conceal(cell, key, sentences)
    shown, resources = GetGrades().preprocess(shown, {"nbgrader": role})
    with _ONE_BY_ONE:
        page, _ = _exporter().from_notebook_node(shown, resources=resources)
    page = _LINK.sub(_harmless, _SCRIPT.sub("", page))
    if provisional:
        said = (
            f'<p class="alert alert-warning">These points are {units.provisional(provisional)}.</p>'
        )
        page = _BODY.sub(lambda body: f"{body[0]}\n{said}", page, count=1)
    # Icon fonts, from hosts that the page's policy blocks.
    head, end, body = page.partition("</head>")
    return f"{_FONT.sub('', head)}{end}{body}".replace("<head>", f"<head>\n{_POLICY}", 1)


def _harmless(link: re.Match[str]) -> str:
    """The link, or ``#`` for an address that could run code."""
    address = html.unescape(link[2].strip("\"'"))
    plain = "".join(char for char in address if char.isprintable()).strip().lower()
    relative = ":" not in plain.partition("/")[0]
    return link[0] if relative or plain.startswith(_SAFE_SCHEMES) else f'{link[1]}="#"'


def _conceal(cell: NotebookNode, key: NotebookKey, sentences: Mapping[str, str]) -> None:
    """Show the visible form of a hidden test, with the sentence of its verdict."""
    grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
    known = key.by_id.get(grade_id)
    # Tags and other metadata would end up in the page's markup.
    cell.metadata = ipynb.as_node({k: v for k, v in cell.metadata.items() if k == "nbgrader"})
    if known is None or not known.has_hidden_part:
        return
    cell.source = known.visible
    sentence = sentences.get(grade_id, "")
    said = {"output_type": "stream", "name": "stdout", "text": f"{sentence}\n"}
    cell.outputs = [ipynb.as_node(said)] if sentence else []


@cache  # compiling its templates is slow
def _exporter() -> HTMLExporter:
    config = Config()
    config.Exporter.default_preprocessors = []
    config.HTMLExporter.template_name = "feedback"
    config.HTMLExporter.sanitize_html = True
    config.HTMLExporter.extra_template_basedirs = [str(_FORMGRADER / "templates")]
    styles = _FORMGRADER / "static/node_modules/bootstrap/dist/css"
    config.HTMLExporter.extra_template_paths = [str(styles)]
    exporter = HTMLExporter(config=config)  # type: ignore[no-untyped-call]
    for step in (SanitizeHTML, CSSHTMLHeaderPreprocessor):
        exporter.register_preprocessor(step, enabled=True)  # type: ignore[no-untyped-call]
    return exporter
