"""Whose sessions see the folders of which courses, and that these are there."""

from __future__ import annotations

from ...hub.errors import Unavailable
from ..files.course_folder import SOURCE, add_source, make
from ..files.transfer import contents
from ..roster.access import GRADED_BY, CourseAccess


class CourseFolders(CourseAccess):
    """The part of ``CourseDesk`` about the folders of courses."""

    __slots__ = ()

    def graded_by(self, person: str) -> tuple[str, ...]:
        """The courses that somebody teaches or grades, by name, with their folders made.

        An administrator who does neither sees none of them.

        Raises:
            Unavailable: a folder cannot be made.
        """
        taught = set(self.commands.store.taught_by(person))
        graded = {
            each.course
            for each in self.store.memberships(person)
            if each.role in GRADED_BY and each.left_at is None
        }
        found = [each.name for each in self.store.courses() if each.name in taught | graded]
        for course in found:
            self._make(course)
        return tuple(found)

    def _make(self, course: str) -> None:
        folder = self.folder_of(course)
        if folder is None:
            return
        try:
            make(folder, course, self.owner)
            for each in self.store.assignments(course):
                if each.version and not (folder / SOURCE / each.name).exists():
                    made = self.store.hand_out(course, each.name)
                    add_source(folder, each.name, contents(self.blobs, made.source.files))
        except OSError as error:
            raise Unavailable(f"The folder of {course} cannot be made: {error}.") from error
