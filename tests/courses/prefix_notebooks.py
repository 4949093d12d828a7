"""Notebooks of an assignment, with cells that are given and cells that students edit."""

from __future__ import annotations

import json

_CELL = {"schema_version": 3, "grade_id": "answer", "locked": False, "task": False}
ANSWER = {"nbgrader": {**_CELL, "solution": True, "grade": False}}
TEST = {"nbgrader": {**_CELL, "solution": False, "grade": True, "points": 1}}
PYTHON = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}


def text(*cells: str | tuple[str, dict[str, object]]) -> str:
    """Return a notebook with a title and these code cells, some with metadata."""
    pairs = [(cell, {}) if isinstance(cell, str) else cell for cell in cells]
    return json.dumps(
        {
            "cells": [
                {"cell_type": "markdown", "id": "title", "source": "# ps1", "metadata": {}},
                *(
                    {
                        "cell_type": "code",
                        "id": f"cell-{number}",
                        "source": source,
                        "metadata": metadata,
                        "outputs": [],
                        "execution_count": None,
                    }
                    for number, (source, metadata) in enumerate(pairs)
                ),
            ],
            "metadata": PYTHON,
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )
