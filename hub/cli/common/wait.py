"""Wait for requests in a terminal, and return their result as the exit status."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ...client import Client
from ...client.job_watch import JobUpdate, follow_all
from ...schemas import RequestOut
from . import exit_status
from .progress import JsonProgressPrinter, LineProgressPrinter, ProgressPrinter


def wait_for(
    client: Client,
    request_ids: Sequence[str],
    timeout: float | None,
    as_json: bool,
    *,
    follow: bool = False,
) -> int:
    """Print changes until all requests have ended; return the exit status of the worst result.

    ``follow``: also print cells, outputs and logs. ``timeout`` is in seconds.
    """
    wanted = list(dict.fromkeys(request_ids))
    latest = {request_id: client.request(request_id) for request_id in wanted}
    printer = _printer(as_json=as_json, follow=follow, several=len(wanted) > 1)
    try:
        for request in latest.values():
            printer.show(JobUpdate(request_id=request.id, item=request))
        # The output of a command is its log; the output of a notebook is in its cells.
        logs = [each.id for each in latest.values() if follow and each.command]
        for change in follow_all(client, wanted, timeout, logs_of=logs):
            if isinstance(change.item, RequestOut):
                if change.item == latest[change.request_id]:
                    continue
                latest[change.request_id] = change.item
            printer.show(change)
    finally:
        printer.close()
    if not all(request.ended for request in latest.values()):
        return exit_status.STILL_RUNNING
    return exit_status.exit_status(list(latest.values()))


def _printer(*, as_json: bool, follow: bool, several: bool) -> ProgressPrinter:
    if as_json:
        return JsonProgressPrinter(events=follow)
    live = sys.stdout if sys.stdout.isatty() else None
    return LineProgressPrinter(events=follow, several=several, live=live)
