"""nbgrader's exchange over Carrel: stock nbgrader works in a session as it is.

Its commands and its extension for JupyterLab ask ``ExchangeFactory`` for what lists, fetches,
submits, collects and releases. In sessions an ``nbgrader_config.py`` on Jupyter's path names the
classes of this package there; elsewhere ``configure(c)`` in one's own does.
"""

from __future__ import annotations

from typing import Any

_HERE = "carrel.extensions.nbgrader"
_CLASSES = {
    "exchange": "exchange.Exchange",
    "list": "listing.ExchangeList",
    "fetch_assignment": "studying.ExchangeFetchAssignment",
    "submit": "studying.ExchangeSubmit",
    "fetch_feedback": "studying.ExchangeFetchFeedback",
    "release_assignment": "teaching.ExchangeReleaseAssignment",
    "collect": "teaching.ExchangeCollect",
    "release_feedback": "teaching.ExchangeReleaseFeedback",
}


def configure(c: Any) -> None:  # traitlets' configuration: any name is an attribute
    """Let nbgrader speak with Carrel; ``c`` is what ``get_config()`` gives."""
    for name, place in _CLASSES.items():
        setattr(c.ExchangeFactory, name, f"{_HERE}.{place}")
