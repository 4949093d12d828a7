"""Fused training against ``torch.optim`` in a loop."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from carrel.hub.errors import InvalidInput

from ... import torch_packages

torch, execution = torch_packages.load()
nn = torch.nn
cross_entropy = nn.functional.cross_entropy

RATES = [0.01, 0.02, 0.05]
OPTIMIZERS = {
    "sgd": (torch.optim.SGD, {}),
    "momentum": (torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.01}),
    "adam": (torch.optim.Adam, {"weight_decay": 0.01}),
    "adamw": (torch.optim.AdamW, {"weight_decay": 0.1}),
}


def net() -> Any:
    return nn.Sequential(
        # Without a bias: its gradient would be a rounding error, of which Adam takes the sign.
        nn.Conv2d(1, 3, 3, bias=False),
        nn.BatchNorm2d(3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(48, 4),
    )


def train_by_torch(models: list[Any], kind: Any, more: dict[str, Any], data: Any) -> list[Any]:
    """Train each model with its own optimizer of PyTorch; return the losses of each step."""
    optimizers = [
        kind(model.parameters(), lr=rate, **more) for model, rate in zip(models, RATES, strict=True)
    ]
    losses = []
    for inputs, targets in data:
        found = []
        for model, optimizer in zip(models, optimizers, strict=True):
            optimizer.zero_grad()
            loss = cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
            found.append(loss.detach())
        losses.append(torch.stack(found))
    return losses


def batches(sizes: tuple[int, ...] = (6, 6, 6, 2)) -> list[Any]:
    return [(torch.randn(size, 1, 6, 6), torch.randint(0, 4, (size,))) for size in sizes]


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("calls", [1, pytest.param(10_000_000, marks=pytest.mark.slow)])
def test_fused_steps_are_those_of_an_optimizer_for_each_model(name: str, calls: int) -> None:
    kind, more = OPTIMIZERS[name]
    models = [net().double() for _ in RATES]
    copies = copy.deepcopy(models)
    data = [(inputs.double(), targets) for inputs, targets in batches()]
    settings = execution.OptimizerSettings(name="sgd" if name == "momentum" else name, **more)
    training = execution.fuse_train(
        models, cross_entropy, learning_rates=RATES, optimizer=settings, calls=calls
    )

    losses = [training.step(*batch) for batch in data]

    for found, expected in zip(losses, train_by_torch(copies, kind, more, data), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    for model, other in zip(models, copies, strict=True):
        for part, tensor in other.state_dict().items():
            torch.testing.assert_close(model.state_dict()[part], tensor, rtol=1e-6, atol=1e-6)
    (choice,) = execution.explain(training).choices.values()
    dropped = [each for each in choice.results if each.reason.startswith(("dropped", "failed"))]
    assert not dropped, str(choice)
    assert (choice.results[-1].seconds > 0) == (calls > 1), str(choice)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.bfloat16, 1e-2), (torch.float32, 1e-5), (torch.float64, 1e-12)]
)
def test_steps_of_every_precision_are_those_of_torch(
    name: str, dtype: Any, tolerance: float
) -> None:
    kind, more = OPTIMIZERS[name]
    settings = execution.OptimizerSettings(name="sgd" if name == "momentum" else name, **more)
    weights = {"weight": torch.linspace(-1, 1, 12).reshape(len(RATES), 4).to(dtype)}
    others = [nn.Parameter(row.clone()) for row in weights["weight"]]
    optimizers = [kind([each], lr=rate, **more) for each, rate in zip(others, RATES, strict=True)]
    state = settings.new_state(weights)
    rates = torch.tensor(RATES, dtype=torch.float64)
    for number in range(1, 6):
        gradients = torch.randn(len(RATES), 4).to(dtype)
        steps = torch.full((len(RATES),), float(number), dtype=torch.float64)
        settings.apply(weights, {"weight": gradients}, state, rates, steps)
        for each, gradient, optimizer in zip(others, gradients, optimizers, strict=True):
            each.grad = gradient
            optimizer.step()
    expected = torch.stack([each.detach() for each in others])
    torch.testing.assert_close(weights["weight"], expected, rtol=tolerance, atol=tolerance)


def test_adam_in_bfloat16_trains_models() -> None:
    models = [nn.Linear(4, 3).to(torch.bfloat16) for _ in RATES]
    copies = copy.deepcopy(models)
    training = execution.fuse_train(
        models, cross_entropy, learning_rates=RATES, optimizer="adam", calls=1
    )
    data = [(torch.randn(5, 4).to(torch.bfloat16), torch.randint(0, 3, (5,))) for _ in range(3)]
    losses = [training.step(*batch) for batch in data]
    expected = train_by_torch(copies, torch.optim.Adam, {}, data)
    torch.testing.assert_close(losses, expected, rtol=5e-2, atol=5e-2)


def test_a_model_with_nan_does_not_change_the_others() -> None:
    models = [net() for _ in RATES]
    with torch.no_grad():
        models[1][0].weight.fill_(torch.nan)
    copies = copy.deepcopy(models)
    data = batches((4, 4))
    training = execution.fuse_train(models, cross_entropy, learning_rates=RATES, calls=1)
    losses = [training.step(*batch) for batch in data]
    expected = train_by_torch(copies, torch.optim.SGD, {}, data)
    torch.testing.assert_close(losses, expected, equal_nan=True)
    assert losses[1].isnan().tolist() == [False, True, False]
    for place in (0, 2):
        torch.testing.assert_close(models[place][4].weight, copies[place][4].weight)


def test_frozen_weights_stay_and_own_batches_are_used() -> None:
    models = [net() for _ in RATES]
    for model in models:
        model[0].weight.requires_grad_(False)
    before = [model[0].weight.clone() for model in models]
    alone = copy.deepcopy(models[2])
    inputs, targets = torch.randn(3, 5, 1, 6, 6), torch.randint(0, 4, (3, 5))
    training = execution.fuse_train(
        models, cross_entropy, learning_rates=0.1, per_model=True, calls=1
    )
    losses = training.step(inputs, targets)
    torch.testing.assert_close(losses[2], cross_entropy(alone(inputs[2]), targets[2]))
    assert all(
        torch.equal(model[0].weight, weight) for model, weight in zip(models, before, strict=True)
    )


def test_dropout_is_fused_with_consent_and_trained_one_by_one_without() -> None:
    def model() -> Any:
        return nn.Sequential(nn.Linear(4, 50), nn.Dropout(), nn.Linear(50, 3))

    batch = torch.randn(5, 4), torch.randint(0, 3, (5,))
    apart = execution.fuse_train([model(), model()], cross_entropy, learning_rates=0.1)
    apart.step(*batch)
    assert "new_random_numbers=True" in str(execution.explain(apart))

    models = [model() for _ in range(3)]
    models[1:] = [copy.deepcopy(models[0]) for _ in range(2)]
    together = execution.fuse_train(
        models, cross_entropy, learning_rates=0.1, new_random_numbers=True, calls=1
    )
    losses = together.step(*batch)
    (choice,) = execution.explain(together).choices.values()
    assert not [each for each in choice.results if "failed" in each.reason], str(choice)
    assert all(each[1].training for each in models)
    # Equal models with equal data: only the numbers that dropout draws differ.
    assert len(set(losses.tolist())) == 3


def test_a_wrong_batch_changes_nothing() -> None:
    models = [net() for _ in RATES]
    before = copy.deepcopy([model.state_dict() for model in models])
    training = execution.fuse_train(models, cross_entropy, learning_rates=RATES, calls=1)
    with pytest.raises(RuntimeError):
        training.step(torch.randn(2, 3, 6, 6), torch.zeros(2, dtype=torch.long))
    for model, state in zip(models, before, strict=True):
        for name, tensor in state.items():
            assert torch.equal(model.state_dict()[name], tensor), name


def test_refused_trainer_says_what_is_accepted() -> None:
    models = [net(), net()]
    with pytest.raises(InvalidInput, match="There are 3 learning rates"):
        execution.fuse_train(models, cross_entropy, learning_rates=RATES)
    with pytest.raises(InvalidInput, match=r"'lion' cannot be fused\. One of"):
        execution.fuse_train(models, cross_entropy, learning_rates=0.1, optimizer="lion")
    with pytest.raises(InvalidInput, match="shared by"):
        execution.fuse_train([models[0]] * 2, cross_entropy, learning_rates=0.1)
