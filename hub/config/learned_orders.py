"""Read the learned orders of an installation: ``STATE/learned-orders/NAME.json``."""

from __future__ import annotations

import logging
import re

from ..errors import InvalidInput
from ..scheduling.model.learned_order import LearnedOrder
from .state_folder import StateFolder

log = logging.getLogger(__name__)

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_MOST_BYTES = 100_000


def load_learned_order(state: StateFolder, name: str) -> LearnedOrder:
    """Load a learned order.

    Raises:
        InvalidInput: the name is not valid, or the file is missing or damaged.
    """
    name = str(name)  # settings.json is edited by hand, and may have a number here
    if not NAME.fullmatch(name):
        raise InvalidInput(
            f"A learned order cannot have the name {name[:80]!r}.",
            accepted="1 to 40 small letters, digits, - and _.",
            field="learned_order",
        )
    path = state.learned_orders / f"{name}.json"
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InvalidInput(
            f"The learned order {path} cannot be read: {error.strerror}.",
            accepted="Copy the file that the training wrote there.",
            field="learned_order",
        ) from error
    try:
        return LearnedOrder.from_json(name, content)
    except InvalidInput as error:
        raise InvalidInput(
            f"{path}: {error.message}", accepted=error.accepted, field="learned_order"
        ) from error


def usable_learned_order(state: StateFolder, name: str) -> LearnedOrder | None:
    """Load the learned order of the settings; None without one.

    An order that cannot be used is logged and ignored: requests are then ordered without it.
    """
    if not name:
        return None
    try:
        return load_learned_order(state, name)
    except InvalidInput as error:
        log.warning("%s Requests are ordered without it. %s", error.message, error.accepted)
        return None
