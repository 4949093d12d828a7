"""Output is bounded however much a job prints, and cuts are reported."""

from __future__ import annotations

import itertools
import json
import re
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from carrel.hub.attempts.output_limits import KIB, MIB, OutputLimits
from carrel.hub.interfaces.backend import LaunchOrder
from carrel.spawners.local.backend import LocalBackend
from carrel.spawners.processes import lease_processes
from carrel.spawners.runner.attempt.reporter import EventReporter

from ..attempts import wait_for_end
from ..conftest import Desk
from ..notebooks import notebook, printed, read

SMALL = OutputLimits(
    log=16 * KIB,
    cell_text=16 * KIB,
    cell_items=20,
    item=32 * KIB,
    notebook=128 * KIB,
    message=8 * KIB,
    cell_events=5,
    job_events=20,
)
FLOOD = 4000
PNG = "from IPython.display import display, Image\ndisplay(Image(b'\\x89PNG' + b'x' * {size}))"


def events(desk: Desk, kind: str) -> list[dict[str, Any]]:
    known = desk.service.events
    return [known[n]["data"] for n in sorted(known) if known[n]["kind"] == kind]


def run(desk: Desk, *cells: str, limits: OutputLimits = SMALL) -> tuple[LaunchOrder, int]:
    """Run a notebook; return the order and the peak memory of the runner itself."""
    desk.backend = LocalBackend(desk.settings, node="node", limits=limits)
    order = desk.order(notebook(*cells))
    handle = desk.backend.start(order)
    process = psutil.Process(handle.pid)
    most = 0
    over = threading.Event()
    while lease_processes.alive(process) and not over.wait(0.02):
        try:
            most = max(most, process.memory_info().rss)
        except psutil.NoSuchProcess:
            break
    wait_for_end(desk, order, handle)
    return order, most


def sizes(order: LaunchOrder) -> dict[str, int]:
    names = ("log.txt", "events.jsonl", "output.ipynb")
    return {name: (order.folder / name).stat().st_size for name in names}


def test_a_flood_of_prints_is_cut_and_its_beginning_and_end_are_kept(desk: Desk) -> None:
    flood = "print('first')\nfor n in range(3000): print('x' * 99, flush=True)\nprint('last')"
    order, _ = run(desk, flood, "print('after')")
    assert desk.service.ended["code"] == "succeeded"
    text = printed(read(order.folder / "output.ipynb"))
    assert text.startswith("first\nxxx")
    assert text.endswith("xxx\nlast\nafter\n")
    assert "left out]" in text
    log = (order.folder / "log.txt").read_text()
    assert log.startswith("first\nxxx")
    assert "the log is full" in log
    assert "last\nafter\n" in log
    began = {cut["what"]: cut["bytes"] for cut in events(desk, "cut") if "all" not in cut}
    in_all = {cut["what"]: cut["bytes"] for cut in events(desk, "cut") if "all" in cut}
    assert {"output", "log"} <= in_all.keys() <= began.keys()
    assert len(events(desk, "cut")) == len(began) + len(in_all)
    assert began["log"] < in_all["log"] < 300_000
    assert began["output"] < in_all["output"] < 300_000
    found = sizes(order)
    assert found["log.txt"] < 80 * KIB
    assert found["output.ipynb"] < 40 * KIB
    assert found["events.jsonl"] < 200 * KIB


def test_one_single_huge_print_is_cut_in_the_kernel(desk: Desk) -> None:
    order, _ = run(desk, "print('a' + 'x' * 5_000_000 + 'b')")
    text = printed(read(order.folder / "output.ipynb"))
    assert text.startswith("ax")
    assert text.endswith("xb\n")
    assert len(text) <= SMALL.cell_text
    assert "[4.8 MiB left out]" in text
    assert text.count("left out]") == 1
    assert events(desk, "cut")[0]["what"] == "output"
    assert events(desk, "cut")[0]["bytes"] > 4_900_000


def test_several_huge_prints_leave_one_gap_and_its_whole_size(desk: Desk) -> None:
    """This holds for notebook and events; the log has a higher limit, and a gap for each print."""
    huge = "import sys\nfor n in range(5): print(n, 'x' * 1_000_000, n, flush=True)"
    order, _ = run(desk, huge, limits=replace(SMALL, log=200 * KIB, cell_events=50))
    text = printed(read(order.folder / "output.ipynb"))
    assert text.startswith("0 xx")
    assert text.endswith("xx 4\n")
    assert "[4.8 MiB left out]" in text
    assert text.count("left out]") == 1
    total = [cut["bytes"] for cut in events(desk, "cut") if cut["what"] == "output"][-1]
    assert total + len(text) == pytest.approx(5_000_025, abs=100)
    log = (order.folder / "log.txt").read_text()
    assert log.count("left out]") == 5
    assert all(f"{n} xx" in log and f"xx {n}\n" in log for n in range(5))
    told = [event["output"]["text"] for event in events(desk, "cell_output")]
    assert told[0].startswith("0 xx")
    assert all(piece.count("left out]") == 1 for piece in told)


def test_carriage_returns_leave_the_last_state_of_a_line(desk: Desk) -> None:
    bars = "import sys\nfor n in range(100_000): sys.stdout.write(f'\\rstep {n}')\nprint('\\nend')"
    order, _ = run(desk, bars)
    assert printed(read(order.folder / "output.ipynb")) == "step 99999\nend\n"
    assert (order.folder / "log.txt").read_text().startswith("step 99999\nend\n")


@pytest.mark.parametrize(
    ("pieces", "told"),
    [
        (["\r1/3", "\r2/3", "\r3/3"], ["\r1/3", "\r2/3", "\r3/3"]),
        (["1/3\r", "2/3\r", "3/3\r"], ["1/3", "\r2/3", "\r3/3"]),
        (["ab\rc", "d\ne\rf"], ["\rc", "d\nf"]),
        (["end\r", "\nnext"], ["end", "\r\nnext"]),
    ],
)
def test_an_event_marks_text_that_overwrites_the_previous_line(
    pieces: list[str], told: list[str]
) -> None:
    seen: list[Any] = []
    times = itertools.count()
    teller = EventReporter(lambda kind, data: seen.append(data), SMALL, lambda: float(next(times)))
    teller.cell(0, 1)
    for piece in pieces:
        teller.print("stderr", piece)
        teller.settle()
    assert [data["output"]["text"] for data in seen] == told


def test_a_million_flushes_are_collected_in_the_kernel(desk: Desk) -> None:
    order, _ = run(desk, "for n in range(30_000): print(n, end='\\r', flush=True)", "print('on')")
    assert desk.service.ended["code"] == "succeeded"
    assert printed(read(order.folder / "output.ipynb")) == "29999\ron\n"
    assert len(events(desk, "cell_output")) <= 6


def test_an_image_that_is_too_large_leaves_a_note(desk: Desk) -> None:
    order, _ = run(desk, PNG.format(size=1_000_000), PNG.format(size=1000))
    first, second = read(order.folder / "output.ipynb").cells[1:]
    assert "image/png" not in first.outputs[0].data
    assert "image/png of 1.3 MiB left out" in first.outputs[0].data["text/plain"]
    assert "image/png" in second.outputs[0].data
    told = [event["output"]["data"] for event in events(desk, "cell_output")]
    assert ["image/png" in data for data in told] == [False, True]


def test_many_outputs_of_a_cell_are_bounded_in_number(desk: Desk) -> None:
    order, _ = run(desk, "from IPython.display import display\nfor n in range(500): display(n)")
    cell = read(order.folder / "output.ipynb").cells[1]
    assert len(cell.outputs) == SMALL.cell_items + 1, "and the mark of what was left out"
    assert len(events(desk, "cell_output")) == SMALL.cell_events
    assert {cut["what"] for cut in events(desk, "cut")} == {"output", "events"}


def test_of_a_flood_of_outputs_all_arrive(desk: Desk) -> None:
    flood = f"from IPython.display import display\nfor n in range({FLOOD}): display(n)"
    order, _ = run(desk, flood)
    outputs = read(order.folder / "output.ipynb").cells[1].outputs
    (note,) = (output.text for output in outputs if output.output_type == "stream")
    assert note == f"[carrel: {FLOOD - SMALL.cell_items:,} outputs were left out]\n"
    assert outputs[-1].data["text/plain"] == str(FLOOD - 1)


def test_display_handles_that_grow_are_bounded_too(desk: Desk) -> None:
    grow = (
        "from IPython.display import display, HTML\n"
        "handles = [display(HTML('x'), display_id=True) for n in range(10)]\n"
        "for handle in handles: handle.update(HTML('y' * 30_000))"
    )
    order, _ = run(desk, grow)
    assert sizes(order)["output.ipynb"] < 2 * SMALL.notebook
    assert "output" in {cut["what"] for cut in events(desk, "cut")}


def test_raw_output_of_a_kernel_is_bounded_too(desk: Desk) -> None:
    raw = "import os, sys\nfor n in range(2000): os.write(sys.__stdout__.fileno(), b'r' * 999)"
    order, _ = run(desk, raw)
    assert sizes(order)["log.txt"] < 80 * KIB


def test_clear_output_and_streams_work_together(desk: Desk) -> None:
    cell = (
        "from IPython.display import clear_output\n"
        "print('gone')\nclear_output(wait=True)\nprint('kept')\n"
        "import sys\nprint('warned', file=sys.stderr)\n1 + 1"
    )
    order, _ = run(desk, cell)
    outputs = read(order.folder / "output.ipynb").cells[1].outputs
    assert [output.get("text", "result") for output in outputs] == ["kept\n", "warned\n", "result"]


def test_the_kernel_of_a_job_is_left_clean(desk: Desk) -> None:
    order, _ = run(desk, "print([name for name in dir() if 'carrel' in name], In)")
    assert printed(read(order.folder / "output.ipynb")).startswith("[] ['', ")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_gigabyte_a_million_returns_and_fifty_megabytes(desk: Desk) -> None:
    """Sizes from real jobs, with the default limits."""
    order, most = run(
        desk,
        "for n in range(10_000): print('x' * 99_999)",
        "print('x' * 500_000_000)",
        "for n in range(1_000_000): print(n, end='\\r')",
        PNG.format(size=50_000_000),
        limits=OutputLimits(),
    )
    assert desk.service.ended["code"] == "succeeded"
    assert most < 400 * MIB
    found = sizes(order)
    assert found["log.txt"] < 20 * MIB
    assert found["output.ipynb"] < 4 * MIB
    assert found["events.jsonl"] < 8 * MIB
    lines, one, returns, image = read(order.folder / "output.ipynb").cells[1:]
    texts = [cell.outputs[0].text for cell in (lines, one, returns)]
    for text, printed_bytes in ((texts[0], 1e9), (texts[1], 5e8)):
        (gap,) = re.findall(r"\[(.*) MiB left out\]", text)
        assert float(gap) * MIB + len(text) == pytest.approx(printed_bytes, rel=0.001)
    assert texts[2] == "999999\r"
    assert "image/png of 63.6 MiB left out" in image.outputs[0].data["text/plain"]
    assert "MiB left out]" in (order.folder / "log.txt").read_text()
    cuts = [cut["bytes"] for cut in events(desk, "cut") if cut["what"] == "output"]
    assert cuts[-1] == pytest.approx(1.5e9 + 66.7e6, rel=0.01), "in all"


def test_the_limits_travel_with_the_order(desk: Desk) -> None:
    order, _ = run(desk, "1", limits=replace(SMALL, cell_items=7))
    found = json.loads(Path(order.folder / "order.json").read_text())
    assert found["limits"]["cell_items"] == 7


def test_the_last_outputs_the_result_and_the_error_are_kept(desk: Desk) -> None:
    many = "from IPython.display import display\nfor n in range(200): display(n)\n"
    limits = replace(SMALL, cell_items=40)
    order, _ = run(
        desk, f"{many}'the result'", f"{many}raise ValueError('the error')", limits=limits
    )
    assert desk.service.ended["code"] == "cell_error"
    first, second = code_cells(order)
    shown = [
        str(each.get("data", {}).get("text/plain", each.get("text"))) for each in first.outputs
    ]
    mark = "[carrel: 161 outputs were left out]\n"
    assert shown == [*map(str, range(38)), mark, "199", "'the result'"]
    assert second.outputs[-1].output_type == "error"
    assert second.outputs[-1].evalue == "the error"


def test_the_error_is_kept_in_a_notebook_that_is_full(desk: Desk) -> None:
    fill = "for n in range(9): display(HTML('x' * 30_000))"
    order, _ = run(
        desk, f"from IPython.display import display, HTML\n{fill}\nraise ValueError('the error')"
    )
    (cell,) = code_cells(order)
    assert cell.outputs[-1].get("evalue") == "the error", [str(o)[:150] for o in cell.outputs]


def code_cells(order: LaunchOrder) -> list[Any]:
    """The cells of the job's notebook, without the one with injected parameters."""
    cells = read(order.folder / "output.ipynb").cells
    return [each for each in cells if each.cell_type == "code" and each.outputs]


def test_a_representation_that_raises_is_the_cause(desk: Desk) -> None:
    """IPython's reply names the error "NoneType: None"."""
    run(desk, "class A:\n    def _repr_html_(self): raise ValueError('no html')\nA()")
    assert desk.service.ended["code"] == "cell_error"
    assert "ValueError" in desk.service.ended["message"]
    assert "no html" in desk.service.ended["message"]
    assert "NoneType" not in desk.service.ended["message"]
