"""Submitted HTML cannot act as the grader in formgrader."""

from __future__ import annotations

import nbformat
import pytest
from nbconvert.exporters import HTMLExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell
from nbgrader.server_extensions.formgrader import handlers
from nbgrader.server_extensions.formgrader.formgrader import FormgradeExtension
from traitlets.config import Config

from carrel.extensions import environment
from carrel.extensions.nbgrader.html_sanitizer import sanitize_formgrader

PIXEL = "iVBORw0KGgo="
ATTACK = "<script>alert(1)</script><img src=x onerror=alert(2)>"
BROKEN_OUT = f'"><img src=x onerror=alert(3)>{ATTACK}'
TABLE = "<style>b {}</style><table><td>7</td></table>"
RESOURCES = {
    **dict.fromkeys(("base_url", "student", "last_name", "first_name", "notebook_path"), ""),
    "assignment_id": "ps1",
    "notebook_id": "p",
    "submission_id": "s",
    "index": 0,
    "total": 1,
}


def shown(notebook: nbformat.NotebookNode, config: Config) -> str:
    """The page that formgrader makes of it."""
    made = FormgradeExtension()
    config.merge(made.build_extra_config())
    page, _ = HTMLExporter(config=config).from_notebook_node(notebook, resources=dict(RESOURCES))
    return str(page)


@pytest.fixture
def tamed() -> Config:
    config = Config()
    sanitize_formgrader(config)
    return config


def outputs(kind: str, value: object) -> nbformat.NotebookNode:
    output = new_output("display_data", {kind: value}, metadata={kind: {"width": BROKEN_OUT}})
    return new_notebook(cells=[new_code_cell("x", outputs=[output])])


HOSTILE = {
    "html": outputs("text/html", ATTACK),
    "javascript": outputs("application/javascript", "alert(1)"),
    "svg": outputs("image/svg+xml", '<svg onload="alert(1)"/>'),
    "markdown": outputs("text/markdown", ATTACK),
    "latex": outputs("text/latex", ATTACK),
    "picture": outputs("image/png", BROKEN_OUT),
    "width": outputs("image/png", PIXEL),
    "widget": outputs("application/vnd.jupyter.widget-view+json", {"model_id": BROKEN_OUT}),
    "words": new_notebook(cells=[new_markdown_cell(ATTACK)]),
    "link": new_notebook(cells=[new_markdown_cell("[x](javascript:alert(1))")]),
    "raw": new_notebook(
        cells=[new_raw_cell(ATTACK, metadata={"raw_mimetype": "text/html"})],
    ),
    "tag": new_notebook(cells=[new_code_cell("x", metadata={"tags": [BROKEN_OUT]})]),
    "language of a cell": new_notebook(
        cells=[new_code_cell("x", metadata={"magics_language": BROKEN_OUT})]
    ),
    "language": new_notebook(
        cells=[new_code_cell("x")],
        metadata={"language_info": {"name": "x", "pygments_lexer": BROKEN_OUT}},
    ),
    "id": new_notebook(
        cells=[
            new_code_cell(
                "x", metadata={"nbgrader": {"grade_id": BROKEN_OUT, "grade": True, "points": 1}}
            )
        ]
    ),
    "attachment": new_notebook(
        cells=[
            new_markdown_cell(
                "![x](attachment:a.png)", attachments={"a.png": {"image/png": BROKEN_OUT}}
            )
        ]
    ),
    "attachment of another kind": new_notebook(
        cells=[
            new_markdown_cell(
                "![x](attachment:a.png)", attachments={"a.png": {"text/html": ATTACK}}
            )
        ]
    ),
    "attachment that is missing": new_notebook(
        cells=[new_markdown_cell(f"![x](attachment:b.png) {ATTACK}")]
    ),
    "source": new_notebook(cells=[new_code_cell(ATTACK)]),
}
OWN = shown(new_notebook(), Config())
"""The page of an empty notebook, with the scripts of formgrader itself."""


@pytest.mark.parametrize("way", HOSTILE)
def test_no_code_of_a_student_runs(way: str, tamed: Config) -> None:
    page = shown(HOSTILE[way], tamed)
    assert page.count("<script") == OWN.count("<script")
    for mark in ("<img src=x", "<svg", 'href="javascript:', "<iframe"):
        assert mark not in page


@pytest.mark.parametrize("way", ["html", "javascript", "words", "id"])
def test_without_the_sanitizer_code_would_run(way: str) -> None:
    page = shown(HOSTILE[way], Config())
    assert page.count("<script") > OWN.count("<script")


def test_a_grader_sees_the_work(tamed: Config) -> None:
    role = {"grade_id": "essay", "grade": True, "solution": True, "points": 3, "schema_version": 3}
    cells = [
        new_markdown_cell("My *answer*", metadata={"nbgrader": role}),
        new_code_cell(
            "1 + 1",
            outputs=[
                new_output("stream", text="said <b>\n"),
                new_output("display_data", {"image/png": PIXEL}),
                new_output(
                    "display_data", {"text/html": "<style>b {}</style><table><td>7</td></table>"}
                ),
            ],
        ),
    ]
    page = shown(new_notebook(cells=cells), tamed)
    assert "b {}" not in page
    assert "My <em>answer</em>" in page
    assert 'id="essay"' in page
    assert 'id="essay-comment"' in page
    assert f"data:image/png;base64,{PIXEL}" in page
    assert "said &lt;b&gt;" in page
    assert "<td>7</td>" in page


def test_other_files_of_students_are_shown_in_a_sandbox(tamed: Config) -> None:
    assert tamed
    assert "sandbox;" in handlers.SubmissionFilesHandler.content_security_policy


def test_the_configuration_of_sessions_is_this_one() -> None:
    text = (environment.NBGRADER / "etc" / "nbgrader_config.py").read_text()
    assert "sanitize_formgrader(c)" in text
