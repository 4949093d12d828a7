"""Sanitize what formgrader shows of students' work.

formgrader shows a notebook's HTML unchanged, on the address of the grader's own server: a script in
it could do whatever the grader can. Here it is reduced to text, pictures and clean HTML; other
submitted files are shown in a browser sandbox, where nothing runs.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

import bleach
from jinja2 import pass_context
from jinja2.runtime import Context
from nbconvert.filters.markdown_mistune import (
    InvalidNotebook,
    IPythonRenderer,
    MarkdownWithMath,
)
from nbconvert.preprocessors import Preprocessor
from nbformat import NotebookNode
from nbgrader.server_extensions.formgrader import handlers

from ...courses.notebooks.ipynb import as_node

_PICTURES: Final = frozenset({"image/png", "image/jpeg"})
_GRADE_ID: Final = re.compile(r"[\w.-]+")
_ROLE: Final = frozenset({"grade", "grade_id", "locked", "points", "solution", "task"})
_METADATA: Final = {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}
_IN_LAB: Final = "frame-ancestors 'self'"
"""JupyterHub forbids framing of a session's pages, but JupyterLab frames formgrader."""
_SANDBOX: Final = (
    f"{_IN_LAB}; sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:"
)
_TAGS: Final = frozenset(
    {
        *("a", "abbr", "b", "blockquote", "br", "caption", "code", "dd", "del", "div", "dl", "dt"),
        *("em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "li", "ol", "p", "pre", "s"),
        *("small", "span", "strong", "sub", "sup", "table", "tbody", "td", "tfoot", "th"),
        *("thead", "tr", "u", "ul"),
    }
)
# Neither id nor class, because formgrader's own scripts use them.
_ATTRIBUTES: Final = {
    "a": ["href", "title"],
    "img": ["src", "alt", "width", "height"],
    "td": ["colspan", "rowspan"],
    "th": ["colspan", "rowspan"],
}
_PROTOCOLS: Final = frozenset({"http", "https", "mailto", "data"})
_STYLE: Final = re.compile(r"<style\b.*?</style\s*>", re.DOTALL | re.IGNORECASE)


def sanitize_formgrader(c: Any) -> None:  # traitlets' configuration: any name is an attribute
    """Make formgrader sanitize notebooks; ``c`` is what ``get_config()`` returns."""
    c.HTMLExporter.preprocessors = [f"{__name__}.HtmlSanitizer"]
    c.HTMLExporter.filters = {"markdown2html": f"{__name__}.clean_markdown"}
    handlers.BaseHandler.content_security_policy = _IN_LAB
    handlers.SubmissionFilesHandler.content_security_policy = _SANDBOX


class HtmlSanitizer(Preprocessor):
    """Removes from a notebook all that formgrader's template would put on the page unchanged.

    A notebook that violates its format, such as a count that is text, is not shown at all.
    """

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, object]
    ) -> tuple[NotebookNode, dict[str, object]]:
        # The language becomes a class name in the page's markup.
        nb.metadata = as_node(deepcopy(_METADATA))
        for cell in nb.cells:
            cell.metadata = as_node(_role(cell.metadata))
            if cell.cell_type == "raw":
                cell.source = html.escape(cell.source)
            if "attachments" in cell:
                safe = {name: _safe_attachment(each) for name, each in cell.attachments.items()}
                cell.attachments = as_node(safe)
            for output in cell.get("outputs", ()):
                if "data" in output:
                    output.metadata = as_node({})
                    output.data = as_node(_safe_data(output.data))
        return nb, resources


@pass_context
def clean_markdown(context: Context, source: str) -> str:
    """Replace nbconvert's own filter: links and HTML cannot run anything."""
    cell = context.get("cell", {})
    renderer = IPythonRenderer(
        escape=False, attachments=cell.get("attachments", {}), exclude_anchor_links=True
    )
    try:
        page = MarkdownWithMath(renderer=renderer).render(source)
    except InvalidNotebook:  # a picture that was not submitted
        page = f"<pre>{html.escape(source)}</pre>"
    return _clean(page)


def _role(metadata: Mapping[str, Any]) -> dict[str, object]:
    """Return nbgrader's metadata of a cell that it knows."""
    role = metadata.get("nbgrader")
    if not isinstance(role, Mapping) or not _GRADE_ID.fullmatch(str(role.get("grade_id", ""))):
        return {}
    return {"nbgrader": {name: role[name] for name in _ROLE & set(role)}}


def _safe_data(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the forms of an output that a page may contain, each sanitized."""
    found = _pictures(data)
    for kind, sanitize in (("text/html", _clean), ("text/latex", html.escape)):
        if isinstance(data.get(kind), str):
            found[kind] = sanitize(data[kind])
    # Filters that escape or clean turn these two into HTML.
    for kind in ("text/plain", "text/markdown"):
        if isinstance(data.get(kind), str):
            found[kind] = data[kind]
    return found


def _clean(text: str) -> str:
    cleaned: str = bleach.clean(
        _STYLE.sub("", text), tags=_TAGS, attributes=_ATTRIBUTES, protocols=_PROTOCOLS
    )
    return cleaned


def _safe_attachment(data: Mapping[str, Any]) -> dict[str, str]:
    return _pictures(data) or {"image/png": ""}


def _pictures(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the pictures that are base64, and thus cannot leave their attribute."""
    return {kind: data[kind] for kind in _PICTURES & set(data) if _is_base64(data[kind])}


def _is_base64(text: object) -> bool:
    if not isinstance(text, str):
        return False
    try:
        base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
