"""Find the side effects that a function may have, from its source."""

from __future__ import annotations

from .analysis import analyse as analyse
from .hooks import hook_tables as hook_tables
from .hooks import hooks_among as hooks_among
from .known_functions import CONTAINERS as CONTAINERS
from .known_functions import DROPOUT as DROPOUT
from .side_effects import FunctionPurity as FunctionPurity
from .side_effects import SideEffect as SideEffect
