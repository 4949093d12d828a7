"""kill -9 of the service and of runners in the middle of a sweep: no finished trial runs again."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from nbformat import NotebookNode

from ..e2e.support import Installation, eventually
from ..spawners.notebooks import notebook, text_of
from .support import healthy, leader

_SHARED = "shared = 1"
_TRIAL = (
    "import carrel, time\n"
    "open('began', 'a').write(f'{x}\\n')\n"
    "while int(open('allowed').read()) < x: time.sleep(0.02)\n"
    "carrel.report('loss', (x - 5) ** 2 + shared)"
)


@pytest.mark.parametrize(
    ("trials", "kills"),
    [
        pytest.param(6, 2, id="2 kills"),
        pytest.param(30, 9, id="9 kills", marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
    ],
)
def test_no_finished_trial_runs_again(site: Installation, trials: int, kills: int) -> None:
    chance = random.Random(kills)  # noqa: S311  # to be repeated, not to be secret
    home = site.state / "homes" / "student1"
    (home / "began").unlink(missing_ok=True)
    _allow(home, 0)
    job = _sweep(site, trials)
    for number in range(1, kills + 1):
        allowed = trials * number // (kills + 1)
        _allow(home, allowed)
        eventually(partial(_has, site, job, allowed), f"{allowed} trials have succeeded")
        if number == 1 or (number > 2 and chance.random() < 0.5):  # each kind once
            site.kill("service")
            healthy(site)
        else:
            leader(site, job, user="student1").kill()
    _allow(home, trials)
    site.wait_for(job, "succeeded", user="student1", within=300)

    found = site.api("GET", f"/requests/{job}/trials", user="student1").json()
    assert [trial["state"] for trial in found["trials"]] == ["succeeded"] * trials
    assert [trial["reported"]["loss"] for trial in found["trials"]] == [
        (x - 5) ** 2 + 1 for x in range(1, trials + 1)
    ]
    assert found["best"] == 5
    began = Counter(map(int, (home / "began").read_text().split()))
    interrupted = {trials * number // (kills + 1) + 1 for number in range(1, kills + 1)}
    assert {x for x, times in began.items() if times > 1} <= interrupted
    assert set(began) == set(range(1, trials + 1))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_search_goes_on_with_the_same_values_and_runs_no_finished_trial_again(
    site: Installation,
) -> None:
    home = site.state / "homes" / "student1"
    (home / "began").unlink(missing_ok=True)
    _allow(home, 0)
    cell = (
        "import carrel, os, time\n"
        "trial = int(os.environ['CARREL_OUTPUT_DIR'].rpartition('-')[2])\n"
        "open('began', 'a').write(f'{trial} {x}\\n')\n"
        "while int(open('allowed').read()) < trial: time.sleep(0.02)\n"
        "for step in range(20): carrel.report('loss', (x - 5) ** 2 + 1 / (step + 1), step)"
    )
    space = {"search": {"x": {"uniform": [-9.5, 9.5]}}, "trials": 20, "pruner": "hyperband"}
    job = _submitted(site, notebook(_SHARED, cell, parameters="x = 0.0"), space, parallel=2)
    for number in (4, 9, 14):
        _allow(home, number)
        eventually(partial(_have_ended, site, job, number), f"{number} trials have ended")
        if number == 9:
            site.kill("service")
            healthy(site)
        else:
            leader(site, job, user="student1").kill()
    _allow(home, 20)
    site.wait_for(job, "succeeded", user="student1", within=300)

    found = site.api("GET", f"/requests/{job}/trials", user="student1").json()
    assert [trial["number"] for trial in found["trials"]] == list(range(1, 21))
    assert {trial["state"] for trial in found["trials"]} <= {"succeeded", "pruned"}
    runs = [line.split() for line in (home / "began").read_text().splitlines()]
    values = {str(trial["number"]): str(trial["values"]["x"]) for trial in found["trials"]}
    assert {(number, x) for number, x in runs} == set(values.items())
    again = {number for number, times in Counter(number for number, _ in runs).items() if times > 1}
    assert again <= {"5", "6", "15", "16"}  # those that ran when the runner was killed


def _allow(home: Path, trials: int) -> None:
    """Let the first trials end; the next one waits in its cell."""
    draft = home / "allowed.part"
    draft.write_text(str(trials))
    draft.replace(home / "allowed")


def _sweep(site: Installation, trials: int) -> str:
    space = {"grid": {"x": list(range(1, trials + 1))}}
    return _submitted(site, notebook(_SHARED, _TRIAL, parameters="x = 0"), space)


def _submitted(
    site: Installation, given: NotebookNode, space: dict[str, Any], parallel: int = 1
) -> str:
    body: dict[str, Any] = {
        "group": "cs101",
        "devices": 0,
        "seconds": 600,
        "retries": 10,
        "notebook": {"name": "sweep.ipynb", "content": text_of(given)},
        "sweep": {"space": space, "objective": "loss", "parallel": parallel},
    }
    answer = site.api("POST", "/requests", user="student1", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def _has(site: Installation, job: str, number: int) -> bool:
    answer = site.api("GET", f"/requests/{job}/trials", user="student1")
    trials = answer.json()["trials"] if answer.status_code == 200 else []
    return sum(trial["state"] == "succeeded" for trial in trials) == number


def _have_ended(site: Installation, job: str, number: int) -> bool:
    answer = site.api("GET", f"/requests/{job}/trials", user="student1")
    trials = answer.json()["trials"] if answer.status_code == 200 else []
    return sum(trial["state"] in ("succeeded", "pruned") for trial in trials) >= number
