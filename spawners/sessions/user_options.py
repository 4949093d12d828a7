"""Validate the options that a user chooses for a session, in JupyterHub's form or its API."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pydantic import JsonValue, ValidationError

from ...hub.messages.validation import invalid_body
from ...hub.schemas import SessionIn
from .start_refused import StartRefused

ACCEPTED = (
    "Accepted options: devices (a whole number, 0 for none), model (of the devices; optional), "
    "hours (a number above 0) and group (the name of one of your groups)."
)

FORM = """
<div class="mb-3">
  <label for="carrel-devices" class="form-label">Devices (GPUs), 0 for a session on CPU</label>
  <input id="carrel-devices" name="devices" type="number" min="0" step="1" value="0"
         class="form-control" required>
</div>
<div class="mb-3">
  <label for="carrel-hours" class="form-label">Hours after which the session is stopped</label>
  <input id="carrel-hours" name="hours" type="number" min="0.25" step="0.25" value="1"
         class="form-control" required>
</div>
<div class="mb-3">
  <label for="carrel-group" class="form-label">Group to charge (optional)</label>
  <input id="carrel-group" name="group" type="text" maxlength="64" class="form-control"
         aria-describedby="carrel-group-help">
  <div id="carrel-group-help" class="form-text">Needed only if you are in several groups.</div>
</div>
"""


def checked(options: Mapping[str, object]) -> dict[str, JsonValue]:
    """Return the options in the service's format; the service decides whether they are allowed.

    Raises:
        StartRefused: a type is wrong or a key is unknown; the message lists the accepted options.
    """
    try:
        # "hours": 2 is a whole number in JSON, and is accepted.
        chosen = SessionIn.model_validate(dict(options))
    except ValidationError as error:
        raise _refusal(invalid_body(error, SessionIn).message) from error
    plain: dict[str, JsonValue] = json.loads(chosen.model_dump_json(exclude_unset=True))
    return plain


def from_form(form: Mapping[str, Sequence[str | bytes]]) -> dict[str, object]:
    """Return one value per field, with numbers parsed; invalid text is rejected later."""
    options: dict[str, object] = {}
    for name, values in form.items():
        if name == "_xsrf":  # custom forms may send it in the body
            continue
        value: object = values[0] if len(values) == 1 else list(values)
        options[name] = _number(value) if name in {"devices", "hours"} else value
    return options


def _number(value: object) -> object:
    for convert in (int, float):
        try:
            return convert(str(value))
        except ValueError:
            continue
    return value


def _refusal(message: str) -> StartRefused:
    # Any client may send any key: escape characters that cannot be encoded.
    printable = message.encode(errors="backslashreplace").decode()
    return StartRefused(
        f"These session options cannot be used: {printable} {ACCEPTED}",
        reason="invalid",
        status_code=400,
    )
