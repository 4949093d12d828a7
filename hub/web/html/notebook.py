"""Render a notebook as HTML with nbconvert, for a sandboxed frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jinja2 import BytecodeCache, TemplateError, pass_context
from jinja2.bccache import Bucket
from jinja2.runtime import Context
from markupsafe import Markup
from nbformat import NotebookNode

from ...attempts.figures import HTML
from ...attempts.notebook_format import read_notebook
from ...errors import InvalidInput, TooLarge
from . import latex
from .ansi import ansi_html, coloured
from .drawn_figure import figure_script, place_figures
from .frame_style import Theme, notebook_style
from .markdown import markdown_html

_LATEX = "text/latex"
CellAnchor = Callable[[Mapping[str, object]], str]
"""The name of a cell; empty to keep its id."""
_MOST_BYTES = 4 * 1024 * 1024
_INVALID = (
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    TemplateError,
    InvalidInput,
)


class CompiledTemplates(BytecodeCache):
    """The templates of nbconvert, compiled once: each exporter has an environment of its own."""

    def __init__(self) -> None:
        self._codes: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill a bucket, if its template has been compiled."""
        if found := self._codes.get(bucket.key):
            bucket.bytecode_from_string(found)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template that has just been compiled."""
        self._codes[bucket.key] = bucket.bytecode_to_string()


_COMPILED = CompiledTemplates()


def notebook_page(
    name: str, content: bytes, theme: Theme, nonce: str = "", *, anchor: CellAnchor | None = None
) -> str:
    """Return the notebook as HTML. It may contain scripts: the response must forbid them.

    Args:
        anchor: names cells by their metadata, for links with ``#cell-id=NAME``.
        nonce: with it, figures without a static form are drawn by the script that has it.

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
    exporter.environment.bytecode_cache = _COMPILED
    exporter.register_filter("ansi2html", _printed)  # type: ignore[no-untyped-call]
    exporter.register_filter("markdown2html", _markdown)  # type: ignore[no-untyped-call]
    try:
        placed = place_figures(content) if nonce else None
        node = read_notebook(name, placed or content).node
        _draw_formulas(node)
        if anchor is not None:
            for cell in node.cells:
                cell["id"] = anchor(cell.metadata) or cell["id"]
        body, _ = exporter.from_notebook_node(node)
    # Templates fail on MIME types that have a value of another type.
    except _INVALID as error:
        raise InvalidInput(
            f"{name} cannot be read as a notebook.", accepted="Download the file."
        ) from error
    head = f"<meta charset=utf-8><title>Notebook</title><style>{notebook_style(theme)}</style>"
    script = figure_script(nonce) if placed else ""
    return f"<!doctype html><html lang=en>{head}{body}{script}"


def _printed(text: str) -> Markup:
    return ansi_html(coloured(text))


@pass_context
def _markdown(context: Context, source: str) -> Markup:
    cell = context.get("cell", {})
    return markdown_html(source, cell.get("attachments"))


def _draw_formulas(node: NotebookNode) -> None:
    """Replace LaTeX outputs by MathML: the frame has no script that would draw them."""
    for cell in node.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if isinstance(data.get(_LATEX), str):
                data.setdefault(HTML, str(latex.output_html(data[_LATEX])))
