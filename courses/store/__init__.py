"""Store courses in the database of the service: ``SqlCourseStore``."""

from .sql import SqlCourseStore

__all__ = ["SqlCourseStore"]
