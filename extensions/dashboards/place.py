"""Where the dashboard lies, and where a user's server serves it."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
NOTEBOOK = "dashboard.ipynb"
PATH = "carrel/dashboard"
"""Below the base URL of the user's server."""
