"""Files of pipelines: the order of their jobs, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.hub.client import pipeline_file
from carrel.hub.errors import InvalidInput
from carrel.hub.schemas.sweeps import SweepIn

from ..notebooks import notebook

STUDY = """
[jobs.report]
command = "python report.py"
after = ["prepare", "train:any"]
workdir = "."

[jobs.train]
notebook = "train.ipynb"
parameters = { lr = 0.05 }
devices = 1
time = "2h"
memory = "8GiB"
after = "prepare"

[jobs.prepare]
notebook = "train.ipynb"
"""


def written(folder: Path, text: str) -> Path:
    (folder / "train.ipynb").write_text(notebook("print(lr)"))
    path = folder / "study.toml"
    path.write_text(text)
    return path


def test_each_job_comes_after_those_that_it_waits_for(tmp_path: Path) -> None:
    jobs = pipeline_file.read(written(tmp_path, STUDY))
    assert [job.name for job in jobs] == ["prepare", "train", "report"]
    _, train, report = jobs
    assert {name: train.fields[name] for name in ("seconds", "memory_bytes", "parameters")} == {
        "seconds": 7200,
        "memory_bytes": 8 * 2**30,
        "parameters": {"lr": 0.05},
    }
    assert report.fields["command"] == ["python", "report.py"]
    ids = {"prepare": "j-1", "train": "j-2"}
    assert report.references(ids) == {"after": ["j-1:ok", "j-2:any"], "results": {}}
    assert (report.needs_files, report.workdir) == (True, ".")


def test_results_name_jobs_of_the_file_and_a_sweep_has_the_devices_of_one_trial(
    tmp_path: Path,
) -> None:
    text = """
    [jobs."fit.a"]
    notebook = "train.ipynb"
    devices = 2
    sweep = { grid = { lr = [0.1, 0.01] }, parallel = 3, objective = "loss", trial_time = "10m" }

    [jobs.test]
    notebook = "train.ipynb"
    results = { lr = "fit.a.best.lr", loss = "fit.report.the loss" }
    after = ["fit.a", "fit:any"]

    [jobs.fit]
    notebook = "train.ipynb"
    """
    jobs = {job.name: job for job in pipeline_file.read(written(tmp_path, text))}
    assert jobs["test"].references({"fit.a": "j-1", "fit": "j-2"}) == {
        "after": ["j-1:ok", "j-2:any"],
        "results": {"lr": "j-1.best.lr", "loss": "j-2.report.the loss"},
    }
    fields = jobs["fit.a"].fields
    assert fields["devices"] == 6
    assert SweepIn.model_validate(fields["sweep"]) == SweepIn(
        space={"grid": {"lr": [0.1, 0.01]}}, parallel=3, objective="loss", trial_seconds=600
    )


RESULT = "[jobs.a]\ncommand = 'x'\n[jobs.b]\nnotebook = 'train.ipynb'\nafter = 'a'\nresults = "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no jobs"),
        ("jobs = 1", "has no jobs"),
        ("[job.a]", "unknown key 'job'"),
        ("[jobs.a", "is not valid TOML"),
        ("[jobs.a]", "neither a notebook nor a command"),
        ("[jobs.a]\nnotebook = 'train.ipynb'\ncommand = 'x'", "both a notebook and a command"),
        ("[jobs.a]\nnotebook = 'none.ipynb'", "none.ipynb"),
        ("[jobs.a]\nnotebook = 7", "notebook cannot be 7"),
        ("[jobs.a]\ncommand = 'x'\ncpus = 1", "unknown key 'cpus'"),
        ('[jobs.a]\ncommand = "\'x"', "open quotation"),
        ("[jobs.a]\ncommand = []", "no valid command"),
        ("[jobs.a]\ncommand = 'x'\ntime = 'soon'", "Invalid duration"),
        ("[jobs.a]\ncommand = 'x'\nafter = ['b']", "the job a waits for b, which is not in"),
        ("[jobs.a]\ncommand = 'x'\nafter = ['a:never']", "waits for 'a:never'"),
        ("[jobs.a]\ncommand = 'x'\nafter = 7", "after cannot be 7"),
        (f"[jobs.{'a' * 65}]\ncommand = 'x'", "cannot have the name"),
        (f"{RESULT}7", "results cannot be 7"),
        (f"{RESULT}{{ lr = 7 }}", "the result lr cannot be 7"),
        (f"{RESULT}{{ lr = 'c.id' }}", "lr is to have 'c.id', .* It waits for a."),
        (f"{RESULT}{{ lr = 'a.loss' }}", "'a.loss' names no value of a job"),
        ("[jobs.a]\nnotebook = 'train.ipynb'\nsweep = 7", "sweep cannot be 7"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_the_place(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        pipeline_file.read(written(tmp_path, text))


def test_a_circle_is_shown(tmp_path: Path) -> None:
    text = "".join(
        f"[jobs.{name}]\ncommand = 'x'\nafter = ['{other}']\n"
        for name, other in (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"))
    )
    with pytest.raises(InvalidInput) as caught:
        pipeline_file.read(written(tmp_path, text))
    circle = caught.value.message.rpartition(": ")[2].rstrip(".").split(" → ")
    assert circle[0] == circle[-1]
    waits = {"a": "b", "b": "c", "c": "a"}
    assert [waits[name] for name in circle[:-1]] == circle[1:]
