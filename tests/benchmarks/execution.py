"""``carrel.execution`` beside loops, compiled loops, plain recursion, an iterative version, and
PyTorch's DistributedDataParallel.

PyTorch must be installed (``pip install 'carrel[execution]'``). Times are processor time of one
thread, which other work on the machine changes less than the time of a clock; those of several
processes are by the clock. The ways are measured in turns.
"""

from __future__ import annotations

import contextlib
import copy
import io
import multiprocessing
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from carrel.extensions import execution
from carrel.extensions.execution.equality import difference
from carrel.spawners.runner.attempt.gang_member import free_port

from .. import imperative_functions
from ..forked_processes import in_processes
from . import report
from .report import AtMost, Beside, FasterThan, NotWorseThan, Row

Work = Callable[[], object]
ROUNDS = 9
CALLS = 100_000
WIDTH = 64
TREES = 64
PROCESSES = 2


def cnn() -> Any:
    """A small network for the 8 by 8 digits of scikit-learn."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 10),
    ).eval()


def mlp() -> Any:
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def in_turns(
    ways: Mapping[str, Work],
    rounds: int = ROUNDS,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Return the median milliseconds of each way, measured in turns after one call of each."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, work in ways.items():
            begun = clock()
            work()
            if number:
                times[name].append((clock() - begun) * 1000)
    return {name: statistics.median(found) for name, found in times.items()}


def many_models(command: str) -> list[Row]:
    rows = []
    for count, batch, loop_times, compiled_times in (
        (32, 1, 6, 5),
        (300, 32, 4, 4),
        (300, 360, 3, 2),
    ):
        models = [cnn() for _ in range(count)]
        inputs = torch.randn(batch, 1, 8, 8)
        compiled = [torch.compile(copy.deepcopy(model)) for model in models]
        fused = execution.fuse(models, calls=CALLS, seconds=120)
        with torch.no_grad():
            fused(inputs)
            report.note(str(execution.explain(fused)))
            found = in_turns(
                {
                    "loop": lambda m=models, x=inputs: [model(x) for model in m],
                    "compiled": lambda m=compiled, x=inputs: [model(x) for model in m],
                    "fused": lambda f=fused, x=inputs: f(x),
                }
            )
        name = f"{count} CNNs, batch {batch}"
        report.note(f"{name}: {found}")
        for peer, times in (("loop", loop_times), ("compiled", compiled_times)):
            rows.append(
                _faster(f"{name}, beside {_PEERS[peer]}", found, ("fused", peer), times, command)
            )
    return rows


_PEERS = {"loop": "the loop", "compiled": "the loop of compiled models"}


def captured(command: str) -> list[Row]:
    narrow = nn.Sequential(
        *(layer for _ in range(40) for layer in (nn.Linear(32, 32), nn.ReLU()))
    ).eval()
    rows = []
    for name, model, inputs, times in (
        ("40 layers of width 32, batch 1", narrow, torch.randn(1, 32), 8),
        ("40 layers of width 32, batch 256", narrow, torch.randn(256, 32), 2),
        ("a small CNN, batch 32", cnn(), torch.randn(32, 1, 8, 8), 1.2),
    ):
        # The second one loads the package that the first has built.
        for turn in ("first", "second"):
            graph = execution.capture(model, inputs, calls=CALLS, seconds=120)
            report.note(f"{name}, {turn} capture: {execution.explain(graph)}")
        with torch.no_grad():
            found = in_turns(
                {
                    "eager": lambda m=model, x=inputs: [m(x) for _ in range(_REPEATED)],
                    "captured": lambda g=graph, x=inputs: [g(x) for _ in range(_REPEATED)],
                },
                rounds=3 * ROUNDS,
            )
        one = {way: milliseconds / _REPEATED for way, milliseconds in found.items()}
        rows.append(_faster(f"capture: {name}, beside eager", one, ("captured", "eager"), times,
                            command))  # fmt: skip
    return rows


_REPEATED = 30


def memory(command: str) -> list[Row]:
    """Peak memory of a loop and of fused models, each in a process of its own."""
    context = multiprocessing.get_context("spawn")
    peaks = {}
    for way in ("loop", "fused"):
        with context.Pool(1) as pool:
            peaks[way], weights = pool.apply(_peak, (way,))
    return [
        Row(
            name="peak memory of 32 fused MLPs, beside the loop and a fifth of the weights",
            ours=peaks["fused"] / _MIB,
            goal=NotWorseThan(
                peer=peaks["loop"] / _MIB, times=1, or_more=0.2 * weights / _MIB
            ),
            unit="MiB", command=command,
        )
    ]  # fmt: skip


_MIB = 1 << 20


def _peak(way: str) -> tuple[int, int]:
    """Return how many bytes the process has needed more than before, and those of the weights."""
    torch.set_num_threads(1)
    with torch.no_grad():
        # What is loaded at the first use does not count.
        small = [nn.Linear(4, 4) for _ in range(2)]
        execution.fuse(small, calls=1)(torch.randn(1, 4))
        before = _status_bytes("VmRSS")
        models = [
            nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024)).eval()
            for _ in range(32)
        ]
        inputs = torch.randn(8, 1024)
        work: Any = execution.fuse(models, calls=1) if way == "fused" else None
        for _ in range(3):
            if work is None:
                _ = [model(inputs) for model in models]
            else:
                work(inputs)
    weights = sum(each.nbytes for model in models for each in model.parameters())
    return _status_bytes("VmHWM") - before, weights


def _status_bytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))


def training(command: str) -> list[Row]:
    models = [mlp() for _ in range(32)]
    alone = copy.deepcopy(models)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.01) for model in alone]
    inputs, targets = torch.randn(32, 64), torch.randint(0, 10, (32,))
    loss = nn.functional.cross_entropy
    fused = execution.fuse_train(models, loss, learning_rates=0.01, calls=CALLS, seconds=120)
    fused.step(inputs, targets)
    report.note(str(execution.explain(fused)))

    def loop() -> None:
        for model, optimizer in zip(alone, optimizers, strict=True):
            optimizer.zero_grad()
            loss(model(inputs), targets).backward()
            optimizer.step()

    found = in_turns({"loop": loop, "fused": lambda: fused.step(inputs, targets)})
    return [
        _faster(
            "a step of 32 MLPs, batch 32, beside a loop with torch.optim",
            found, ("fused", "loop"), 8, command,
        )
    ]  # fmt: skip


class TreeLstm(nn.Module):
    """The binary Tree-LSTM of Tai, Socher and Manning (2015), a layer for each gate."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.left, self.right, self.out, self.update = (
            nn.Linear(2 * WIDTH, WIDTH) for _ in range(5)
        )

    def forward(self, left: Any, right: Any) -> Any:
        (h1, c1), (h2, c2) = left, right
        both = torch.cat([h1, h2], -1)
        state = (
            self.enter(both).sigmoid() * self.update(both).tanh()
            + self.left(both).sigmoid() * c1
            + self.right(both).sigmoid() * c2
        )
        return self.out(both).sigmoid() * state.tanh(), state


class Leaf(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(100, 2 * WIDTH)

    def forward(self, word: Any) -> Any:
        return self.words(word).chunk(2, -1)


def trees(command: str) -> list[Row]:
    cell, leaf = TreeLstm(), Leaf()
    words = [torch.tensor(number) for number in range(100)]

    def plain(tree: Any) -> Any:
        if isinstance(tree, int):
            return leaf(words[tree])
        return cell(plain(tree[0]), plain(tree[1]))

    @execution.recursive
    def batched(tree: Any) -> Any:
        if isinstance(tree, int):
            return leaf(words[tree])
        return cell(batched(tree[0]), batched(tree[1]))

    draw = random.Random(0)  # noqa: S311
    forest = [_tree(draw, draw.randint(10, 50)) for _ in range(TREES)]
    balanced = [_balanced(draw, 64)]
    parameters = [*cell.parameters(), *leaf.parameters()]

    def trained(results: Sequence[Any]) -> object:
        return torch.autograd.grad(sum(hidden.sum() for hidden, _ in results), parameters)

    rows = []
    ways: dict[str, Callable[[list[Any]], list[Any]]] = {
        "plain": lambda many: [plain(tree) for tree in many],
        "batched": batched.map,
        "iterative": lambda many: _iterative(many, cell, leaf),
    }
    with torch.no_grad():
        for other in ("batched", "iterative"):
            pairs = zip(ways["plain"](forest), ways[other](forest), strict=True)
            worst = max(float((a[0] - b[0]).abs().max()) for a, b in pairs)
            report.note(f"{other}: largest difference {worst:.1e}")
        for name, many, times in (
            ("64 random trees", forest, 10),
            ("one balanced tree of 64 leaves", balanced, 4),
        ):
            found = in_turns({way: lambda f=f, m=many: f(m) for way, f in ways.items()})
            rows += _tree_rows(f"{name}, inference", found, times, command)
    found = in_turns({way: lambda f=f: trained(f(forest)) for way, f in ways.items()})
    rows += _tree_rows("64 random trees, forward and backward", found, 20, command)
    report.note(str(execution.explain(batched)))
    return rows


def _tree_rows(name: str, found: Mapping[str, float], times: float, command: str) -> list[Row]:
    return [
        _faster(f"{name}, beside plain recursion", found, ("batched", "plain"), times, command),
        Row(
            name=f"{name}, beside an iteration in topological order",
            ours=found["batched"] * 1000,
            goal=Beside(peer=found["iterative"] * 1000),
            unit="µs",
            command=command,
        ),
    ]


def _iterative(forest: list[Any], cell: Any, leaf: Any) -> list[Any]:
    """Execute trees level by level, with batches written by hand."""
    levels: list[list[Any]] = []
    words: list[int] = []

    def level(tree: Any) -> tuple[int, int]:
        if isinstance(tree, int):
            words.append(tree)
            return 0, len(words) - 1
        left, right = level(tree[0]), level(tree[1])
        height = 1 + max(left[0], right[0])
        while len(levels) < height:
            levels.append([])
        levels[height - 1].append((left, right))
        return height, len(levels[height - 1]) - 1

    roots = [level(tree) for tree in forest]
    done = [leaf(torch.tensor(words))]
    first = [0]
    for nodes in levels:
        # One tensor of all results so far: rows by level.
        first.append(first[-1] + len(done[-1][0]))
        hidden, state = (torch.cat([each[part] for each in done]) for part in (0, 1))
        sides = [
            torch.tensor([first[height] + row for height, row in side])
            for side in zip(*nodes, strict=True)
        ]
        done.append(cell(*((hidden[index], state[index]) for index in sides)))
    return [(done[height][0][row], done[height][1][row]) for height, row in roots]


def _tree(draw: random.Random, leaves: int) -> Any:
    if leaves == 1:
        return draw.randrange(100)
    left = draw.randint(1, leaves - 1)
    return (_tree(draw, left), _tree(draw, leaves - left))


def _balanced(draw: random.Random, leaves: int) -> Any:
    if leaves == 1:
        return draw.randrange(100)
    return (_balanced(draw, leaves // 2), _balanced(draw, leaves // 2))


def imperative(command: str) -> list[Row]:
    """Forty imperative functions, accelerated and plain: results, state and time."""
    wrong = 0
    times: dict[str, tuple[float, float]] = {}
    for name, each in imperative_functions.functions().items():
        plain, _ = _called(name, accelerated=False)
        found, text = _called(name, accelerated=True)
        wrong += bool(other := difference(plain, found))
        function = each.function
        faster = execution.accelerate(function, calls=CALLS)
        with contextlib.redirect_stdout(io.StringIO()):
            for call in range(40):
                faster(*each.arguments(call))
            pairs = [
                (_seconds(faster, each.arguments), _seconds(function, each.arguments))
                for _ in range(15)
            ]
        # Both of one round, so that a busy machine slows both.
        times[name] = sorted(pairs, key=lambda pair: pair[0] / pair[1])[7]
        ours, theirs = times[name]
        report.note(f"{name}: {theirs / ours:.2f} times as fast. {other} {text.splitlines()[0]}")
    slowest = max(times, key=lambda name: times[name][0] / times[name][1])
    means = [statistics.geometric_mean(each[way] for each in times.values()) for way in (0, 1)]
    return [
        Row(
            name="40 imperative functions: wrong results or states",
            ours=wrong, goal=AtMost(limit=0), unit="", command=command,
        ),
        *(
            Row(
                name=f"40 imperative functions, {name}, beside plain", ours=ours * _MICROSECONDS,
                goal=FasterThan(peer=theirs * _MICROSECONDS, times=least),
                unit="µs", command=command,
            )
            for name, (ours, theirs), least in (
                (f"the slowest ({slowest})", times[slowest], 0.95), ("geometric mean", means, 1.3),
            )
        ),
    ]  # fmt: skip


_TIMED_CALLS = 300
_MICROSECONDS = 1e6 / _TIMED_CALLS


def _seconds(function: Callable[..., Any], arguments: Callable[[int], Any]) -> float:
    """Return the processor time of many calls, later comparisons included."""
    calls = [arguments(call) for call in range(_TIMED_CALLS)]
    begun = time.process_time()
    for each in calls:
        function(*each)
    return time.process_time() - begun


def _called(name: str, *, accelerated: bool) -> tuple[list[Any], str]:
    imperative_functions.reset()
    each = imperative_functions.functions()[name]
    function = each.function
    if accelerated:
        function = execution.accelerate(function, calls=CALLS)
    printed = io.StringIO()
    found = []
    with contextlib.redirect_stdout(printed):
        for call in range(1, 13):
            arguments = each.arguments(call)
            result = function(*arguments)
            found.append((result, imperative_functions.state(arguments, each.function)))
    text = str(execution.explain(function)) if accelerated else ""
    return [found, printed.getvalue()], text


def _faster(
    name: str, found: Mapping[str, float], ways: tuple[str, str], times: float, command: str
) -> Row:
    """Return the row of two ways, ours first, which should be so many times faster."""
    ours, peer = ways
    return Row(
        name=name,
        ours=found[ours] * 1000,
        goal=FasterThan(peer=found[peer] * 1000, times=times),
        unit="µs",
        command=command,
    )


def embedding(*, sparse: bool) -> Any:
    return nn.Sequential(nn.Embedding(200_000, 64, sparse=sparse), nn.Linear(64, 10))


def dense() -> Any:
    return nn.Sequential(
        nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    )


def step_of(model: Any, replica: Any = None) -> Callable[[Any, Any], Any]:
    """Return a step of a model, or of what executes its parts."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(inputs: Any, targets: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy((replica or model)(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def data_parallel(command: str) -> list[Row]:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port("127.0.0.1")))
    os.environ["WORLD_SIZE"] = str(PROCESSES)
    found, explanations, worst = in_processes(_measured_steps, PROCESSES, seconds=600)[0]
    for text in explanations:
        report.note(text)
    report.note(f"largest difference of a loss from one device: {worst:.1e}")
    report.note(str(found))
    name = "a step of two processes, embedding of 200,000 by 64, batch 128"
    sparse, by_rows = "embedding, sparse", "embedding, dense by rows"
    return [
        _faster(
            f"{name}, beside dense DistributedDataParallel",
            found, (sparse, "embedding, DDP"), 5, command,
        ),
        _beside(
            f"{name}, beside DistributedDataParallel with sparse gradients",
            found, (sparse, "embedding, sparse DDP"), command,
        ),
        _beside(
            f"{name}, dense gradients, beside dense DistributedDataParallel",
            found, (by_rows, "embedding, DDP"), command,
        ),
        Row(
            name="a step of two processes, three layers of 1,024, batch 128, beside "
            "DistributedDataParallel",
            ours=found["layers"] * 1000,
            goal=NotWorseThan(peer=found["layers, DDP"] * 1000, times=1.05),
            unit="µs",
            command=command,
        ),
    ]  # fmt: skip


def _measured_steps(rank: int) -> tuple[dict[str, float], list[str], float]:
    """Return milliseconds by way, explanations, and the largest difference of losses."""
    os.environ["RANK"] = str(rank)
    texts = []
    times: dict[str, float] = {}
    worst = 0.0
    words = torch.randint(200_000, (128,)), torch.randint(10, (128,))
    images = torch.randn(128, 1024), words[1]
    for batch, models in (
        (
            words,
            {
                "embedding, sparse": embedding(sparse=True),
                "embedding, sparse DDP": embedding(sparse=True),
                "embedding, dense by rows": embedding(sparse=False),
                "embedding, DDP": embedding(sparse=False),
            },
        ),
        (images, {"layers": dense(), "layers, DDP": dense()}),
    ):
        weights = next(iter(models.values())).state_dict()
        for model in models.values():
            model.load_state_dict(copy.deepcopy(weights))
        part = [each.chunk(PROCESSES)[rank] for each in batch]
        steps: dict[str, Work] = {}
        alone = step_of(copy.deepcopy(next(iter(models.values()))))
        losses = [[float(alone(*batch)) for _ in range(5)]]
        for name, model in models.items():
            if "DDP" in name:
                step = step_of(model, nn.parallel.DistributedDataParallel(model))
                steps[name] = partial(step, *part)
            else:
                step = execution.parallelize(step_of(model), always_divide=True, seconds=5)
                losses.append([float(step(*batch)) for _ in range(5)])
                texts.append(f"{name}: {execution.explain(step)}")
                steps[name] = partial(step, *batch)
        for each in losses[1:]:
            worst = max(worst, *(abs(a - b) for a, b in zip(each, losses[0], strict=True)))
        times |= in_turns(steps, rounds=15, clock=time.perf_counter)
    return times, texts, worst


def _beside(name: str, found: Mapping[str, float], ways: tuple[str, str], command: str) -> Row:
    ours, peer = ways
    return Row(
        name=name,
        ours=found[ours] * 1000,
        goal=Beside(peer=found[peer] * 1000),
        unit="µs",
        command=command,
    )


PARTS: Mapping[str, Callable[[str], list[Row]]] = {
    "models": many_models,
    "training": training,
    "trees": trees,
    "captured": captured,
    "memory": memory,
    "imperative": imperative,
    "parallel": data_parallel,
}


def main(words: Sequence[str]) -> int:
    parser = report.parser(
        "Many models, trees and processes beside loops, recursion and PyTorch's own."
    )
    parser.add_argument("--only", choices=PARTS, help="one part")
    options = parser.parse_args(words)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    command = report.command_line("tests.benchmarks.execution", *words)
    rows = []
    for name, part in PARTS.items():
        if options.only in (None, name):
            rows += part(command)
    return report.finish(rows, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
