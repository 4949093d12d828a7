"""A teacher's notebook in nbgrader's format: one solution, one test with a hidden part."""

from __future__ import annotations

import json


def _cell(grade_id: str, source: str, **role: object) -> dict[str, object]:
    given = {"grade": False, "locked": False, "solution": False, "task": False, **role}
    nbgrader = {"schema_version": 3, "grade_id": grade_id, **given}
    return {
        "id": grade_id,
        "cell_type": "code",
        "metadata": {"nbgrader": nbgrader},
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


def source(answer: int = 42) -> bytes:
    """As a teacher writes it."""
    cells = [
        _cell(
            "answer",
            f"def answer():\n    ### BEGIN SOLUTION\n    return {answer}\n    ### END SOLUTION",
            solution=True,
        ),
        _cell(
            "test-answer",
            f"assert answer() > 0\n### BEGIN HIDDEN TESTS\nassert answer() == {answer}\n"
            "### END HIDDEN TESTS",
            grade=True,
            locked=True,
            points=2,
        ),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}
    return json.dumps(notebook).encode()


SOURCE = source()
