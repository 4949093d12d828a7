"""The form that submits a notebook, as far as it needs no browser."""

from __future__ import annotations

import json
from pathlib import Path

from carrel.extensions.widgets import SubmitForm
from carrel.hub.client import Client

from ..fake_service import FakeService

NOTEBOOK = json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def test_that_a_job_cannot_be_kept_inside_is_said_beside_its_field(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(NOTEBOOK)
    error = {"code": "invalid", "message": "Nothing keeps it inside.", "field": "internet"}
    with FakeService() as service:
        service.problems = True
        form = SubmitForm(tmp_path / "a.ipynb", client=Client(service.url, "t"))
        form._rows["internet"].field.value = False
        service.refuse = (400, error)
        assert form.submit() is None
        assert "Nothing keeps it inside." in form._rows["internet"].wrong
        service.refuse = None
        assert form.submit() is not None
        assert [sent["internet"] for sent in service.called("POST", "requests")] == [False, False]
