"""A class over REST: releases and submissions."""

from __future__ import annotations

import base64
import json
from typing import Any

from .support import Installation, eventually

DEMO = "cs101"
"""The course of the demo; the class uses another one."""
PS1 = "/courses/cs102/assignments/ps1"


def handed(content: bytes) -> list[dict[str, str]]:
    return [{"name": "ps1.ipynb", "content": base64.b64encode(content).decode()}]


def ask(site: Installation, method: str, path: str, user: str, **body: Any) -> Any:
    answer = site.api(method, path, user=user, **({"json": body} if method != "GET" else {}))
    assert answer.status_code < 300, answer.text
    return answer.json()


def hand_in(site: Installation, student: str, solution: str) -> None:
    """A hand-out with this text in its first cell."""
    (file,) = ask(site, "GET", f"{PS1}/hand-out", student)["files"]
    notebook = json.loads(base64.b64decode(file["content"]))
    notebook["cells"][0]["source"] = solution
    ask(site, "POST", f"{PS1}/submissions", student, files=handed(json.dumps(notebook).encode()))


def the_demo_is_ready(site: Installation) -> None:
    """Create the people first, then the course."""
    unit = f"/courses/{DEMO}/assignments/unit1-arrays-and-cost/hand-out"
    eventually(lambda: site.api("GET", unit, user="teacher").is_success, "the demo's course")
