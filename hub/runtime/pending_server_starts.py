"""Server starts that JupyterHub was asked for and has not confirmed."""

from __future__ import annotations

ASK_SECONDS = 30.0
"""For how long a start at the hub may be the answer to a question of the service."""
