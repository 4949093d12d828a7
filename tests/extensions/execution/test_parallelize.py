"""Steps of two processes against the same steps of one, and the ends of processes."""

from __future__ import annotations

import importlib
import itertools
import os
import random
import signal
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from carrel.hub.errors import InvalidInput

from ... import torch_packages
from ...forked_processes import in_processes

torch, execution = torch_packages.load()
choice = importlib.import_module("carrel.extensions.execution.choice")
parallelized = importlib.import_module("carrel.extensions.execution.parallelized")
nn = torch.nn
WORDS = 2100


@pytest.fixture
def gang(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int], Any]], list[Any]]:
    """Execute a function in two processes that have the variables of a gang."""

    def run(work: Callable[[int], Any]) -> list[Any]:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            monkeypatch.setenv("MASTER_PORT", str(probe.getsockname()[1]))

        def member(rank: int) -> Any:
            os.environ["RANK"] = str(rank)
            return work(rank)

        return in_processes(member)

    # Imports its compiler, which takes seconds: once, and not in each process.
    linear()
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    return run


class Text(nn.Module):
    """Embeddings of words and a network; a part of it is used for some batches only."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        width = 128
        self.words = nn.Embedding(WORDS, width, sparse=draw.random() < 0.5)
        self.hidden = nn.Linear(width, draw.randint(1, 40))
        self.rare = nn.Linear(width, 5)
        self.out = nn.Linear(self.hidden.out_features, 5)

    def forward(self, words: Any) -> Any:
        found = self.words(words).mean(1)
        scores = self.out(self.hidden(found).tanh())
        rare = (words == 0).any(1)
        if rare.any():  # in the part of one process only
            scores = scores.index_add(0, rare.nonzero()[:, 0], self.rare(found[rare]))
        return scores


def training(draw: random.Random) -> tuple[Callable[..., Any], list[tuple[Any, Any]]]:
    """Return a step of a random model, and batches."""
    torch.manual_seed(draw.randrange(1000))
    model = Text(draw)
    kind = draw.choice([torch.optim.SGD, torch.optim.Adagrad])
    optimizer = kind(model.parameters(), lr=0.1)
    halves = draw.random() < 0.3

    def step(words: Any, labels: Any) -> Any:
        optimizer.zero_grad(set_to_none=draw_none)
        scores = model(words)
        loss = nn.functional.cross_entropy(scores, labels)
        if halves:
            (loss / 2).backward(retain_graph=True)
            (loss / 2).backward()
        else:
            loss.backward()
        if not model.words.sparse:
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        return loss, (scores.argmax(1) == labels).sum()

    draw_none = draw.random() < 0.5
    batches = []
    for _ in range(4):
        rows = draw.randint(2, 9)
        first = draw.choice([0, 1])
        words = torch.randint(first, WORDS, (rows, 3))
        words[0, 0] = first
        batches.append((words, torch.randint(0, 5, (rows,))))
    return step, batches


def in_turn(places: Iterator[int]) -> Callable[..., Any]:
    """Return what chooses one candidate after the other, instead of the fastest."""

    def choose(candidates: Any, sample: Any, *, calls: int, seconds: float) -> Any:
        chosen = candidates[next(places) % len(candidates)]
        results = (choice.CandidateResult(name=chosen.name, seconds=1.0),)
        made = choice.ExecutionChoice(chosen=chosen.name, calls=calls, results=results)
        return chosen.build(), made

    return choose


def test_losses_of_two_processes_are_those_of_one(
    gang: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallelized, "choose", in_turn(itertools.count()))
    ways = set()

    def losses(rank: int | None) -> list[Any]:
        found = []
        for seed in range(6):
            step, batches = training(random.Random(seed))  # noqa: S311
            if rank is not None:
                step = execution.parallelize(step, always_divide=True)
            numbers = [[float(each.detach()) for each in step(*batch)] for batch in batches]
            found.append(numbers)
            if rank is not None:
                ways.update(each.chosen for each in execution.explain(step).choices.values())
        return [found, sorted(ways)]

    expected, _ = losses(None)
    one, other = gang(losses)
    assert one == other
    torch.testing.assert_close(torch.tensor(one[0]), torch.tensor(expected), rtol=1e-5, atol=1e-5)
    assert one[1] == ["all elements reduced", "rows exchanged", "sparse tensor reduced"]


def linear(work: Callable[[Any], Any] = lambda inputs: inputs) -> Callable[[Any], Any]:
    """Return a step of a linear model, whose initial weights are random."""
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(inputs: Any) -> Any:
        optimizer.zero_grad()
        loss = model(work(inputs)).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def test_the_batch_is_divided_where_that_is_faster_and_weights_are_those_of_process_0(
    gang: Any,
) -> None:
    def device(inputs: Any) -> Any:
        time.sleep(len(inputs) * 0.02)  # its work is that of a device
        return inputs

    def train(rank: int) -> Any:
        torch.manual_seed(rank)
        step = execution.parallelize(linear(device), seconds=1.2)
        losses = [float(step(torch.ones(rows, 3) * rows).detach()) for rows in (8, 5, 1)]
        return losses, str(execution.explain(step))

    (one, text), (other, _) = gang(train)
    torch.manual_seed(0)
    step = linear()
    expected = [float(step(torch.ones(rows, 3) * rows).detach()) for rows in (8, 5, 1)]
    assert one == other == pytest.approx(expected, rel=1e-5)
    assert "chosen: the batch divided, mean of gradients" in text
    assert "This is process 0 of 2." in text
    assert "Batches with fewer rows than there are processes, executed in each process: 1." in text


def test_steps_with_other_results_are_not_divided(gang: Any) -> None:
    def train(rank: int) -> list[str]:
        texts = []
        for layer in (nn.BatchNorm1d(3), nn.Dropout(0.5)):
            torch.manual_seed(0)
            step = execution.parallelize(linear(layer), seconds=5)
            inputs = torch.randn(7, 3)
            step(inputs)
            texts.append(str(execution.explain(step)))
        return texts

    (norm, dropout), _ = gang(train)
    assert "chosen: the whole batch in each process" in norm
    assert norm.count("dropped: number 1 of the result is") == 2
    assert "the step draws random numbers" in dropout


def test_dropout_is_divided_with_consent(gang: Any) -> None:
    def train(rank: int) -> Any:
        torch.manual_seed(0)
        seen: list[Any] = []
        net = nn.Sequential(nn.Dropout(0.5))

        def work(inputs: Any) -> Any:
            seen.append(net(inputs))
            return seen[-1]

        step = execution.parallelize(linear(work), new_random_numbers=True, always_divide=True)
        step(torch.ones(40, 3))
        return seen[-1].tolist(), torch.rand(1).item()

    (one, state), (other, other_state) = gang(train)
    assert one != other
    assert state == other_state


@pytest.mark.parametrize(
    ("ending", "reason", "own"),
    [
        (2.0, "process 1 failed: ValueError: no such picture", "no such picture\nand more"),
        (3.0, "", "None"),
    ],
)
def test_the_failure_of_a_process_ends_the_others_with_its_reason(
    gang: Any, ending: float, reason: str, own: str
) -> None:
    def train(rank: int) -> None:
        def work(inputs: Any) -> Any:
            if rank == 1 and inputs[0, 0] == 2:
                raise ValueError("no such picture\nand more")
            if rank == 1 and inputs[0, 0] == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            return inputs

        step = execution.parallelize(linear(work), always_divide=True, timeout=30)
        step(torch.ones(4, 3))
        step(torch.full((4, 3), ending))

    error, other = gang(train)
    assert type(error).__name__ == "ProcessLost"
    assert f"Process 0 of 2 lost the others in the exchange of gradients: {reason}" in str(error)
    assert str(other) == own


def test_batches_that_differ_and_numbers_that_do_not_fit_are_refused(gang: Any) -> None:
    def differ(rank: int) -> None:
        torch.manual_seed(0)
        step = execution.parallelize(linear(), always_divide=True)
        step(torch.arange(12.0).view(4, 3))
        step(torch.arange(12.0).view(4, 3).flip(0) if rank else torch.arange(12.0).view(4, 3))

    for error in gang(differ):
        assert isinstance(error, InvalidInput)
        assert "The batches of the processes differ" in str(error)


def changed_rate() -> Callable[[Any], Any]:
    halved = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)

    def changes(inputs: Any) -> Any:
        halved.step()
        halved.param_groups[0]["lr"] *= 0.5
        return inputs.mean()

    return changes


def with_closure() -> Callable[[Any], Any]:
    model = nn.Linear(3, 1)
    optimizer = torch.optim.LBFGS(model.parameters())

    def trains(inputs: Any) -> Any:
        def closure() -> Any:
            optimizer.zero_grad()
            loss = model(inputs).square().mean()
            loss.backward()
            return loss

        return optimizer.step(closure)

    return trains


@pytest.mark.parametrize(
    ("make", "given", "sentence"),
    [
        (with_closure, torch.ones(4, 3), "passes a closure to its optimizer"),
        (changed_rate, torch.ones(4, 3), "changes settings of its optimizer"),
        (linear, 3, "A step needs a batch, and got none"),
        (lambda: torch.Tensor.mean, torch.ones(4), "The step used no optimizer"),
    ],
)
def test_what_is_no_training_step_is_refused(
    gang: Any, make: Callable[[], Any], given: Any, sentence: str
) -> None:
    def train(rank: int) -> bool:
        step = execution.parallelize(make())
        with pytest.raises(InvalidInput, match=sentence):
            step(given)
        with pytest.raises(RuntimeError, match="The training has ended"):
            step(torch.ones(4, 3))
        with pytest.raises(RuntimeError, match="The training has ended"):
            execution.parallelize(step)
        return True

    assert gang(train) == [True, True]


def test_one_process_executes_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    step = execution.parallelize(linear())
    assert step(torch.ones(2, 3)).dim() == 0
    assert "There is one process" in str(execution.explain(step))
    assert (step.rank, step.size) == (0, 1)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InvalidInput, match="are missing: RANK, MASTER_ADDR, MASTER_PORT"):
        execution.parallelize(linear())
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("RANK", "2")
    with pytest.raises(InvalidInput, match="RANK is '2' and WORLD_SIZE '2'"):
        execution.parallelize(linear())
