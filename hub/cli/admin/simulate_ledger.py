"""The history of the site in a state folder."""

from __future__ import annotations

import time

from ...config.state_folder import StateFolder
from ...simulation.workload.reader import Selection
from ...usage.what_if.site_history import SiteHistory, read_history
from ..common.site_store import site_store


def read_ledger(state: StateFolder, selection: Selection) -> SiteHistory:
    """Read all ended requests with devices.

    Raises:
        InvalidInput: the folder contains no site, or there is nothing to replay.
    """
    with site_store(state) as store:
        return read_history(store, selection, now=time.time())
