"""``carrel sweep --together`` beside the same trials one after the other.

PyTorch must be installed (``pip install 'carrel[execution]'``). One installation without devices is
brought up for it and taken down again. The notebook trains a small network on the 8 by 8 digits of
scikit-learn, a trial for each learning rate. The trials of the peer share the cell with the imports
and the data: a kernel is forked for each. Together, one run trains all models by ``fuse_train``,
which first chooses how: the first sweep compiles, later ones of the same notebook find it in their
compile cache. From the POST to the terminal state by the service's clock, in turns; the
losses are those of the last step, as the trials have reported them.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import httpx
import nbformat

from ..e2e.support import Installation, installation
from . import report
from .batch import warm
from .report import AtMost, Beside, FasterThan, Row, middle
from .submit import ENDED, STUDENT, made_notebook

TRIALS, STEPS, ROUNDS = 12, 5_000, 3
WITHIN = 300.0
TIMES_FASTER = 2.0
LARGEST_DIFFERENCE = 1e-3
"""Of two losses, which begin at 2.3."""
PREPARATION = """
import sys
sys.path.insert(0, {folder!r})
import torch
import carrel
from carrel import execution
from sklearn.datasets import load_digits

torch.set_num_threads(1)
digits = load_digits()
inputs = torch.tensor(digits.data, dtype=torch.float32) / 16
targets = torch.tensor(digits.target)
loss = torch.nn.functional.cross_entropy


def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))


def batch(step):
    first = 32 * (step % (len(inputs) // 32))
    return inputs[first : first + 32], targets[first : first + 32]
"""
APART = """
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=lr)
for step in range({steps}):
    rows, labels = batch(step)
    optimizer.zero_grad()
    value = loss(model(rows), labels)
    value.backward()
    optimizer.step()
carrel.report("loss", float(value), {steps})
"""
TOGETHER = """
training = execution.fuse_train([net() for _ in lr], loss, learning_rates=lr, calls={steps})
for step in range({steps}):
    losses = training.step(*batch(step))
carrel.report("loss", losses, {steps})
print(execution.explain(training))
"""


def swept_notebook(default: str, work: str, steps: int) -> nbformat.NotebookNode:
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        raise RuntimeError("PyTorch is not installed: pip install 'carrel[execution]'")
    folder = str(Path(found.origin).parents[1])
    notebook = made_notebook(
        f"lr = {default}", PREPARATION.format(folder=folder), work.format(steps=steps)
    )
    notebook.cells[0].metadata["tags"] = ["parameters"]
    # It draws the same numbers in each trial; its author knows that.
    notebook.cells[1].metadata["tags"] = ["carrel-share"]
    return notebook


def rates(trials: int) -> list[float]:
    return [round(0.3 * 0.7**number, 6) for number in range(trials)]


def run_sweep(
    site: Installation, notebook: nbformat.NotebookNode, trials: int, *, together: bool
) -> tuple[float, list[float]]:
    """Return the milliseconds from the POST to the terminal state, and the losses of the trials."""
    body = {
        "kind": "job",
        "group": "cs101",
        "devices": 0,
        "notebook": {"name": "n.ipynb", "content": nbformat.writes(notebook)},
        "sweep": {
            "space": {"grid": {"lr": rates(trials)}},
            "together": together,
            "objective": "loss",
        },
    }
    begin = time.time()
    answer = site.api("POST", "/requests", user=STUDENT, json=body)
    assert answer.status_code == httpx.codes.CREATED, answer.text
    request_id = str(answer.json()["id"])
    ended = site.wait_for(request_id, *ENDED, user=STUDENT, within=WITHIN, every=0.05)
    assert ended["state"] == "succeeded", ended
    trials_of = site.api("GET", f"/requests/{request_id}/trials", user=STUDENT).json()["trials"]
    losses = [float(each["reported"]["loss"]) for each in trials_of]
    return 1000 * (float(ended["ended_at"]) - begin), losses


def furthest(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the largest difference of the losses of a trial."""
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def rows(found: Mapping[str, list[float]], sizes: str, line: str) -> list[Row]:
    return [
        Row(
            name=f"the first {sizes} trained as one, beside one after the other",
            ours=next(iter(found["together"]), None),
            goal=Beside(peer=next(iter(found["apart"]), None)),
            unit="ms",
            command=line,
        ),
        Row(
            name=f"{sizes} trained as one, beside one after the other",
            ours=middle(found["together"]),
            goal=FasterThan(peer=middle(found["apart"]), times=TIMES_FASTER),
            unit="ms",
            command=line,
        ),
        Row(
            name="thousand times the largest difference of the losses of a trial",
            ours=max((1000 * each for each in found["difference"]), default=None),
            goal=AtMost(limit=1000 * LARGEST_DIFFERENCE),
            unit="",
            command=line,
        ),
    ]


def main(words: Sequence[str]) -> int:
    parser = report.parser("Trials of a sweep that are trained as one, beside one by one.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="sweeps of each kind (3)")
    parser.add_argument("--trials", type=int, default=TRIALS, help="of a sweep (12)")
    parser.add_argument("--steps", type=int, default=STEPS, help="of a training (5,000)")
    options = parser.parse_args(words)
    line = report.command_line("tests.benchmarks.joint_sweep", *words)
    found: dict[str, list[float]] = {"together": [], "apart": [], "difference": []}
    notebooks = {
        "together": swept_notebook("[0.1]", TOGETHER, options.steps),
        "apart": swept_notebook("0.1", APART, options.steps),
    }
    with ExitStack() as stack, report.measuring("an installation", *found.values()):
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="carrel-joint-")))
        site = stack.enter_context(installation(folder / "state"))
        warm(site, made_notebook("import carrel"))
        for _ in range(options.rounds):
            losses = {}
            for way, notebook in notebooks.items():
                milliseconds, losses[way] = run_sweep(
                    site, notebook, options.trials, together=way == "together"
                )
                found[way].append(milliseconds)
            found["difference"].append(furthest(losses["apart"], losses["together"]))
            report.note(
                f"together {found['together'][-1]:.0f} ms, one after the other "
                f"{found['apart'][-1]:.0f} ms, losses {found['difference'][-1]:.1e} apart"
            )
    sizes = f"{options.trials} trials of {options.steps:,} steps"
    return report.finish(rows(found, sizes, line), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
