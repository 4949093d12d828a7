"""Install axe-core below this Python environment: ``python -m tests.e2e.axe``."""

from __future__ import annotations

import sys

from carrel.hub.errors import CarrelError

from . import install

try:
    install()
except CarrelError as error:
    sys.exit(str(error))
