"""What a button opens in JupyterLab: an assignment, or the output of a job and a cell of it.

Carrel's extension of JupyterLab reads it from the address, copies the files into the home without
overwriting, and opens them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from ....extensions.environment import LOG_VIEWER_PATHS
from ...errors import InvalidInput
from ...records.identity import Identity
from ...requests.queries import RequestQueries
from ...schemas import RequestOut
from ..html.urls import server_url

_CELL = re.compile(r"[1-9][0-9]{0,5}")
_LONGEST = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class LabTarget:
    """An assignment of a course, or a job.

    Attributes:
        cell: number of a code cell of the job's notebook, as pages show it; empty for none.
        view: name of the program that opens the logs of the job; empty for its output.
    """

    course: str = ""
    assignment: str = ""
    job: str = ""
    cell: str = ""
    view: str = ""

    @classmethod
    def filled(cls, fields: Mapping[str, str]) -> LabTarget:
        """Read the fields of the button.

        Raises:
            InvalidInput: they name neither an assignment nor a job.
        """
        course, assignment, job, cell = (
            fields.get(name, "").strip()[:_LONGEST]
            for name in ("course", "assignment", "job", "cell")
        )
        if job:
            view = fields.get("view", "")
            return cls(
                job=job,
                cell=cell if _CELL.fullmatch(cell) else "",
                view=view if view in LOG_VIEWER_PATHS else "",
            )
        if course and assignment:
            return cls(course=course, assignment=assignment)
        raise InvalidInput(
            "The page does not say what to open in JupyterLab.",
            accepted="An assignment with its course, or a job.",
        )

    def url(self, owner: str, server_name: str) -> str:
        """Return the address in a session of the owner."""
        server = server_url(owner, server_name)
        if self.view:
            return f"{server}{LOG_VIEWER_PATHS[self.view]}?{urlencode({'job': self.job})}"
        named = {
            "carrel-course": self.course,
            "carrel-assignment": self.assignment,
            "carrel-job": self.job,
            "carrel-cell": self.cell,
        }
        query = urlencode({name: value for name, value in named.items() if value})
        return f"{server}lab?{query}"

    def group(self, requests: RequestQueries, who: Identity) -> str:
        """Return the group of a new session: that of the course, or of the job.

        Raises:
            NotFound: the job does not exist, or the user may not see it.
        """
        return requests.request(who, self.job).group if self.job else self.course


def session_for_lab(live: Sequence[RequestOut]) -> RequestOut | None:
    """Select the session in which to open a file; None if there is none to use.

    1. a running one before one that starts or is queued; none that stops
    2. the default session
    3. the newest
    """
    usable = [each for each in live if each.state != "stopping" and not each.claim]
    order = {"running": 0, "starting": 1, "granted": 1}
    return min(
        usable,
        key=lambda it: (order.get(it.state, 2), it.server_name != "", -it.submitted_at, it.id),
        default=None,
    )
