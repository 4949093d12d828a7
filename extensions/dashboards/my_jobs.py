"""Show the user's jobs as live views, newest first; new jobs appear automatically."""

from __future__ import annotations

import threading

import ipywidgets

from ...hub.client import LIVE_STATES, Client
from ...hub.errors import CarrelError, Unavailable
from ...hub.schemas import RequestOut
from ..widgets import JobView

SHOWN = 6
RETRY_SECONDS = 2.0
_EMPTY = "You have no jobs yet. Submit one from a notebook with carrel.SubmitForm()."


class MyJobs(ipywidgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """The user's live jobs, followed by those that ended most recently."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._views: dict[str, JobView] = {}
        self._heading = ipywidgets.HTML("<h2>My jobs</h2>")
        self._empty = ipywidgets.Label(_EMPTY)
        self._shown: tuple[ipywidgets.Widget, ...] = (self._heading, self._empty)
        super().__init__(self._shown)

    def start(self) -> None:
        threading.Thread(target=self._follow, name="carrel-jobs", daemon=True).start()

    def show(self, jobs: list[RequestOut]) -> None:
        """Show these jobs; views of jobs that stay are kept, so that the page does not flicker."""
        chosen = sorted(jobs, key=lambda job: job.ended)[:SHOWN]
        for gone in self._views.keys() - {job.id for job in chosen}:
            self._views.pop(gone).close()
        for job in chosen:
            if job.id not in self._views:
                self._views[job.id] = JobView(job, client=self._client)
        views = tuple(self._views[job.id] for job in chosen)
        self._set_children(*(views or (self._empty,)))

    def _set_children(self, *below: ipywidgets.Widget) -> None:
        shown = (self._heading, *below)
        if shown != self._shown:
            self._shown = shown
            self.children = shown

    def _follow(self) -> None:
        while True:
            try:
                for _ in self._client.changes():
                    live = self._client.requests(kind="job", states=LIVE_STATES, limit=SHOWN)
                    newest = self._client.requests(kind="job", limit=SHOWN)
                    known = {job.id: job for job in (*live, *newest)}
                    self.show(sorted(known.values(), key=lambda job: -job.submitted_at))
            except Unavailable:
                threading.Event().wait(RETRY_SECONDS)
            except CarrelError as error:
                self._empty.value = str(error)
                self._set_children(self._empty)
                return


def my_jobs() -> MyJobs:
    """Return the jobs of the user who runs this, and follow them."""
    made = MyJobs(Client.from_environment())
    made.start()
    return made
