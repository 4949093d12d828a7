"""Session images: the catalogue, and what builds them."""

from __future__ import annotations
