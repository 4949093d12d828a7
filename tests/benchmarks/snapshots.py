"""What it costs a kernel to have its variables saved after cells, in its own processor time.

A fork writes the variables while the next cell runs. The kernel itself forks, and copies the pages
that a cell changes afterwards. Both are processor time of the kernel, so that other programs on the
machine do not distort the figures, as they do the elapsed time (``tests.benchmarks.submit``). A
cell of half a second is what a long notebook is made of there. Not each of them is saved: the
figure is the mean over all cells.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from jupyter_client.manager import start_new_kernel

from carrel.hub.attempts import snapshot_side
from carrel.hub.attempts.kernel_code import installation

from . import report
from .report import AtMost, Row

ROUNDS = 100
CELL_MILLISECONDS = 500.0
SIZES = {"small variables": (0, 1.0), "200 MiB, half of it changed by each cell": (200, 5.0)}
"""The size in MiB of the variables, and the most that it may cost in percent."""
CHANGED_MIB = 100
BEFORE = """\
import time
held = bytearray(b"x") * ({held} << 20)
def change():
    for place in range(0, min({changed} << 20, len(held)), 4096):
        held[place] ^= 1
def spent(work):
    before = time.process_time()
    work()
    return time.process_time() - before
saves = get_ipython().kernel.carrel_snapshots
change()"""
ROUND = """\
alone = spent(change)
forked = spent(lambda: saves.take(0, 1, 0.5))
copied = spent(change)
saves._wait()
print(1000 * (forked + copied - alone))"""


def printed(client: Any, source: str) -> str:
    texts: list[str] = []

    def hook(message: dict[str, Any]) -> None:
        assert message["msg_type"] != "error", message["content"]
        if message["msg_type"] == "stream":
            texts.append(message["content"]["text"])

    client.execute_interactive(source, output_hook=hook, timeout=120)
    return "".join(texts)


def measure(held_mib: int, rounds: int, found: list[float]) -> None:
    """Milliseconds of the kernel's processor time per cell; the first one only warms."""
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        with tempfile.TemporaryDirectory(prefix="carrel-snapshots-") as folder:
            printed(client, installation(snapshot_side, folder))
            printed(client, BEFORE.format(held=held_mib, changed=CHANGED_MIB))
            found += [float(printed(client, ROUND)) for _ in range(rounds + 1)][1:]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def main(words: Sequence[str]) -> int:
    parser = report.parser("What snapshots of variables cost a kernel.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="cells of a size (100)")
    options = parser.parse_args(words)
    line = report.command_line("tests.benchmarks.snapshots", *words)
    rows = []
    for name, (held_mib, limit) in SIZES.items():
        found: list[float] = []
        with report.measuring(name, found):
            measure(held_mib, options.rounds, found)
        report.note(f"{name}: " + ", ".join(f"{value:.1f}" for value in found) + " ms")
        mean = statistics.fmean(found) if found else None
        rows.append(
            Row(
                name=f"cells of 0.5 s, {name}",
                ours=None if mean is None else 100 * mean / CELL_MILLISECONDS,
                goal=AtMost(limit=limit),
                unit="%",
                command=line,
            )
        )
    return report.finish(rows, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
