"""Notebooks that violate the schema and run under Papermill nevertheless (issue 28, item 30)."""

from __future__ import annotations

import json
from typing import Any

KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def code(source: str | list[str] = "print('ran')", **more: object) -> dict[str, Any]:
    cell = {"cell_type": "code", "metadata": {}, "source": source, "outputs": []}
    return cell | {"execution_count": None} | more


def text(*cells: object, minor: int | None = 5, **more: object) -> str:
    """Return the text of a notebook of format 4."""
    made = {"nbformat": 4, "metadata": {"kernelspec": KERNEL}, "cells": list(cells)}
    return json.dumps(made | ({} if minor is None else {"nbformat_minor": minor}) | more)


def _format_3() -> str:
    output = {"output_type": "stream", "stream": "stdout", "text": ["ran\n"]}
    first = {"cell_type": "code", "collapsed": False, "input": ["print('ran')"]}
    cells = [
        {"cell_type": "heading", "level": 2, "metadata": {}, "source": "A title"},
        {**first, "language": "python", "metadata": {}, "outputs": [output], "prompt_number": 1},
        {"cell_type": "code", "input": "1 + 1"},
    ]
    made = {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": "old"}}
    return json.dumps(made | {"worksheets": [{"cells": cells}]})


ODD: dict[str, tuple[str, tuple[str, ...]]] = {
    "format 3": (
        _format_3(),
        (
            "Upgraded from notebook format 3 to 4.5.",
            "Format 3 names no kernel: it runs with python3.",
        ),
    ),
    "format 2": (
        '{"nbformat": 2, "metadata": {}, "worksheets": [{"cells": '
        '[{"cell_type": "code", "input": "print(1)"}]}]}',
        (
            "Upgraded from notebook format 2 to 4.5.",
            "Format 2 names no kernel: it runs with python3.",
        ),
    ),
    "collapsed in a code cell": (
        text(code(id="a", collapsed=True)),
        ("Moved to the metadata of cells: collapsed.",),
    ),
    "an id in format 4.4": (
        text(code(id="a"), minor=4),
        ("Upgraded from notebook format 4.4 to 4.5.",),
    ),
    "a later minor format": (
        text(code(id="a"), minor=9, colour="blue"),
        (
            "Upgraded from notebook format 4.9 to 4.5.",
            "Removed fields that the format does not have: colour.",
        ),
    ),
    "no minor format": (
        text(code(), minor=None),
        ("Added missing fields: nbformat_minor.",),
    ),
    "missing outputs, counts and metadata": (
        text({"cell_type": "code", "source": "print('ran')", "id": "a"}),
        ("Added missing fields: metadata, outputs, execution_count.",),
    ),
    "odd, missing and duplicate ids": (
        text(code(id="a b"), code(id="x"), code(id="x"), code(), code(id=7), code(id="y" * 65)),
        ("New ids for 5 cells: an id must be unique, and of letters, digits, - and _.",),
    ),
    "outputs of a text cell": (
        text({"cell_type": "markdown", "id": "a", "metadata": {}, "source": "hi", "outputs": []}),
        ("Removed fields that the format does not have: outputs.",),
    ),
    "no metadata": (
        text(code(id="a"), metadata={"kernelspec": {"name": "python3"}, "language_info": {}}),
        (
            "Added missing fields: display_name.",
            "Removed 1 entry of metadata that was not valid.",
        ),
    ),
    "broken tags": (
        text(code(id="a", metadata={"tags": ["parameters", "parameters", "a,b", 3], "name": 1})),
        ("Removed 4 entries of metadata that were not valid.",),
    ),
    "broken outputs": (
        text(code(id="a", outputs=[{"output_type": "stream", "text": "x"}, {"text": "x"}, 3])),
        ("Added missing fields: name.", "Removed 2 outputs that were not valid."),
    ),
    "an unknown type of cell": (
        text(code(id="a"), {"cell_type": "sql", "id": "b", "metadata": {}, "source": "select 1"}),
        ("1 cell of an unknown type: kept as raw text.",),
    ),
    "half a character": (
        text(code("print('ran') # \ud800", id="a b")),
        ("New ids for 1 cell: an id must be unique, and of letters, digits, - and _.",),
    ),
}
"""Texts of notebooks, with the sentences that say what is repaired."""

BROKEN: dict[str, tuple[str, str]] = {
    "no JSON": ("import torch", "is not a notebook: it is not JSON"),
    "a list": ("[1]", "is not a notebook."),
    "no version": ('{"cells": []}', "is not a notebook."),
    "no cells": ('{"nbformat": 4}', "is not a notebook."),
    "too deep": ('{"cells":' + "[" * 200 + "]" * 200 + "}", "cannot be read as a notebook: it is"),
    "format 5": (text(nbformat=5), "has notebook format 5, which is newer"),
    "no cell": (text(3), "is not a valid notebook: it does not have the form of a notebook."),
    "a code cell without source": (
        text({"cell_type": "code", "metadata": {}}),
        "is not a valid notebook: 'source' is a required property",
    ),
    "a number as source": (text(code() | {"source": 5}), "is not a valid notebook: 5 is not valid"),
    "worksheets without cells": (
        '{"nbformat": 3, "worksheets": [{}]}',
        "is not a valid notebook: it does not have the form of a notebook.",
    ),
}
"""Texts that are refused, with a part of the sentence."""
