"""What handing in takes with nbgrader's own exchange, a folder that everybody may write to.

In one process, as nbgrader's Lab extension does it in a student's server: by the command there
would be the start of Python and of nbgrader before it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import ExchangeSubmit
from traitlets.config import Config


def milliseconds(course: str, assignment: str, notebooks: Mapping[str, bytes]) -> list[float]:
    """Of each student's submission, one after another."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        exchange = folder / "exchange"
        for name in ("inbound", f"outbound/{assignment}"):
            (exchange / course / name).mkdir(parents=True, mode=0o777)
        config = Config()
        config.Exchange.root = str(exchange)
        config.CourseDirectory.course_id = course
        config.CourseDirectory.assignment_id = assignment
        return [
            _one(folder / student, student, content, config)
            for student, content in notebooks.items()
        ]


def _one(home: Path, student: str, content: bytes, config: Config) -> float:
    assignment = config.CourseDirectory.assignment_id
    (home / assignment).mkdir(parents=True)
    (home / assignment / f"{assignment}.ipynb").write_bytes(content)
    own = Config(Exchange={"cache": str(home / "cache"), "assignment_dir": str(home)})
    own.CourseDirectory.student_id = student
    own.merge(config)
    begin = time.perf_counter()
    submit = ExchangeSubmit(
        coursedir=CourseDirectory(config=own, parent=None),
        authenticator=Authenticator(config=own),
        config=own,
    )
    submit.start()
    took = 1000 * (time.perf_counter() - begin)
    inbound = Path(config.Exchange.root, config.CourseDirectory.course_id, "inbound")
    kept = [each.read_bytes() for each in inbound.glob(f"{student}+*/*.ipynb")]
    assert kept == [content], f"{student} was not handed in"
    return took
