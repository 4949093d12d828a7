"""The port to stored schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..records.schedules import Schedule


class ScheduleStore(Protocol):
    """The part of the store for schedules; see ``hub.interfaces.store``."""

    def add_schedule(self, new: Schedule, job: str, *, most: int) -> Schedule:
        """Store a schedule with the JSON text of its job.

        The same idempotency key of the same owner returns the first schedule.

        Raises:
            OverMaximum: the owner has ``most`` schedules.
        """

    def schedule(self, schedule_id: str) -> Schedule:
        """Return a schedule. Raises NotFound."""

    def schedule_job(self, schedule_id: str) -> str:
        """Return the JSON text of the job of a schedule. Raises NotFound."""

    def schedules(self, owner: str) -> tuple[Schedule, ...]:
        """Return the schedules of a user, oldest first."""

    def schedules_of_course(self, course: str) -> tuple[Schedule, ...]:
        """Return the schedules of a course's rehearsals, of all owners, oldest first."""

    def due_schedules(self, now: float) -> tuple[Schedule, ...]:
        """Return the active schedules whose next time has come, the longest due first."""

    def update_schedule(self, schedule_id: str, change: Callable[[Schedule], Schedule]) -> Schedule:
        """Replace a schedule by the result of ``change``, and return it. Raises NotFound."""

    def remove_schedule(self, schedule_id: str) -> bool:
        """Delete a schedule; return whether there was one."""

    def remove_schedules_of(self, owner: str) -> int:
        """Delete the schedules of a user's jobs; return how many there were.

        Those of a course's rehearsals stay: the service pauses them at their next time.
        """
