"""What runs in a cage. It imports nothing of Carrel but itself: nothing else is there."""

from __future__ import annotations
