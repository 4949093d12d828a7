"""A notebook with real libraries prints the same by stages as by papermill, trial by trial."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import papermill
import pytest

from carrel.hub.sweeps.notebook_analysis import analyse_notebook
from carrel.hub.sweeps.notebook_cells import read_sweep_notebook
from carrel.hub.sweeps.space_syntax import space_from_options
from carrel.hub.sweeps.stage_tree import Stage, stage_tree

from ...source_tree import ROOT

DIGITS = ROOT / "courses" / "sample" / "digits.ipynb"
EXECUTOR = """
import contextlib, io, json, os, sys
cells, root = json.load(sys.stdin)

def run(stage, names, printed):
    for index in range(stage["first"], stage["after"]):
        if index == stage["assigned_before"]:
            names.update(stage["assigned"])
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(cells[index], names)
        printed = [*printed, out.getvalue()]
    for child in stage["children"]:
        if os.fork() == 0:
            run(child, names, printed)
            os._exit(0)
        os.wait()
    if not stage["children"]:
        for trial in stage["trials"]:
            os.write(1, (json.dumps([trial, printed]) + "\\n").encode())

run(root, {"__name__": "__main__"}, [])
"""
"""Executes each stage once, and forks where trials branch."""


def as_orders(stage: Stage) -> dict[str, object]:
    return {
        "first": stage.first,
        "after": stage.after,
        "assigned": dict(stage.assigned),
        "assigned_before": stage.assigned_before,
        "trials": list(stage.trials),
        "children": [as_orders(child) for child in stage.children],
    }


@pytest.mark.slow
def test_the_sample_notebook_prints_what_papermill_prints(tmp_path: Path) -> None:
    made = read_sweep_notebook(DIGITS.name, DIGITS.read_text(encoding="utf-8"))
    grid = ["seed=1,2", "hidden=8,16", "epochs=5"]
    trials = space_from_options(grid=grid).check(made).trials()
    tree = stage_tree(analyse_notebook(made), trials)
    assert tree.runs() == (1, 1, 2, 4, 4)

    # A fork has only one thread; libraries must not wait for the others.
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", EXECUTOR],
        input=json.dumps([[cell.source for cell in made.cells], as_orders(tree.root)]),
        env=os.environ | one_thread,
        capture_output=True,
        text=True,
        check=True,
    )
    shared = dict(json.loads(line) for line in done.stdout.splitlines())

    assert sorted(shared) == [1, 2, 3, 4]
    assert len({tuple(printed) for printed in shared.values()}) == 4
    for trial in trials:
        output = tmp_path / f"{trial.number}.ipynb"
        papermill.execute_notebook(
            DIGITS, output, parameters=dict(trial.values), kernel_name="python3", progress_bar=False
        )
        executed = json.loads(output.read_text(encoding="utf-8"))
        alone = [
            "".join("".join(part["text"]) for part in cell["outputs"])
            for cell in executed["cells"]
            if cell["cell_type"] == "code" and "injected-parameters" not in cell["metadata"]["tags"]
        ]
        assert shared[trial.number] == alone
