"""A notebook of the session is submitted as a job."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from carrel.extensions import job
from carrel.extensions.lab import job_submission, session_place
from carrel.extensions.lab.job_submission import NotebookJobIn, SubmittedOut
from carrel.extensions.lab.session_place import PathIn, SessionPlace
from carrel.hub.errors import InvalidInput
from carrel.hub.schemas import GroupOut, RequestOut

from ...e2e.widget_pages import write_notebook

SESSION = RequestOut(
    id="s-1",
    kind="session",
    owner="ada",
    group="cs101",
    devices=2,
    model="NVIDIA H200",
    seconds=3600,
    state="running",
    submitted_at=0.0,
    image="torch@sha256:1",
)
GROUP = GroupOut(name="cs101", max_devices=4, max_devices_per_user=2, max_seconds=7200)


class FakeClient:
    def request(self, request_id: str) -> RequestOut:
        assert request_id == "s-1"
        return SESSION

    def groups(self) -> list[GroupOut]:
        return [GROUP]

    def pool(self) -> SimpleNamespace:
        return SimpleNamespace(devices=[])


@dataclass
class Submitted:
    """The calls of ``job.submit``."""

    calls: list[tuple[Path, dict[str, Any], dict[str, Any]]] = field(default_factory=list)

    def __call__(self, path: Path, parameters: dict[str, Any], **fields: Any) -> SimpleNamespace:
        self.calls.append((path, parameters, fields))
        return SimpleNamespace(id="j-1", request=SimpleNamespace(notes=["A cell was repaired."]))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SessionPlace:
    monkeypatch.setattr(session_place, "client_of", FakeClient)
    root = tmp_path / "home"
    write_notebook(
        root / "deep" / "train.ipynb", "print(rate)", parameters="rate = 0.1  # step\nname = 'x'"
    )
    return SessionPlace(root=root, request_id="s-1")


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> Submitted:
    made = Submitted()
    monkeypatch.setattr(job, "submit", made)
    return made


def order(**more: Any) -> NotebookJobIn:
    plain = {"path": "deep/train.ipynb", "group": "cs101", "devices": "1", "time": "2h"}
    return NotebookJobIn(**(plain | more))


def test_the_form_offers_parameters_and_the_devices_of_the_session(place: SessionPlace) -> None:
    form = job_submission.form(place, PathIn(path="deep/train.ipynb"))
    assert (form.group, form.session_devices, form.model) == ("cs101", 2, "NVIDIA H200")
    (group,) = form.groups
    assert (group.name, group.limits) == ("cs101", "At most 2 devices and 2 h.")
    assert form.parameters is not None
    assert [(each.name, each.type, each.shown, each.help) for each in form.parameters] == [
        ("rate", "number", "0.1", "step"),
        ("name", "text", "x", ""),
    ]


def test_only_changed_parameters_are_sent_and_the_image_is_that_of_the_session(
    place: SessionPlace, submitted: Submitted
) -> None:
    made = job_submission.submit(place, order(parameters={"rate": "0.5", "name": "x"}))
    assert made == SubmittedOut(id="j-1", notes=["A cell was repaired."])
    assert submitted.calls == [
        (
            place.root / "deep" / "train.ipynb",
            {"rate": 0.5},
            {
                "devices": 1,
                "model": None,
                "time": "2h",
                "group": "cs101",
                "image": "torch@sha256:1",
                "labels": None,
                "continuation": "",
            },
        )
    ]


def test_a_job_that_continues_the_session_names_it(
    place: SessionPlace, submitted: Submitted
) -> None:
    state = "0123456789abcdef" * 2
    job_submission.submit(place, order(continues=True, model="NVIDIA H200", state=state))
    ((_, parameters, fields),) = submitted.calls
    assert parameters == {}
    assert fields["labels"] == {"continues": "s-1"}
    assert fields["continuation"] == state
    with pytest.raises(ValidationError):
        order(state="../elsewhere")
    assert fields["model"] == "NVIDIA H200"


@pytest.mark.parametrize(
    ("wrong", "message", "where"),
    [
        ({"parameters": {"rate": "fast"}}, "'fast' is not a valid value of rate", "parameter-rate"),
        ({"devices": "many"}, "Invalid number of devices", ""),
        ({"path": "../train.ipynb"}, "not a notebook that is saved", ""),
    ],
)
def test_a_wrong_entry_gets_a_sentence_and_nothing_is_submitted(
    place: SessionPlace, submitted: Submitted, wrong: dict[str, Any], message: str, where: str
) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        job_submission.submit(place, order(**wrong))
    assert refused.value.field == where
    assert submitted.calls == []


@pytest.mark.parametrize("path", ["../a.ipynb", "/etc/passwd", "b.txt", "", "missing.ipynb"])
def test_only_a_saved_notebook_of_the_session_is_accepted(place: SessionPlace, path: str) -> None:
    (place.root.parent / "a.ipynb").write_text("{}")
    (place.root / "b.txt").write_text("")
    with pytest.raises(InvalidInput, match="not a notebook that is saved"):
        place.notebook(path)
