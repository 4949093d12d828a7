"""The desk of courses: everything that people can ask of them, with the rights checked."""

from __future__ import annotations

from .administration.folders import CourseFolders
from .administration.service import CourseAdministration
from .assignments.service import AssignmentService
from .feedback.service import FeedbackService
from .grading_runs.check_service import CheckService
from .submissions.service import SubmissionService


class CourseServices(
    CourseAdministration,
    AssignmentService,
    SubmissionService,
    CheckService,
    FeedbackService,
    CourseFolders,
):
    """Plain blocking functions, called in a thread pool by the web layer.

    Each either does the whole thing or raises a ``CarrelError`` and leaves nothing behind.
    """

    __slots__ = ()
