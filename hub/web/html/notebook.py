"""Render a notebook as HTML with nbconvert, for a sandboxed frame."""

from __future__ import annotations

import nbformat
from jinja2 import TemplateError

from ...errors import InvalidInput, TooLarge
from ...records.json_value import parse_json
from .frame_style import Theme, notebook_style

_MOST_BYTES = 4 * 1024 * 1024
_INVALID = (
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    TemplateError,
    nbformat.ValidationError,
)


def notebook_page(name: str, content: bytes, theme: Theme) -> str:
    """Return the notebook as HTML. It may contain scripts: the response must forbid them.

    Raises:
        TooLarge: rendering would take too long.
        InvalidInput: it is not a valid notebook.
    """
    # nbconvert takes half a second to import; only this page needs it.
    from nbconvert import HTMLExporter  # noqa: PLC0415

    if len(content) > _MOST_BYTES:
        raise TooLarge(
            f"{name} has {len(content) / 2**20:.0f} MiB, which is too large to display.",
            accepted="Download it and open it in JupyterLab.",
        )
    exporter = HTMLExporter(template_name="basic", sanitize_html=False)  # type: ignore[no-untyped-call]
    exporter.embed_images = False
    try:
        text = content.decode("utf-8-sig")
        parse_json(text)  # nbformat does not limit the depth
        node = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
        body, _ = exporter.from_notebook_node(node)
    # nbformat only logs what is invalid, and templates fail on it.
    except _INVALID as error:
        raise InvalidInput(
            f"{name} cannot be read as a notebook.", accepted="Download the file."
        ) from error
    head = f"<meta charset=utf-8><title>Notebook</title><style>{notebook_style(theme)}</style>"
    return f"<!doctype html><html lang=en>{head}{body}"
