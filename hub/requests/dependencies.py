"""The jobs that a new job waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import InvalidInput, NotFound
from ..interfaces.store import Store
from ..records.dependencies import Dependency
from ..records.identity import Identity
from ..records.requests import NewRequest
from ..scheduling.model.snapshot import UNTIL_RELEASED, Kind
from .access import RequestAccess


@dataclass(frozen=True, slots=True)
class DependencyCheck:
    """Checks the dependencies of a job that is submitted."""

    store: Store

    def held(self, who: Identity, request: NewRequest, after: Sequence[str]) -> NewRequest:
        """Return the request as one that waits for these jobs; as it is if there are none.

        A job depends on jobs that exist already, so that there is never a cycle.

        Raises:
            InvalidInput: a dependency is malformed, or no job that the caller can see.
        """
        found = dict.fromkeys(str(self._checked(who, text)) for text in after)
        if not found or request.job is None:
            return request
        job = replace(request.job, after=tuple(found))
        return replace(request, job=job, not_before=UNTIL_RELEASED)

    def _checked(self, who: Identity, text: str) -> Dependency:
        dependency = Dependency.parse(text)
        try:
            record = RequestAccess(self.store).visible(who, dependency.job)
        except NotFound as error:
            raise InvalidInput(
                error.message, accepted="The id of a job, as `carrel ps` lists it.", field="after"
            ) from error
        if record.kind is not Kind.JOB:
            raise InvalidInput(
                f"{record.id} is a {record.kind.value}.",
                accepted="The id of a job, as `carrel ps` lists it.",
                field="after",
            )
        return dependency
