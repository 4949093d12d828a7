"""The first step of a compiled model in a new process, with a compile cache and without one.

PyTorch must be installed (``pip install 'carrel[execution]'``). Each measurement is a process of
its own, which uses the cache as a job does. Times are processor time of the process and its
compilers: of the first step, forward and backward, and of ``torch.compile`` with it, which imports
the compiler. That takes as long with a cache as without.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from carrel.hub.attempts import compile_cache_side as side
from carrel.hub.attempts.compile_caches import allow, copy_cache, keep_cache

from . import report
from .report import Beside, FasterThan, Row

ROUNDS = 3
TIMES = 4
PARTS = {"first step": True, "import of the compiler and first step": False}
"""What is measured, and whether it has a goal."""
MODELS = {
    "40 layers, batch 1": (
        "nn.Sequential(*(m for _ in range(40) for m in (nn.Linear(32, 32), nn.ReLU())))",
        "torch.randn(1, 32)",
    ),
    "small CNN, batch 32": (
        "nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),"
        " nn.Linear(72, 10))",
        "torch.randn(32, 1, 8, 8)",
    ),
}
PROGRAM = """
import resource, sys, torch
from torch import nn
from carrel.hub.attempts import compile_cache_side

def seconds():
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)

torch.set_num_threads(1)
torch.manual_seed(0)
model, inputs = {model}, {inputs}
compile_cache_side.begin_in_program(sys.argv[1])
begun = seconds()
compiled = torch.compile(model)
imported = seconds()
compiled(inputs).square().mean().backward()
print(seconds() - imported, seconds() - begun)
"""


def first_step(folder: Path, program: str, kept: Path | None) -> tuple[float, float]:
    """Return the seconds of a first step in a new process, and with the import of the compiler."""
    folder.mkdir()
    allow(folder, None)
    if kept is not None:
        copy_cache(kept, folder / side.OWN, mode=0o600, owner=None)
    # The compiler keeps its precompiled headers below the folder for temporary files.
    temporary = folder / "tmp"
    temporary.mkdir()
    known = {name: value for name, value in os.environ.items() if "INDUCTOR" not in name}
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, str(folder)],
        env={**known, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    step, whole = map(float, done.stdout.split())
    return step, whole


def rows(folder: Path, command: str, rounds: int) -> list[Row]:
    found = []
    for number, (name, (model, inputs)) in enumerate(MODELS.items()):
        program = PROGRAM.format(model=model, inputs=inputs)
        cold, warm, kept = [], [], folder / f"kept{number}"
        for turn in range(rounds):
            first = folder / f"{number}-{turn}-cold"
            cold.append(first_step(first, program, None))
            keep_cache(first, kept, {"request": "j-1"})
            warm.append(first_step(folder / f"{number}-{turn}-warm", program, kept))
            used = json.loads((folder / f"{number}-{turn}-warm" / side.REPORT).read_text())
            report.note(f"{name}: {cold[-1]} s cold, {warm[-1]} s warm, {used}")
        report.note(f"{name}: the cache has {kept.stat().st_size / 2**20:.1f} MiB")
        for part, (what, goal) in enumerate(PARTS.items()):
            peer = statistics.median(each[part] for each in cold) * 1000
            found.append(
                Row(
                    name=f"{what}, {name}: with a cache beside without",
                    ours=statistics.median(each[part] for each in warm) * 1000,
                    goal=FasterThan(peer=peer, times=TIMES) if goal else Beside(peer=peer),
                    unit="ms",
                    command=command,
                )
            )
    return found


def main(words: Sequence[str]) -> int:
    parser = report.parser("First steps of compiled models with a compile cache and without one.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="processes of each kind")
    options = parser.parse_args(words)
    command = report.command_line("tests.benchmarks.compile_cache", *words)
    with tempfile.TemporaryDirectory() as folder:
        found = rows(Path(folder), command, options.rounds)
    return report.finish(found, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
