"""The form that submits a notebook, without a browser."""

from __future__ import annotations

import json
from pathlib import Path

from carrel.extensions.widgets import SubmitForm
from carrel.hub.client import Client

from ...fake_service import FakeService

NOTEBOOK = json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def test_a_model_is_chosen_where_the_pool_has_several(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(NOTEBOOK)
    same = {"node": "n", "index": 0, "memory_bytes": 1, "simulated": True, "state": "free"}
    devices = [{"id": f"SIM-{model}", "model": model, **same} for model in ("new", "old")]
    pool = {"devices": devices, "total": 2, "free": 2, "waiting": 0, "simulated": True}
    with FakeService() as service:
        client = Client(service.url, "t")
        assert "model" not in SubmitForm(client=client).rows, "no pool, no choice"
        path = "/services/carrel/api/v1/pool"
        service.extra["GET", path] = lambda handler: handler.say(200, pool)
        form = SubmitForm(tmp_path / "a.ipynb", client=client)
        for model in (None, "old"):
            form.rows["model"].field.value = model
            assert form.submit() is not None
        assert [s.get("model") for s in service.called("POST", "requests")] == [None, "old"]


def test_a_refused_internet_choice_is_shown_beside_its_field(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(NOTEBOOK)
    error = {"code": "invalid", "message": "Nothing keeps it inside.", "field": "internet"}
    with FakeService() as service:
        service.problems = True
        form = SubmitForm(tmp_path / "a.ipynb", client=Client(service.url, "t"))
        form.rows["internet"].field.value = False
        service.refuse = (400, error)
        assert form.submit() is None
        assert "Nothing keeps it inside." in form.rows["internet"].error
        service.refuse = None
        assert form.submit() is not None
        assert [sent["internet"] for sent in service.called("POST", "requests")] == [False, False]


def test_a_time_limit_and_a_memory_limit_are_a_number_and_a_unit(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(NOTEBOOK)
    with FakeService() as service:
        form = SubmitForm(tmp_path / "a.ipynb", client=Client(service.url, "t"))
        seconds, memory = (form.rows[name].field for name in ("seconds", "memory_bytes"))
        for number, unit, size in (("1,5", "h", ""), ("20", "m", "1.5"), ("1h30m", "d", "300MiB")):
            seconds.number.value, seconds.unit.value = number, unit
            memory.number.value = size
            assert form.submit() is not None
        seconds.number.value = "soon"
        assert form.submit() is None
        assert "Invalid duration" in form.rows["seconds"].error
        sent = service.called("POST", "requests")
    assert [each["seconds"] for each in sent] == [5400, 1200, 5400]
    assert [each["memory_bytes"] for each in sent] == [0, 3 * 2**29, 300 * 2**20]
