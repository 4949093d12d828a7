"""The programs inside a sandbox. They import no other package of Carrel: none is there."""

from __future__ import annotations
