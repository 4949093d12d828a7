"""Options from JupyterHub's form and API."""

from __future__ import annotations

import pytest

from carrel.spawners.sessions.start_refused import StartRefused
from carrel.spawners.sessions.user_options import checked, from_form


def test_a_form_s_texts_become_numbers() -> None:
    form = {"devices": ["1"], "hours": ["1.5"], "group": ["cs101"], "_xsrf": ["2|abc"]}
    assert checked(from_form(form)) == {"devices": 1, "hours": 1.5, "group": "cs101"}


def test_missing_options_are_left_to_the_service() -> None:
    assert checked({}) == {}


@pytest.mark.parametrize(
    "form",
    [
        {"devices": ["many"]},
        {"devices": ["1", "2"]},
        {"devices": [""]},
        {"hours": ["nan"]},
        {"upload_file": [b"x"]},
    ],
)
def test_text_in_a_number_field_is_refused(form: dict[str, list[str]]) -> None:
    with pytest.raises(StartRefused) as caught:
        checked(from_form(form))
    assert caught.value.status_code == 400
    assert "Accepted options: devices (a whole number" in caught.value.jupyterhub_message


def test_a_refusal_never_carries_markup() -> None:
    refusal = StartRefused("<b>", reason="x", status_code=409, details="<script>")
    assert refusal.jupyterhub_html_message == "<span>&lt;b&gt;</span><pre>&lt;script&gt;</pre>"
