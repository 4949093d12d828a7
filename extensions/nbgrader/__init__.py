"""nbgrader's exchange over Carrel: unmodified nbgrader works in a session.

nbgrader's commands and its JupyterLab extension ask ``ExchangeFactory`` for the classes that list,
fetch, submit, collect and release. In sessions, an ``nbgrader_config.py`` on Jupyter's path sets
the classes of this package; elsewhere call ``configure(c)`` in your own.
"""

from __future__ import annotations

from typing import Any

COURSE_FOLDER = "CARREL_COURSE_FOLDER"
"""Set in the sessions of graders: the folder that formgrader shows."""
GRADES_NO_COURSE = "CARREL_GRADES_NO_COURSE"
"""Set in the sessions of other users: JupyterLab hides nbgrader's parts for teachers."""
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
    """Make nbgrader use Carrel; ``c`` is what ``get_config()`` returns."""
    for name, place in _CLASSES.items():
        setattr(c.ExchangeFactory, name, f"{_HERE}.{place}")


def show_course(c: Any, folder: str) -> None:
    """Make formgrader show the course in this folder, whatever the session's working folder is."""
    c.FormgradeExtension.CourseDirectory.root = folder
