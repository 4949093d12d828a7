"""What a user imports in a notebook: client, widgets, magics and adapters of stock tools."""

from __future__ import annotations
