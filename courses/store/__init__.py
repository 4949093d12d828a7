"""What courses remember: ``SqlCourseStore`` for real, ``MemoryCourseStore`` for tests."""

from __future__ import annotations

from .memory import MemoryCourseStore
from .sql import SqlCourseStore

__all__ = ["MemoryCourseStore", "SqlCourseStore"]
