"""Weights are scored together as one by one, and bad ones have a sentence of their own."""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from carrel.hub.errors import InvalidInput

from ... import torch_packages
from ...courses.leaderboards.weights_samples import PERFECT, TEACHERS, linear, safetensors

torch, _execution = torch_packages.load()

from carrel.extensions.leaderboard import program, scores  # noqa: E402  # they need PyTorch
from carrel.extensions.leaderboard.scores import (  # noqa: E402
    HiddenTest,
    WeightsScore,
    hidden_test,
    public_rows,
    score,
)

_NAMES = {torch.float32: "F32", torch.float16: "F16", torch.int64: "I64"}


def saved(state: Mapping[str, object]) -> bytes:
    """Return a state as ``safetensors.torch.save`` writes it."""
    header, data = {}, b""
    for name, tensor in state.items():
        content = (
            tensor.contiguous().view(torch.uint8).numpy().tobytes()
            if tensor.dim()
            else tensor.reshape(1).view(torch.uint8).numpy().tobytes()
        )
        place = [len(data), len(data) + len(content)]
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": place,
        }
        data += content
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def cnn() -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 36, 3),
    )


def images(count: int = 300, metric: str = "accuracy") -> HiddenTest:
    torch.manual_seed(1)
    data = torch.randn(count, 1, 8, 8), torch.randint(3, (count,))
    return hidden_test(cnn(), data, metric=metric, public_percent=30, seed=7)


def one_layer(metric: str = "accuracy", targets: object = None) -> HiddenTest:
    inputs = torch.randn(400, 2, generator=torch.Generator().manual_seed(7))
    data = inputs, inputs.argmax(1) if targets is None else targets
    layer = torch.nn.Linear(2, 2, bias=False)
    return hidden_test(layer, data, metric=metric, public_percent=50, seed=7)


def test_scores_of_models_together_equal_those_of_each_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scores, "FEWEST_CALLS", 2)
    test = images()
    contents = {}
    for number in range(12):
        torch.manual_seed(number)
        contents[f"w-{number}"] = saved(cnn().state_dict())
    together = score(test, contents)
    assert together == score(test, contents, together=False)
    assert together == {name: score(test, {name: each})[name] for name, each in contents.items()}
    assert len({each.public for each in together.values()}) > 3


def test_the_public_and_the_private_score_are_of_different_rows() -> None:
    rows = public_rows(400, 30, 7)
    assert int(rows.sum()) == 120
    assert bool((rows == public_rows(400, 30, 7)).all())
    assert not bool((rows == public_rows(400, 30, 8)).all())
    assert [int(public_rows(2, percent, 1).sum()) for percent in (1, 99)] == [1, 1]
    found = score(one_layer(), {"good": linear(*PERFECT), "bad": linear(0, 1, 1, 0)})
    assert found == {
        "good": WeightsScore(public=1.0, private=1.0),
        "bad": WeightsScore(public=0.0, private=0.0),
    }


def test_each_bad_file_has_a_sentence_and_costs_no_other_its_score() -> None:
    nan = float("nan")
    contents = {
        "good": linear(*PERFECT),
        "pickle": b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00]",
        "name": linear(*PERFECT, name="other"),
        "extra": safetensors({"bias": ((2,), (0, 0)), "weight": ((2, 2), PERFECT)}),
        "shape": safetensors({"weight": ((4,), PERFECT)}),
        "dtype": saved({"weight": torch.eye(2, dtype=torch.float16)}),
        "nan": linear(nan, 0, 0, 1),
        "huge": linear(3e38, 3e38, 3e38, 3e38),
        "same": linear(*PERFECT),
    }
    found = score(one_layer(), contents)
    assert found["good"] == found["same"] == WeightsScore(public=1.0, private=1.0)
    sentences = {
        "pickle": "The file is a pickle",
        "name": "The weights lack weight.",
        "extra": "The weights have bias, which the architecture does not have.",
        "shape": "weight of the weights has the shape (4,). The architecture has (2, 2).",
        "dtype": "weight of the weights has the dtype torch.float16. The architecture has "
        "torch.float32.",
        "nan": "weight of the weights has NaN or infinite numbers.",
        "huge": "The outputs of the model have NaN or infinite numbers.",
    }
    for name, sentence in sentences.items():
        assert found[name].problem.startswith(sentence), found[name]
        assert found[name].public is None


@pytest.mark.parametrize(
    ("metric", "expected"), [("rmse", 2.0), ("mae", 2.0), ("cross-entropy", 0.693147)]
)
def test_metrics_are_means_over_examples(metric: str, expected: float) -> None:
    targets = (
        torch.zeros(400, dtype=torch.int64)
        if metric == "cross-entropy"
        else torch.full((400, 2), 2.0)
    )
    found = score(one_layer(metric, targets), {"zero": linear(0, 0, 0, 0)})["zero"]
    assert (found.public, found.private) == (expected, expected)


def test_the_teachers_mistakes_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "leaderboard.py").write_text("def architecture(): ...")
    with pytest.raises(InvalidInput, match="has no function hidden_data"):
        program.teachers_module(tmp_path)
    rows = torch.zeros(3, 2)
    given = {"metric": "accuracy", "public_percent": 50, "seed": 1}
    with pytest.raises(InvalidInput, match="does not return a torch"):
        hidden_test(None, (rows, rows), **given)
    for data in (None, (rows,), (rows, rows[:2]), (rows, 3), (rows, torch.tensor(3))):
        with pytest.raises(InvalidInput, match="does not return inputs and targets"):
            hidden_test(torch.nn.Linear(2, 2), data, **given)
    with pytest.raises(InvalidInput, match="fewer than two examples"):
        public_rows(1, 50, 1)
    with pytest.raises(
        InvalidInput, match=r"accuracy cannot compare outputs of the shape \(64, 2\)"
    ):
        score(one_layer(targets=torch.zeros(400, 2)), {"good": linear(*PERFECT)})


class Lookup(torch.nn.Module):
    """Its weights have places in a table."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("place", torch.zeros((), dtype=torch.int64))
        self.table = torch.nn.Parameter(torch.eye(2))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs @ self.table + self.table[self.place]


def test_weights_that_make_the_model_fail_cost_no_other_its_score() -> None:
    test = hidden_test(
        Lookup(),
        (torch.eye(2), torch.tensor([0, 1])),
        metric="accuracy",
        public_percent=50,
        seed=1,
    )
    good = {"place": torch.tensor(1), "table": torch.eye(2)}
    found = score(test, {"good": saved(good), "bad": saved(good | {"place": torch.tensor(9)})})
    assert found["bad"] == WeightsScore(problem="The model fails on the hidden data.")
    assert found["good"].public is not None


class Narrow(torch.nn.Module):
    """Its weights decide the shape and the dtype of its outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.tensor(0))
        self.table = torch.nn.Parameter(torch.eye(2))

    def forward(self, inputs: torch.Tensor) -> object:
        found = inputs @ self.table
        outputs = [found, found[:1], found[:, :1].squeeze(1), found.to(torch.complex64), None]
        return outputs[int(self.rows)]


def test_outputs_that_cannot_be_scored_are_a_verdict_of_their_submission() -> None:
    test = hidden_test(
        Narrow(),
        (torch.eye(2), torch.tensor([0, 1])),
        metric="accuracy",
        public_percent=50,
        seed=1,
    )
    contents = {
        str(rows): saved({"rows": torch.tensor(rows), "table": torch.eye(2)}) for rows in range(5)
    }
    found = score(test, contents)
    assert found["0"] == WeightsScore(public=1.0, private=1.0)
    sentence = "With these weights: The architecture does not return a tensor"
    assert found["1"].problem.startswith(sentence)
    assert found["2"].problem.startswith("With these weights: The metric accuracy cannot compare")
    assert found["3"].problem == "The model fails on the hidden data."
    assert found["4"].problem.startswith(sentence)


def test_the_program_scores_groups_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    for name, content in {"a": linear(*PERFECT), "b": linear(0, 1, 1, 0)}.items():
        (tmp_path / "weights").mkdir(exist_ok=True)
        (tmp_path / "weights" / name).write_bytes(content)
    (tmp_path / "teacher").mkdir()
    (tmp_path / "teacher" / "leaderboard.py").write_bytes(TEACHERS)
    (tmp_path / "order.json").write_text(
        json.dumps({"metric": "accuracy", "public_percent": 50, "seed": 7})
    )
    try:
        evaluation = program.prepare()
        assert float(torch.tensor([1e-40]) * 1) == 0, "denormal numbers would make a model slow"
    finally:
        torch.set_flush_denormal(False)
    assert evaluation is not None
    evaluation.score(["b"])
    evaluation.score(["a"])
    printed = [json.loads(line)["scores"] for line in capsys.readouterr().out.splitlines() if line]
    assert printed[0] == {}
    assert [{name: each["public"] for name, each in found.items()} for found in printed[1:]] == [
        {"b": 0.0},
        {"a": 1.0},
    ]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "teacher" / "leaderboard.py").write_text("1 / 0")
    assert program.prepare() is None
    assert "leaderboard.py: ZeroDivisionError" in capsys.readouterr().out
