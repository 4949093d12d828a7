"""Where the extension for JupyterLab lies, and the paths below a user's server."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
STANDING = "carrel/standing"
"""How the session stands, as a stream."""
KEEP = "carrel/keep"
