"""What users import in a notebook: jobs, widgets, magics and adapters for stock tools."""

from __future__ import annotations
