"""Evaluate the weights of 300 students in one process, beside a process for each.

PyTorch must be installed (``pip install 'carrel[execution]'``). The processes run the program of
the grading sandbox, without the sandbox; a few are timed, and stand for all. Times are processor
time, which other work on the machine changes less than the time of a clock.
"""

from __future__ import annotations

import json
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch

from carrel.extensions.leaderboard import program, scores
from carrel.extensions.leaderboard.scores import WeightsScore

from . import report
from .report import AtMost, FasterThan, Row

STUDENTS = 300
PROCESSES = 4
ROUNDS = 3
ORDER = {"metric": "accuracy", "public_percent": 50, "seed": 7}
TEACHERS = """\
import torch
from torch import nn

torch.set_num_threads(1)

def architecture():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64, 10),
    )

def hidden_data():
    draw = torch.Generator().manual_seed(1)
    return torch.randn(360, 1, 8, 8, generator=draw), torch.randint(10, (360,), generator=draw)
"""
_ALONE = "from carrel.extensions.leaderboard.program import main; main()"


def saved(state: dict[str, Any]) -> bytes:
    """Return weights of the dtype F32 as a safetensors file."""
    header: dict[str, object] = {}
    data = b""
    for name, tensor in state.items():
        content = tensor.detach().contiguous().numpy().tobytes()
        place = [len(data), len(data) + len(content)]
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": place}
        data += content
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def alone(folder: Path, name: str, content: bytes) -> tuple[float, WeightsScore]:
    """Return the processor seconds of a process for one submission, and its scores."""
    own = folder / name
    (own / "weights").mkdir(parents=True)
    (own / "teacher").mkdir()
    (own / "teacher" / "leaderboard.py").write_text(TEACHERS)
    (own / "order.json").write_text(json.dumps(ORDER))
    (own / "weights" / name).write_bytes(content)
    begun = _of_children()
    done = subprocess.run([sys.executable, "-c", _ALONE], cwd=own, capture_output=True, check=True)
    seconds = _of_children() - begun
    found = json.loads(done.stdout.splitlines()[-1])
    return seconds, WeightsScore(**found["scores"][name])


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rows(folder: Path, command: str) -> list[Row]:
    (folder / "leaderboard.py").write_text(TEACHERS)
    module = program.teachers_module(folder)
    test = scores.hidden_test(module.architecture(), module.hidden_data(), **ORDER)
    contents = {}
    for number in range(STUDENTS):
        torch.manual_seed(number)
        contents[f"w-{number}"] = saved(module.architecture().state_dict())
    times, single = [], []
    for _ in range(ROUNDS):
        begun = time.process_time()
        found = scores.score(test, contents)
        times.append(time.process_time() - begun)
    scores.FEWEST_CALLS = 1
    fused = scores.score(test, contents)
    wrong = sum(found[name] != fused[name] for name in contents)
    for name in list(contents)[:PROCESSES]:
        seconds, each = alone(folder, name, contents[name])
        single.append(seconds)
        wrong += found[name] != each
    report.note(f"one process: {times}; processes: {single}; {wrong} scores differ")
    ours, peer = median(times), median(single) * STUDENTS
    name = f"{STUDENTS} submissions, 360 examples"
    beside = f"{name}, beside a process for each ({PROCESSES} timed)"
    differ = f"{name}: scores that differ when fused, or in a process for each"
    return [
        Row(name=name, ours=ours, goal=AtMost(limit=5), unit="s", command=command),
        Row(
            name=beside, ours=ours, goal=FasterThan(peer=peer, times=100), unit="s", command=command
        ),
        Row(name=differ, ours=wrong, goal=AtMost(limit=0), unit="scores", command=command),
    ]


def main(words: Sequence[str]) -> int:
    parser = report.parser("Weights of a leaderboard together, beside a process for each.")
    options = parser.parse_args(words)
    torch.set_num_threads(1)
    command = report.command_line("tests.benchmarks.leaderboard", *words)
    with tempfile.TemporaryDirectory() as folder:
        found = rows(Path(folder), command)
    return report.finish(found, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
