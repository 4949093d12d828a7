"""What is opened in JupyterLab, and in which session."""

from __future__ import annotations

from typing import Any

import pytest

from carrel.hub.config.base_url import BASE_URL
from carrel.hub.errors import InvalidInput
from carrel.hub.schemas import RequestOut
from carrel.hub.web.forms.lab_target import LabTarget, session_for_lab

from ..fakes import session


@pytest.mark.parametrize(
    ("fields", "query"),
    [
        (
            {"course": "cs101", "assignment": "ps 1"},
            "carrel-course=cs101&carrel-assignment=ps+1",
        ),
        ({"job": "j-1", "cell": "12"}, "carrel-job=j-1&carrel-cell=12"),
        ({"job": "j-1", "cell": "0; x"}, "carrel-job=j-1"),
        ({"job": "j-1", "course": "cs101", "assignment": "ps1"}, "carrel-job=j-1"),
    ],
)
def test_the_address_in_the_session_names_it(fields: dict[str, str], query: str) -> None:
    target = LabTarget.filled(fields)
    assert target.url("ada", "") == f"{BASE_URL}user/ada/lab?{query}"
    assert target.url("ada", "gpu") == f"{BASE_URL}user/ada/gpu/lab?{query}"


@pytest.mark.parametrize("view", ["tensorboard", "mlflow"])
def test_the_logs_of_a_job_are_opened_in_their_viewer(view: str) -> None:
    target = LabTarget.filled({"job": "j-1", "view": view})
    assert target.url("ada", "gpu") == f"{BASE_URL}user/ada/gpu/carrel/{view}?job=j-1"
    assert "tensorboard" not in LabTarget.filled({"job": "j-1", "view": "x"}).url("ada", "")


@pytest.mark.parametrize("fields", [{}, {"course": "cs101"}, {"assignment": "ps1"}, {"job": " "}])
def test_without_an_assignment_or_a_job_it_is_refused(fields: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="does not say what to open"):
        LabTarget.filled(fields)


def live(server: str, state: str, at: float, **more: Any) -> RequestOut:
    name = f"s-{server or 'default'}"
    return session(id=name, state=state, server_name=server, submitted_at=at, **more)


@pytest.mark.parametrize(
    ("sessions", "chosen"),
    [
        ([], None),
        ([live("", "queued", 3), live("gpu", "running", 1)], "gpu"),
        ([live("gpu", "running", 9), live("", "running", 1)], ""),
        ([live("a", "running", 1), live("b", "running", 2)], "b"),
        ([live("a", "queued", 9), live("b", "starting", 1)], "b"),
        ([live("a", "stopping", 1)], None),
        ([live("a", "queued", 1, claim=True)], None),
    ],
)
def test_a_running_default_session_comes_first(
    sessions: list[RequestOut], chosen: str | None
) -> None:
    found = session_for_lab(sessions)
    assert (found.server_name if found else None) == chosen
