"""The path below which a process of this installation serves; fixed for the life of the process.

``/``, or the prefix of another proxy in front of the installation. ``carrel up`` passes the stored
setting on to the processes that it starts.
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
