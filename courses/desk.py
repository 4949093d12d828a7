"""The desk of courses: everything that people can ask of them, with the rights checked."""

from __future__ import annotations

from .handing import Handing
from .keeping import Keeping
from .returning import Returning
from .taking import Taking
from .writing_back import WritingBack


class CourseDesk(Keeping, Handing, Taking, WritingBack, Returning):
    """Plain blocking functions, called in a thread pool by the web layer.

    Each either does the whole thing or raises a ``CarrelError`` and leaves nothing behind.
    """

    __slots__ = ()
