"""My jobs as live views, the newest first; jobs submitted later appear by themselves."""

from __future__ import annotations

import threading

import ipywidgets

from ...hub.client import LIVE_STATES, Client
from ...hub.errors import CarrelError, Unavailable
from ...hub.schemas import RequestOut
from ..widgets import JobView

SHOWN = 6
AGAIN_SECONDS = 2.0
_NONE = "You have no job yet. Submit one from a notebook with carrel.SubmitForm()."


class MyJobs(ipywidgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """The live jobs of the reader, filled up with those that have ended last."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._views: dict[str, JobView] = {}
        self._heading = ipywidgets.HTML("<h2>My jobs</h2>")
        self._none = ipywidgets.Label(_NONE)
        self._shown: tuple[ipywidgets.Widget, ...] = (self._heading, self._none)
        super().__init__(self._shown)

    def start(self) -> None:
        threading.Thread(target=self._follow, name="carrel-jobs", daemon=True).start()

    def show(self, jobs: list[RequestOut]) -> None:
        """Keep the views of jobs that stay: nothing on the page flickers."""
        chosen = sorted(jobs, key=lambda job: job.ended)[:SHOWN]
        for gone in self._views.keys() - {job.id for job in chosen}:
            self._views.pop(gone).close()
        for job in chosen:
            if job.id not in self._views:
                self._views[job.id] = JobView(job, client=self._client)
        views = tuple(self._views[job.id] for job in chosen)
        self._lay_out(*(views or (self._none,)))

    def _lay_out(self, *below: ipywidgets.Widget) -> None:
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
                threading.Event().wait(AGAIN_SECONDS)
            except CarrelError as error:
                self._none.value = str(error)
                self._lay_out(self._none)
                return


def my_jobs() -> MyJobs:
    """For whoever runs this; follows the service from now on."""
    made = MyJobs(Client.from_environment())
    made.start()
    return made
