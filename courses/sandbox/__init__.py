"""The cage: where what a student handed in is run, with nothing in reach that is worth taking."""

from __future__ import annotations
