"""Notebooks and forms for tests of job pages."""

from __future__ import annotations

import json

NOTEBOOK = json.dumps(
    {
        "cells": [
            {
                "cell_type": "code",
                "id": "a",
                "execution_count": None,
                "metadata": {"tags": ["parameters"]},
                "outputs": [],
                "source": "lr = 0.1  # learning rate\nn: int = 3\nfast = True\nx = 2 * 3",
            }
        ],
        "metadata": {"kernelspec": {"name": "python3", "display_name": "P", "language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
)


def chosen(content: str = NOTEBOOK) -> dict[str, tuple[str, str]]:
    return {"notebook": ("train.ipynb", content)}
