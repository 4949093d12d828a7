"""The policy that the how-to shows does what the page says."""

from __future__ import annotations

import re
from pathlib import Path

from carrel.hub.simulation.policies import Policy

from .kit import job, played, spans

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "simulate.md"
PICTURED = re.compile(r'href="(\.\./_static/simulations/[^"]+)"')
MOST_BYTES = 300_000
EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_the_policy_of_the_how_to_runs() -> None:
    (code,) = EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    exec(code, names)  # noqa: S102  # the page's own example
    impatient = names["impatient"]
    assert isinstance(impatient, Policy)
    patient = Policy(name="widest", order=impatient.order)
    jobs = (job("one", 0, 100), job("two", 1, 10, 2), job("late", 2, 5))
    assert spans(played(patient, jobs)) == {
        "one": [(0, 100)],
        "two": [(100, 110)],
        "late": [(110, 115)],
    }
    assert spans(played(impatient, jobs)) == {
        "one": [(0, 1), (11, 110)],
        "two": [(1, 11)],
        "late": [(11, 16)],
    }


def test_the_examples_are_small_pages_of_what_the_commands_say() -> None:
    pages = [PAGE.parent / found for found in PICTURED.findall(PAGE.read_text(encoding="utf-8"))]
    assert [page.stem for page in pages] == ["s1", "helios"]
    week, helios = (page.read_text(encoding="utf-8") for page in pages)
    assert max(page.stat().st_size for page in pages) < MOST_BYTES
    assert "cluster is 6214e9, submitted from 2017-10-01, submitted up to 2017-10-07 23:59" in week
    assert "1,867 jobs on vcvGl=20x8,vcvlY=2x8" in helios
