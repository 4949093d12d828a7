"""The base URL of this installation, fixed for the life of the process.

It is ``/``, or the prefix at which another proxy serves the installation. ``carrel up`` passes the
stored setting to the processes that it starts, in the environment.
"""

from __future__ import annotations

import os
import re
from typing import Final

from ..errors import InvalidInput

VARIABLE: Final = "CARREL_BASE_URL"
BASE_URL: Final = os.environ.get(VARIABLE, "/")
SERVICE_PREFIX: Final = f"{BASE_URL}services/carrel/"
_PATH = re.compile(r"/(?:[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,99}/){0,8}")


def parse_base_url(text: str) -> str:
    """Return the path with a slash at both ends.

    Raises:
        InvalidInput: it is not a path of letters, digits and ``-._~``.
    """
    path = f"/{text.strip().strip('/')}/".replace("//", "/")
    if not _PATH.fullmatch(path):
        raise InvalidInput(
            f"Invalid base URL: {text[:80]!r}.", accepted="Give a path such as /jupyter/."
        )
    return path
