"""Where the configuration lies by which nbgrader finds Carrel's exchange."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
