"""Notebooks of code cells, as text and as they are analysed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from carrel.hub.sweeps.cell_analysis import CellAnalysis, NotebookAnalysis, analyse_notebook
from carrel.hub.sweeps.notebook_cells import SweepNotebook, read_sweep_notebook

PARAMETERS = "lr = 0.1\ndepth = 2\nname = 'adam'"


def notebook_text(
    *sources: str,
    parameters: str | None = PARAMETERS,
    at: int = 0,
    tags: Mapping[int, str] = MappingProxyType({}),
) -> str:
    """Return the text of a notebook with these cells, and that of parameters before cell ``at``."""
    cells = [
        (source, [tags[index]] if index in tags else []) for index, source in enumerate(sources)
    ]
    if parameters is not None:
        cells.insert(at, (parameters, ["parameters"]))
    return json.dumps(
        {
            "cells": [
                {"cell_type": "code", "source": source, "metadata": {"tags": own}}
                for source, own in cells
            ],
            "metadata": {"kernelspec": {"name": "python3", "language": "python"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


def notebook(*sources: str, **more: object) -> SweepNotebook:
    return read_sweep_notebook("train.ipynb", notebook_text(*sources, **more))  # type: ignore[arg-type]


def analysed(*sources: str, **more: object) -> NotebookAnalysis:
    return analyse_notebook(notebook(*sources, **more))


def last_cell(*sources: str, tag: str = "") -> CellAnalysis:
    """Return the analysis of the last of these cells, after a cell of parameters."""
    tags = {len(sources) - 1: tag} if tag else {}
    return analysed(*sources, tags=tags).cells[-1]
