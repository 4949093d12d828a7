"""Read a TOML file that a user names on the command line."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from ..errors import InvalidInput


def read_toml(path: Path, accepted: str) -> dict[str, Any]:
    """Return the tables of a file.

    Args:
        accepted: what the file may be, for the error.

    Raises:
        InvalidInput: it cannot be read, or is no TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be read: {error.strerror}.", accepted=accepted
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not text in UTF-8.", accepted=accepted) from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path} is not valid TOML: {error}.", accepted=accepted) from error
