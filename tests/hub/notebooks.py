"""Small notebooks for tests."""

from __future__ import annotations

import json

from nbformat.v4 import new_code_cell, new_notebook


def notebook(
    *cells: str, parameters: str | None = "lr = 0.1\nepochs = 3", **changes: object
) -> str:
    """Return the text of a notebook with a parameters cell (unless None) and these code cells."""
    made = new_notebook(
        metadata={
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python"},
        }
    )
    if parameters is not None:
        made.cells.append(new_code_cell(parameters, metadata={"tags": ["parameters"]}))
    made.cells.extend(new_code_cell(cell) for cell in cells)
    return json.dumps({**made, **changes})
