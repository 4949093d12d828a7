"""The live view of a sweep."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import traitlets
from pydantic import JsonValue

from ...hub.client import Client
from ...hub.errors import CarrelError, NotFound
from ..trial_frame import trial_frame
from .stream_feeds import FedState
from .sweep_state import SweepViewState
from .views import HasId, JobView, view_script

if TYPE_CHECKING:
    import pandas

_LOOKED_AT = 100
"""Of the newest jobs, to find a sweep."""


class SweepView(JobView):
    """A live view of a sweep: its trials, the best so far, and parallel coordinates.

    >>> view = carrel.SweepView(sweep)
    >>> view.frame()

    Its buttons stop a trial, or cancel the sweep; *What trials share* draws the stages. The
    arguments are those of ``JobView``; by default it shows your newest sweep.
    """

    _esm = view_script("plots.js", "job_parts.js", "sweep.js")

    sweep = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)
    sharing = traitlets.Unicode("").tag(sync=True)
    """What the trials share, as text; empty until it was asked for."""

    def stop_trial(self, number: int) -> None:
        """Stop one trial for good; the others go on, and the view shows how it ends."""
        self.refused = ""
        name = "carrel-stop-trial"
        threading.Thread(target=self._stop_trial, args=(number,), name=name, daemon=True).start()

    def ask_sharing(self) -> None:
        """Fetch what the trials share: only opening it does, since the notebook is analysed."""
        threading.Thread(target=self._fetch_sharing, name="carrel-sharing", daemon=True).start()

    def frame(self) -> pandas.DataFrame:
        """Return the trials as they are now, one line each: what ``job.frame()`` returns."""
        return trial_frame(self._client.trials(self.request_id))

    def _stop_trial(self, number: int) -> None:
        try:
            self._client.stop_trial(self.request_id, number)
        except CarrelError as error:
            self.refused = str(error)
            return
        if self._feed is not None and isinstance(self._feed.state, SweepViewState):
            self._feed.state.refresh()

    def _fetch_sharing(self) -> None:
        try:
            self.sharing = str(self._client.sharing(self.request_id))
        except CarrelError as error:
            self.sharing = str(error)

    def _state_of(self, client: Client) -> FedState:
        return SweepViewState(client, self.request_id)

    @staticmethod
    def _newest(client: Client) -> HasId:
        jobs = client.requests(kind="job", limit=_LOOKED_AT)
        found = next((job for job in jobs if job.sweep is not None), None)
        if found is None:
            raise NotFound(
                f"None of your newest {_LOOKED_AT} jobs is a sweep.",
                accepted="Submit one with carrel.sweep(), or pass the job or its id.",
            )
        return found

    def _handle_message(
        self, widget: object, content: dict[str, JsonValue], buffers: object
    ) -> None:
        number = content.get("number")
        if content.get("do") == "stop" and isinstance(number, int):
            self.stop_trial(number)
        elif content.get("do") == "sharing":
            self.ask_sharing()
        else:
            super()._handle_message(widget, content, buffers)
