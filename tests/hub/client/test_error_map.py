"""Errors of the service become exceptions of the client."""

from __future__ import annotations

import json

from carrel.hub.client.transport.error_map import failure
from carrel.hub.errors import InvalidInput


class InvalidLine(InvalidInput):
    """What a part of the client raises itself, with arguments of its own."""

    def __init__(self, line: int) -> None:
        super().__init__(f"Line {line} is malformed.")


def test_a_code_belongs_to_the_class_that_defines_it() -> None:
    body = {"detail": "No.", "code": InvalidInput.code, "accepted": "Yes.", "field": "devices"}
    error = failure("http://site", 400, json.dumps(body).encode())
    assert type(error) is InvalidInput
    assert (error.message, error.accepted, error.field) == ("No.", "Yes.", "devices")
