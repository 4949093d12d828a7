"""Create the folders of courses that teachers and graders see in their sessions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...hub.errors import Unavailable
from ...hub.files.safe_fs import Owner
from ..files.course_folder import SOURCE, add_source, folder_of, make
from ..files.transfer import contents
from ..model.interfaces import Blobs
from ..roster.access import GRADERS, CourseAccess


@dataclass(frozen=True, slots=True)
class CourseFolders:
    """Attributes:
    root: the folder of all courses; None where nothing is graded.
    owner: the account that sessions run as, where that is not the service's.
    """

    access: CourseAccess
    blobs: Blobs
    root: Path | None = None
    owner: Owner | None = None

    def prepare_for(self, person: str) -> tuple[str, ...]:
        """Create the folders of all courses that a user teaches or grades; returns their names.

        An administrator who does neither sees none of them.

        Raises:
            Unavailable: a folder cannot be created.
        """
        store = self.access.store
        taught = set(self.access.context.store.taught_by(person))
        graded = {
            each.course
            for each in store.memberships(person)
            if each.role in GRADERS and each.left_at is None
        }
        found = [each.name for each in store.courses() if each.name in taught | graded]
        for course in found:
            self._create(course)
        return tuple(found)

    def _create(self, course: str) -> None:
        folder, store = folder_of(self.root, course), self.access.store
        if folder is None:
            return
        try:
            make(folder, course, self.owner)
            for each in store.assignments(course):
                if each.version and not (folder / SOURCE / each.name).exists():
                    made = store.released_version(course, each.name)
                    add_source(folder, each.name, contents(self.blobs, made.source.files))
        except OSError as error:
            raise Unavailable(f"The folder of {course} cannot be created: {error}.") from error
