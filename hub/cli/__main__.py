"""``python -m carrel.hub.cli``: run the command without its entry point."""

from __future__ import annotations

from . import main

main()
