"""Exit statuses for the results of requests."""

from __future__ import annotations

from collections.abc import Sequence

from ...schemas import RequestOut

SUCCEEDED, FAILED, USAGE, CANCELLED, TIMED_OUT, STILL_RUNNING, NO_ANSWER = range(7)
STATUS_HELP = """\b
Exit status:
  0  all succeeded
  1  one failed
  2  invalid usage
  3  one was cancelled
  4  one reached its time limit
  5  --timeout passed before all ended
  6  refused, request not found, or Carrel is not responding"""

_BY_STATE = {"succeeded": SUCCEEDED, "cancelled": CANCELLED, "timed_out": TIMED_OUT}
_WORST_FIRST = (FAILED, TIMED_OUT, CANCELLED, SUCCEEDED)


def exit_status(ends: Sequence[RequestOut]) -> int:
    """Return the worst result: failed, then timed out, then cancelled."""
    found = {_BY_STATE.get(request.state, FAILED) for request in ends}
    return next((status for status in _WORST_FIRST if status in found), SUCCEEDED)
