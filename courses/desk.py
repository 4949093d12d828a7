"""The desk of courses: everything that people can ask of them, with the rights checked."""

from __future__ import annotations

from .checking import Checking
from .foldering import Foldering
from .handing import Handing
from .keeping import Keeping
from .taking import Taking
from .writing_back import WritingBack


class CourseDesk(Keeping, Handing, Taking, Checking, WritingBack, Foldering):
    """Plain blocking functions, called in a thread pool by the web layer.

    Each either does the whole thing or raises a ``CarrelError`` and leaves nothing behind.
    """

    __slots__ = ()
