"""A teacher's notebook in nbgrader's format: solutions, and tests with a hidden part."""

from __future__ import annotations

import json

ESSAY = {
    "id": "essay",
    "cell_type": "markdown",
    "source": "Why is it 42?",
    "metadata": {
        "nbgrader": {
            "schema_version": 3,
            "grade_id": "essay",
            "points": 3,
            "grade": True,
            "solution": True,
            "locked": False,
            "task": False,
        }
    },
}
"""A question that a person grades."""


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


def assignment(*questions: tuple[str, str, str, str, str]) -> bytes:
    """Return a teacher's notebook, with two points for each question.

    Args:
        questions: name, first line of the function, its solution, visible and hidden check.
    """
    cells = []
    for name, head, solution, visible, hidden in questions:
        body = f"    ### BEGIN SOLUTION\n    {solution}\n    ### END SOLUTION"
        cells.append(_cell(name, f"{head}\n{body}", solution=True))
        secret = f"### BEGIN HIDDEN TESTS\nassert {hidden}\n### END HIDDEN TESTS"
        test = f"assert {visible}\n{secret}"
        cells.append(_cell(f"test-{name}", test, grade=True, locked=True, points=2))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}
    return json.dumps(notebook).encode()


def source(answer: int = 42) -> bytes:
    """Return a notebook with one question."""
    return assignment(
        ("answer", "def answer():", f"return {answer}", "answer() > 0", f"answer() == {answer}")
    )


SOURCE = source()


def with_essay(notebook: bytes) -> bytes:
    """Return the teacher's notebook with a question that a person grades at its end."""
    read = json.loads(notebook)
    read["cells"].append(ESSAY)
    return json.dumps(read).encode()
