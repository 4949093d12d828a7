"""The name of ``extensions.execution`` in programs: ``from carrel.execution import fuse``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .extensions import execution

if TYPE_CHECKING:
    from .extensions.execution import *  # noqa: F403  # the same names

# The import system returns what stands here: one module under both names.
sys.modules[__name__] = execution
