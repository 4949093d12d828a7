"""Text that users write, as it can be stored."""

from __future__ import annotations

from ...hub.errors import InvalidInput, TooLarge


def check_written(text: str, what: str, *, most: int, field: str) -> None:
    """Raise TooLarge or InvalidInput for a text that cannot be stored.

    Args:
        what: names the text at the start of a sentence.
        most: characters.
    """
    if len(text) > most:
        raise TooLarge(
            f"{what} has {len(text):,} characters.", accepted=f"At most {most:,}.", field=field
        )
    if "\0" in text:
        raise InvalidInput(f"{what} contains the character NUL.", accepted="Text.", field=field)
