"""What JupyterLab hides from users who grade no course."""

from __future__ import annotations

from typing import Any

import pytest

from carrel.extensions.lab.teacher_parts import HIDDEN, hide_from_students
from carrel.extensions.nbgrader import GRADES_NO_COURSE

FORMGRADER = "@jupyter/nbgrader:formgrader"


def page_of(settings: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    hook = settings.get("page_config_hook", lambda _handler, found: found)
    page: dict[str, Any] = hook(None, config)
    return page


def jupyterhubs(_handler: object, config: dict[str, Any]) -> dict[str, Any]:
    return config | {"hubPrefix": "/hub/"}


def test_a_student_gets_no_parts_for_teachers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(GRADES_NO_COURSE, "yes")
    settings: dict[str, Any] = {"page_config_hook": jupyterhubs}
    hide_from_students(settings)
    page = page_of(settings, {"disabledExtensions": ["other", FORMGRADER]})
    assert page["hubPrefix"] == "/hub/"
    assert sorted(page["disabledExtensions"]) == sorted({"other", *HIDDEN})


def test_without_jupyterhub_they_are_hidden_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(GRADES_NO_COURSE, "yes")
    settings: dict[str, Any] = {}
    hide_from_students(settings)
    assert page_of(settings, {}) == {"disabledExtensions": list(HIDDEN)}


def test_a_grader_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(GRADES_NO_COURSE, raising=False)
    settings: dict[str, Any] = {"page_config_hook": jupyterhubs}
    hide_from_students(settings)
    assert page_of(settings, {"disabledExtensions": ["other"]}) == {
        "disabledExtensions": ["other"],
        "hubPrefix": "/hub/",
    }
