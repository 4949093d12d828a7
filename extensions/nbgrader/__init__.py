"""nbgrader's exchange over Carrel: stock nbgrader works in a session as it is.

Its commands and its extension for JupyterLab ask ``ExchangeFactory`` for what lists, fetches,
submits, collects and releases. In sessions an ``nbgrader_config.py`` on Jupyter's path names the
classes of this package there; elsewhere ``configure(c)`` in one's own does.
"""

from __future__ import annotations

from typing import Any

COURSE_FOLDER = "CARREL_COURSE_FOLDER"
"""Set in the sessions of those who grade: the folder that formgrader shows."""
_HERE = "carrel.extensions.nbgrader"
_CLASSES = {
    "exchange": "exchange.Exchange",
    "list": "exchange_list.ExchangeList",
    "fetch_assignment": "student.ExchangeFetchAssignment",
    "submit": "student.ExchangeSubmit",
    "fetch_feedback": "student.ExchangeFetchFeedback",
    "release_assignment": "instructor.ExchangeReleaseAssignment",
    "collect": "instructor.ExchangeCollect",
    "release_feedback": "instructor.ExchangeReleaseFeedback",
}


def configure(c: Any) -> None:  # traitlets' configuration: any name is an attribute
    """Let nbgrader speak with Carrel; ``c`` is what ``get_config()`` gives."""
    for name, place in _CLASSES.items():
        setattr(c.ExchangeFactory, name, f"{_HERE}.{place}")


def show_course(c: Any, folder: str) -> None:
    """Let formgrader show the course in this folder, whatever the session's own folder is."""
    c.FormgradeExtension.CourseDirectory.root = folder
