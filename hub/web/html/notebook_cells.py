"""The cells of a submitted notebook for the page of its job: highlighted code, rendered Markdown.

The page shows the source of each code cell beside its outputs, and the Markdown before it. A
submitted notebook never changes, so that its cells are cached.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from ...attempts.notebook_format import code_cell_numbers
from ...errors import CarrelError
from ...messages.units import memory
from ...records.json_value import Json, parse_json
from .cell_output import joined
from .markdown import NO_HTML, markdown_html

if TYPE_CHECKING:
    from pygments.lexer import Lexer

_MOST_BYTES = 16 << 20
_MOST_SHOWN = 500_000
"""Characters of sources on a page."""
_MOST_COLOURED = 60_000
"""Characters that are highlighted: Pygments takes about a millisecond for a hundred."""
_HEADINGS_FROM = 4
"""Below the heading of the attempt."""
_REMEMBERED = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeCell:
    """A code cell.

    Attributes:
        html: its source.
        before: the Markdown between the code cell before it and this one.
        hidden: whether the notebook hides the source, which opens with a click, as in JupyterLab.
    """

    html: Markup
    before: Markup = NO_HTML
    hidden: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookCells:
    """The cells of one notebook.

    Attributes:
        code: code cells by number, from 1.
        after: the Markdown after the last code cell.
        note: a sentence, if not all sources are shown.
    """

    code: Mapping[int, CodeCell] = field(default_factory=dict)
    after: Markup = NO_HTML
    note: str = ""


class NotebookCellCache:
    """The cells of the notebooks of the last jobs that were looked at."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[str, NotebookCells] = OrderedDict()

    def of(self, request_id: str, read: Callable[[], bytes]) -> NotebookCells:
        """Return the cells of the notebook that ``read`` returns; none if it cannot be read."""
        with self._lock:
            found = self._found.get(request_id)
            if found is not None:
                self._found.move_to_end(request_id)
                return found
        try:
            found = notebook_cells(read())
        except CarrelError as error:
            return NotebookCells(note=str(error))
        with self._lock:
            self._found[request_id] = found
            while len(self._found) > _REMEMBERED:
                self._found.popitem(last=False)
        return found


def notebook_cells(content: bytes) -> NotebookCells:
    """Return the cells of a notebook that was accepted, and is therefore valid."""
    if len(content) > _MOST_BYTES:
        return NotebookCells(
            note=f"The submitted notebook has {memory(len(content))}: the sources of its cells are "
            "not shown here. They are in the notebook."
        )
    notebook = parse_json(content)
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    found = [cell for cell in cells if isinstance(cell, dict)] if isinstance(cells, list) else []
    return _Reader(_language(notebook)).read(found)


class _Reader:
    """Reads cells until the page has enough."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._shown = 0

    def read(self, cells: Sequence[Mapping[str, Json]]) -> NotebookCells:
        numbers, code = code_cell_numbers(cells), dict[int, CodeCell]()
        before = list[Markup]()
        note = ""
        for index, cell in enumerate(cells):
            source = joined(cell.get("source"))
            self._shown += len(source)
            if self._shown > _MOST_SHOWN:
                note = "The sources of later cells are in the notebook."
                break
            if index in numbers:
                code[numbers[index]] = CodeCell(
                    html=self._code(source),
                    before=Markup("").join(before),
                    hidden=_is_hidden(cell),
                )
                before = []
            elif cell.get("cell_type") == "markdown":
                before.append(_markdown(source, cell.get("attachments")))
        return NotebookCells(code=code, after=Markup("").join(before), note=note)

    def _code(self, source: str) -> Markup:
        lexer = _lexer(self._language) if self._shown <= _MOST_COLOURED else None
        if lexer is None:
            return escape(source)
        # Imported with the lexers; a page without cells needs neither.
        from pygments import highlight  # noqa: PLC0415
        from pygments.formatters import HtmlFormatter  # noqa: PLC0415

        formatter = HtmlFormatter(nowrap=True, classprefix="hl-")
        return Markup(highlight(source, lexer, formatter))  # noqa: S704  # Pygments escapes it


def _is_hidden(cell: Mapping[str, Json]) -> bool:
    """Whether the metadata of a code cell hide its source."""
    metadata = cell.get("metadata")
    jupyter = metadata.get("jupyter") if isinstance(metadata, dict) else None
    hidden = jupyter.get("source_hidden") if isinstance(jupyter, dict) else None
    return cell.get("cell_type") == "code" and hidden is True


def _markdown(source: str, attachments: Json) -> Markup:
    images = {
        name: {mime: joined(data) for mime, data in bundle.items()}
        for name, bundle in (attachments.items() if isinstance(attachments, dict) else ())
        if isinstance(bundle, dict)
    }
    return markdown_html(source, images, headings_from=_HEADINGS_FROM)


@cache
def _lexer(language: str) -> Lexer | None:
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415
    from pygments.util import ClassNotFound  # noqa: PLC0415

    try:
        if language == "python":
            # By its class: a search by name would load every plug-in of this environment.
            from ipython_pygments_lexers import IPython3Lexer  # noqa: PLC0415

            return IPython3Lexer(stripnl=False, ensurenl=False)
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except (ClassNotFound, ImportError):
        return None


def _language(notebook: object) -> str:
    metadata = notebook.get("metadata") if isinstance(notebook, dict) else None
    for place in ("kernelspec", "language_info"):
        found = metadata.get(place) if isinstance(metadata, dict) else None
        name = found.get("language", found.get("name")) if isinstance(found, dict) else None
        if isinstance(name, str) and name:
            return name.lower()
    return "python"
