"""The desk of courses: everything that people can ask of them, with the rights checked."""

from __future__ import annotations

from .administration.folders import Foldering
from .administration.service import Keeping
from .assignments.service import Handing
from .feedback.service import WritingBack
from .grading_runs.check_service import Checking
from .submissions.service import Taking


class CourseDesk(Keeping, Handing, Taking, Checking, WritingBack, Foldering):
    """Plain blocking functions, called in a thread pool by the web layer.

    Each either does the whole thing or raises a ``CarrelError`` and leaves nothing behind.
    """

    __slots__ = ()
