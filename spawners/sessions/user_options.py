"""What a person chooses for a session: from JupyterHub's form and from its API."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from pydantic import JsonValue, ValidationError

from ...hub.messages.validation import invalid_body
from ...hub.schemas import SessionIn
from .start_refused import StartRefused

ACCEPTED = (
    "Accepted are: devices (a whole number, 0 for none), model (of device; any without it), "
    "hours (a number above 0) and group (the name of one of your groups)."
)

FORM = """
<div class="mb-3">
  <label for="carrel-devices" class="form-label">Devices (GPUs), 0 for a session on CPU</label>
  <input id="carrel-devices" name="devices" type="number" min="0" step="1" value="0"
         class="form-control" required>
</div>
<div class="mb-3">
  <label for="carrel-hours" class="form-label">Hours, after which the session is stopped</label>
  <input id="carrel-hours" name="hours" type="number" min="0.25" step="0.25" value="1"
         class="form-control" required>
</div>
<div class="mb-3">
  <label for="carrel-group" class="form-label">Group that it is charged to</label>
  <input id="carrel-group" name="group" type="text" maxlength="64" class="form-control"
         aria-describedby="carrel-group-help">
  <div id="carrel-group-help" class="form-text">May stay empty if you have one group only.</div>
</div>
"""


def checked(options: Mapping[str, object]) -> dict[str, JsonValue]:
    """The options as the service takes them; whether they are allowed is the service's word.

    Raises:
        StartRefused: a type is wrong or a key is unknown; says what is accepted.
    """
    try:
        # "hours": 2 is a whole number in JSON and a fine one.
        chosen = SessionIn.model_validate(dict(options))
    except ValidationError as error:
        raise _refusal(invalid_body(error, SessionIn).message) from error
    if not math.isfinite(chosen.hours):
        raise _refusal("hours has to be a finite number.")
    plain: dict[str, JsonValue] = json.loads(chosen.model_dump_json(exclude_unset=True))
    return plain


def from_form(form: Mapping[str, Sequence[str | bytes]]) -> dict[str, object]:
    """One value per field, numbers as numbers; what is none stays as it is and is refused."""
    options: dict[str, object] = {}
    for name, values in form.items():
        if name == "_xsrf":  # a form of one's own may carry it in its body
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


def _refusal(complaint: str) -> StartRefused:
    # Keys come from anybody: what cannot be shown is shown escaped.
    shown = complaint.encode(errors="backslashreplace").decode()
    return StartRefused(
        f"These session options cannot be used: {shown} {ACCEPTED}",
        reason="invalid",
        status_code=400,
    )
