"""nbgrader's configuration in sessions: the exchange is Carrel's, formgrader shows the course."""

import os

from carrel.extensions.nbgrader import COURSE_FOLDER, configure, show_course
from carrel.extensions.nbgrader.html_sanitizer import sanitize_formgrader

c = get_config()  # type: ignore[name-defined]  # noqa: F821  # nbgrader puts it here
configure(c)
sanitize_formgrader(c)
if folder := os.environ.get(COURSE_FOLDER):
    show_course(c, folder)
