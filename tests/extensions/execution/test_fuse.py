"""Fused models against a loop: the same results, and sentences where they are not fused."""

from __future__ import annotations

import contextlib
import copy
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.errors import InvalidInput

from ... import torch_packages
from ...property_settings import examples

torch, execution = torch_packages.load()
nn = torch.nn
convolution = importlib.import_module("carrel.extensions.execution.converted_layers.convolution")


@pytest.fixture(autouse=True, scope="module")
def _own_packages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


NOT_COMPILED = {"calls": 1}
"""So few calls that no compilation can pay."""


def mlp(inputs: int = 6, *, width: int = 5, activation: Any = None) -> Any:
    return nn.Sequential(nn.Linear(inputs, width), activation or nn.ReLU(), nn.Linear(width, 3))


def loop(models: list[Any], *inputs: Any) -> list[Any]:
    with torch.no_grad():
        return [model(*inputs) for model in models]


def assert_same(found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, equal_nan=True)


class Recurrent(nn.Module):  # type: ignore[misc]
    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.layer = kind(4, 5, batch_first=True)

    def forward(self, inputs: Any) -> Any:
        return self.layer(inputs)[0][:, -1]


class Scaled(nn.Module):  # type: ignore[misc]
    """Its scale is no parameter."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.layer = nn.Linear(4, 2)

    def forward(self, inputs: Any) -> Any:
        return {"scores": self.layer(inputs) * self.scale, "twice": (inputs, self.layer.bias * 2)}


def drawn_model(draw: Any, dtype: Any) -> Any:
    layers: list[Any] = []
    for _ in range(draw(st.integers(1, 3))):
        layers.append(nn.Linear(4, 4))
        layers.append(draw(st.sampled_from([nn.ReLU, nn.Tanh, nn.GELU, lambda: nn.LayerNorm(4)]))())
        if draw(st.booleans()):
            layers.append(nn.BatchNorm1d(4))
    return nn.Sequential(*layers).eval().to(dtype)


@st.composite
def model_lists(draw: Any) -> list[Any]:
    dtype = draw(st.sampled_from([torch.float32, torch.float64]))
    found: list[Any] = []
    for _ in range(draw(st.integers(1, 3))):
        model = drawn_model(draw, dtype)
        for _ in range(draw(st.integers(1, 4))):
            other = copy.deepcopy(model)
            for parameter in other.parameters():
                nn.init.normal_(parameter)
            found.append(other)
    return draw(st.permutations(found))


@examples(15, 150)
@given(models=model_lists(), batch=st.integers(1, 3), per_model=st.booleans())
def test_random_models_have_the_results_of_a_loop(
    models: list[Any], batch: int, per_model: bool
) -> None:
    dtype = next(models[0].parameters()).dtype
    shape = (len(models), batch, 4) if per_model else (batch, 4)
    inputs = torch.randn(shape, dtype=dtype)
    fused = execution.fuse(models, per_model=per_model, calls=1, seconds=0.0)

    for _ in range(2):
        found = fused(inputs)
        with torch.no_grad():
            expected = [
                model(inputs[index] if per_model else inputs) for index, model in enumerate(models)
            ]
        for one, other in zip(found, expected, strict=True):
            assert execution.equality.difference(other, one) == ""


def test_another_architecture_is_executed_apart_and_the_difference_is_named() -> None:
    models = [mlp(), mlp(width=4), mlp(), mlp(activation=nn.Tanh())]
    fused = execution.fuse(models, **NOT_COMPILED)
    inputs = torch.randn(2, 6)

    assert_same(fused(inputs), loop(models, inputs))

    text = str(execution.explain(fused))
    assert "Models 0, 2 on 2 by 6" in text
    assert (
        "Model 1 is executed apart: 0.weight is (4, 6) of torch.float32 on cpu instead of" in text
    )
    assert "Model 3 is executed apart: 1 is torch.nn.modules.activation.Tanh instead of" in text


def test_an_attribute_that_is_no_weight_sets_a_model_apart_and_outputs_may_be_nested() -> None:
    models = [Scaled(1.0), Scaled(2.0), Scaled(1.0)]
    inputs = torch.randn(2, 4)
    fused = execution.fuse(models, **NOT_COMPILED)

    for found, expected in zip(fused(inputs), loop(models, inputs), strict=True):
        torch.testing.assert_close(found["scores"], expected["scores"])
        torch.testing.assert_close(found["twice"], expected["twice"])
    assert "Model 1 is executed apart: the model.scale is 2.0 instead of 1.0." in str(
        execution.explain(fused)
    )


def test_nan_in_one_model_stays_in_it() -> None:
    models = [mlp() for _ in range(4)]
    with torch.no_grad():
        models[2][0].weight[0, 0] = torch.nan
    inputs = torch.randn(3, 6)

    found = execution.fuse(models, classifier=True, **NOT_COMPILED)(inputs)

    assert_same(found, loop(models, inputs))
    assert [bool(each.isnan().any()) for each in found] == [False, False, True, False]


def test_weights_loaded_later_count_and_memory_is_shared() -> None:
    models = [mlp() for _ in range(3)]
    inputs = torch.randn(3, 6)
    fused = execution.fuse(models, **NOT_COMPILED)
    fused(inputs)

    models[1].load_state_dict(mlp().state_dict())

    assert_same(fused(inputs), loop(models, inputs))
    places = {model[0].weight.untyped_storage().data_ptr() for model in models}
    assert len(places) == 1


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_recurrent_layers_are_executed_one_by_one_and_it_is_said(kind: Any) -> None:
    models = [Recurrent(kind) for _ in range(3)]
    inputs = torch.randn(2, 3, 4)
    fused = execution.fuse(models)

    assert_same(fused(inputs), loop(models, inputs))
    assert f"one by one: layer is {kind.__name__}, for which" in str(execution.explain(fused))


@pytest.mark.parametrize(
    ("kind", "more", "shape"),
    [
        (nn.LSTM, {}, (5, 3, 4)),
        (nn.GRU, {"batch_first": True}, (3, 5, 4)),
        (nn.LSTM, {"num_layers": 2, "bidirectional": True, "batch_first": True}, (3, 5, 4)),
        (nn.GRU, {"num_layers": 2, "bidirectional": True, "bias": False}, (5, 4)),
        (nn.LSTM, {"dropout": 0.5, "num_layers": 2}, (5, 4)),
    ],
)
def test_recurrent_layers_are_converted_by_consent(
    kind: Any, more: dict[str, Any], shape: tuple[int, ...]
) -> None:
    models = [kind(4, 6, **more).eval() for _ in range(3)]
    inputs = torch.randn(shape)
    fused = execution.fuse(models, convert_recurrent=True, calls=10)

    for _ in range(2):
        assert_same(fused(inputs), loop(models, inputs))
    (choice,) = execution.explain(fused).choices.values()
    assert choice.results[1].seconds > 0, str(choice)
    # With a state, as another kind of inputs.
    size = (models[0].num_layers * (2 if models[0].bidirectional else 1), *shape[1:-1], 6)
    if models[0].batch_first:
        size = (size[0], shape[0], 6)
    state = torch.randn(size)
    pair = (state, torch.randn(size)) if kind is nn.LSTM else state
    expected = [model(inputs, pair) for model in models]
    for _ in range(2):
        assert_same(fused(inputs, pair), expected)
    assert "failed" not in str(execution.explain(fused))


def test_recurrent_layers_that_cannot_be_converted_are_executed_one_by_one() -> None:
    models = [nn.LSTM(4, 6, proj_size=2) for _ in range(3)]
    inputs = torch.randn(5, 3, 4)
    fused = execution.fuse(models, convert_recurrent=True, calls=10)

    assert_same(fused(inputs), loop(models, inputs))
    assert "LSTM and has proj_size" in str(execution.explain(fused))


def test_batch_norm_in_training_mode_writes_its_statistics_once_a_call() -> None:
    models = [nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)) for _ in range(3)]
    copies = copy.deepcopy(models)
    inputs = torch.randn(5, 6)
    fused = execution.fuse(models)

    for _ in range(2):
        assert_same(fused(inputs), loop(copies, inputs))

    assert [int(model[1].num_batches_tracked) for model in models] == [2, 2, 2]
    torch.testing.assert_close(models[1][1].running_mean, copies[1][1].running_mean)
    assert "call model.eval()" in str(execution.explain(fused))


def test_dropout_in_training_mode_is_executed_one_by_one() -> None:
    fused = execution.fuse([mlp(activation=nn.Dropout()) for _ in range(2)])
    fused(torch.randn(1, 6))
    assert "1 is Dropout in training mode" in str(execution.explain(fused))


def test_models_with_hooks_shared_weights_or_no_weights_are_executed_one_by_one() -> None:
    called = []
    hooked = [mlp(), mlp()]
    hooked[1].register_forward_hook(lambda *_: called.append(1))
    shared = [mlp(), mlp()]
    shared[1][0].weight = shared[0][0].weight
    inputs = torch.randn(1, 6)
    for models, sentence in (
        (hooked, "Sequential has hooks, which would be called once for all models"),
        (shared, "0.weight is shared by all models"),
        ([nn.ReLU(), nn.ReLU()], "the models have no weights"),
    ):
        fused = execution.fuse(models)
        assert_same(fused(inputs), loop(models, inputs))
        assert sentence in str(execution.explain(fused))
    assert len(called) == 2


HOOKS: dict[str, Callable[[Any, list[int]], Any]] = {
    "forward": lambda model, called: model[0].register_forward_hook(lambda *_: called.append(1)),
    "before": lambda model, called: model.register_forward_pre_hook(lambda *_: called.append(1)),
    "of all modules": lambda _, called: nn.modules.module.register_module_forward_hook(
        lambda module, *_: called.append(1) if isinstance(module, nn.Linear) else None
    ),
}


@pytest.mark.parametrize("kind", HOOKS)
def test_hooks_that_are_registered_after_the_choice_are_called(kind: str) -> None:
    models, called = [mlp() for _ in range(20)], []
    inputs = torch.randn(1, 6)
    fused = execution.fuse(models, **NOT_COMPILED)
    fused(inputs)
    (choice,) = execution.explain(fused).choices.values()
    assert "fused" in choice.chosen
    handle = HOOKS[kind](models[1], called)
    try:
        fused(inputs)
        assert called
        again = execution.fuse(models, **NOT_COMPILED)
        again(inputs)
    finally:
        handle.remove()
    assert "modes or hooks were changed after the choice" in str(execution.explain(fused))
    if kind == "of all modules":
        assert "a hook is registered for all modules" in str(execution.explain(again))
    called.clear()
    assert_same(fused(inputs), loop(models, inputs))
    assert not called


CHANGES: dict[str, Callable[[Any], Any]] = {
    "load_state_dict": lambda model: model.load_state_dict(
        {name: value + 1 for name, value in model.state_dict().items()}
    ),
    "data": lambda model: setattr(model[0].weight, "data", torch.ones(6, 6)),
    "data in place": lambda model: model[0].weight.data.mul_(2),
    "NumPy": lambda model: model[1].running_var.numpy().fill(2.0),
    "strides": lambda model: setattr(model[0].weight, "data", model[0].weight.data.t()),
    "parameter": lambda model: setattr(model[0], "bias", nn.Parameter(torch.ones(6))),
    "no bias": lambda model: setattr(model[0], "bias", None),
    "attribute": lambda model: setattr(model[1], "eps", 1.0),
    "class": lambda model: setattr(model[2], "__class__", nn.Tanh),
    "forward": lambda model: setattr(model[2], "forward", lambda value: value * 2),
    "layer": lambda model: model.append(nn.Tanh()),
    "hook": lambda model: model[0].register_forward_hook(lambda *found: found[-1] * 2),
    "parametrization": lambda model: nn.utils.parametrize.register_parametrization(
        model[0], "weight", nn.Tanh()
    ),
}


@examples(50, 500)
@given(changes=st.lists(st.tuples(st.sampled_from(sorted(CHANGES)), st.integers(0, 3)), max_size=4))
def test_random_changes_of_fused_models_count(changes: list[tuple[str, int]]) -> None:
    models = [nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.ReLU()).eval() for _ in range(4)]
    inputs = torch.randn(2, 6)
    fused = execution.fuse(models, **NOT_COMPILED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            execution.fused_models, "choose", lambda found, *_, **__: (found[1].build(), None)
        )
        fused(inputs)
    for name, place in changes:
        with contextlib.suppress(KeyError, RuntimeError):  # not possible after another change
            CHANGES[name](models[place])
        assert_same(fused(inputs), loop(models, inputs))


class Unregistered(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 2)
        self.tables = {"shift": torch.ones(2)}

    def forward(self, inputs: Any) -> Any:
        return self.layer(inputs) + self.tables["shift"]


def test_models_with_tensors_that_are_not_registered_are_executed_one_by_one() -> None:
    models = [Unregistered() for _ in range(20)]
    inputs = torch.randn(1, 6)
    fused = execution.fuse(models, **NOT_COMPILED)
    assert_same(fused(inputs), loop(models, inputs))
    models[3].tables["shift"].mul_(2)
    assert_same(fused(inputs), loop(models, inputs))
    assert "the model has a tensor or layer in tables" in str(execution.explain(fused))


class _Batch:
    """Inputs in an object that PyTorch does not look into, and whose text is always the same."""

    def __init__(self, content: Any) -> None:
        self.content = content

    def __repr__(self) -> str:
        return "a batch"


class _OfBatches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, batch: _Batch) -> Any:
        return self.linear(batch.content)


def test_inputs_in_an_object_are_read_in_each_call() -> None:
    models = [_OfBatches() for _ in range(4)]
    fused = execution.fuse(models)
    for _ in range(3):
        batch = _Batch(torch.randn(2, 3))
        assert_same(fused(batch), [model(batch) for model in models])


def test_fused_models_follow_autocast() -> None:
    models = [mlp() for _ in range(4)]
    fused, inputs = execution.fuse(models), torch.randn(3, 6)
    assert_same(fused(inputs), loop(models, inputs))
    with torch.autocast("cpu", torch.bfloat16):
        assert {each.dtype for each in fused(inputs)} == {torch.bfloat16}
    assert {each.dtype for each in fused(inputs)} == {torch.float32}


def test_a_random_function_in_a_model_is_never_fused() -> None:
    class Noisy(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 2)

        def forward(self, inputs: Any) -> Any:
            return nn.functional.dropout(self.layer(inputs), 0.5)

    fused = execution.fuse([Noisy(), Noisy()], **NOT_COMPILED)
    fused(torch.ones(4, 6))
    (choice,) = execution.explain(fused).choices.values()
    assert choice.chosen == "plain"
    assert "random" in choice.results[1].reason


def test_wrong_inputs_raise_what_the_model_raises_and_the_next_call_works() -> None:
    models = [mlp() for _ in range(2)]
    fused = execution.fuse(models, **NOT_COMPILED)
    for wrong in (torch.randn(2, 7), torch.randn(2, 6, dtype=torch.float64)):
        with pytest.raises(RuntimeError, match=r"shapes cannot|dtype"):
            fused(wrong)
    inputs = torch.randn(2, 6)
    assert_same(fused(inputs), loop(models, inputs))


def test_refused_arguments_say_what_is_accepted() -> None:
    for wrong, sentence in (
        ([], "There is no model"),
        ([mlp(), mlp().state_dict()], "Model 1 is"),
        (mlp(), "is Sequential, one module"),  # its layers are no models
        (3, "is int"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            execution.fuse(wrong)
    assert_same(execution.fuse(nn.ModuleList([mlp(), mlp()]))(torch.ones(2, 6))[:0], [])
    with pytest.raises(InvalidInput, match="dimension is that of the 2 models"):
        execution.fuse([mlp(), mlp()], per_model=True)(torch.randn(3, 6))
    with pytest.raises(InvalidInput, match="no explanation of Linear"):
        execution.explain(nn.Linear(1, 1))


def test_after_eight_shapes_models_are_executed_one_by_one_with_a_note() -> None:
    models = [mlp() for _ in range(2)]
    fused = execution.fuse(models, calls=1, seconds=0.0)
    for batch in range(1, 12):
        inputs = torch.randn(batch, 6)
        assert_same(fused(inputs), loop(models, inputs))
    report = execution.explain(fused)
    assert len(report.choices) == 8
    assert len([note for note in report.notes if "Pad the inputs" in note]) == 1


def test_memory_that_is_too_small_for_a_group_means_smaller_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    models = [mlp() for _ in range(40)]
    vmap = execution.fused_execution.vmap

    def in_little_memory(function: Any, in_dims: Any) -> Any:
        def call(weights: Any, inputs: Any) -> Any:
            if len(weights[0]) > 20:
                raise torch.OutOfMemoryError("not enough memory")
            return vmap(function, in_dims=in_dims)(weights, inputs)

        return call

    monkeypatch.setattr(execution.fused_execution, "vmap", in_little_memory)
    fused = execution.fuse(models, **NOT_COMPILED)
    inputs = torch.randn(2, 6)
    for _ in range(3):
        assert_same(fused(inputs), loop(models, inputs))
    (choice,) = execution.explain(fused).choices.values()
    results = {each.name: each for each in choice.results}
    assert results["fused in groups of 40"].reason.startswith("failed: OutOfMemoryError: not")
    assert results["fused in groups of 10"].seconds > 0


def test_memory_that_is_too_small_for_the_weights_means_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: Any) -> Any:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(execution.fused_models, "stack", full)
    models = [mlp() for _ in range(3)]
    fused = execution.fuse(models, **NOT_COMPILED)
    for inputs in (torch.randn(2, 6), torch.randn(2, 6), torch.randn(4, 6)):
        assert_same(fused(inputs), loop(models, inputs))
    (note,) = execution.explain(fused).notes
    assert "Models 0 to 2 are executed one by one: failed: RuntimeError: DefaultCPU" in note


def test_memory_that_is_missing_later_means_one_by_one() -> None:
    models = [mlp() for _ in range(2)]
    fused = execution.fuse(models, **NOT_COMPILED)
    inputs = torch.randn(2, 6)
    assert_same(fused(inputs), loop(models, inputs))
    assert execution.explain(fused).choices

    def full(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("not enough memory")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execution.fused_execution, "functional_call", full)
        assert_same(fused(inputs), loop(models, inputs))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda state: state.pop("0.bias"), "Weights 1 lack 0.bias"),
        (lambda state: state.update(more=torch.ones(1)), "Weights 1 have more"),
        (lambda state: state.update({"0.bias": torch.ones(9)}), r"the shape \(9,\)"),
        (lambda state: state.update({"0.bias": torch.ones(5).double()}), "the dtype"),
        (lambda state: state.update({"0.bias": [1.0]}), "0.bias of weights 1 is list"),
        (
            lambda state: state.update({f"k{n}": torch.ones(1) for n in range(300)}),
            "Weights 1 have k0, k1, k10, k100, k101, k102, k103, k104 and 292 more, which",
        ),
    ],
)
def test_weights_of_another_architecture_are_refused_by_name(change: Any, sentence: str) -> None:
    states = [mlp().state_dict() for _ in range(2)]
    change(states[1])
    with pytest.raises(InvalidInput, match=sentence):
        execution.models_of(mlp(), states)


@pytest.mark.parametrize(
    ("states", "sentence"),
    [
        ([None], "Weights 0 are NoneType"),
        (["weights.pt"], r"Weights 0 are str\. A mapping .* safetensors.torch.load_file"),
        ([mlp()], "Weights 0 are Sequential"),
        (mlp().state_dict(), "weights of one model"),
        (None, "The weights are NoneType"),
    ],
)
def test_what_is_no_list_of_weights_is_refused(states: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        execution.models_of(mlp(), states)


def test_wrong_names_and_architectures_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"There are 2 weights, and names for 1\."):
        execution.models_of(mlp(), [mlp().state_dict()] * 2, names=["ada"])
    with pytest.raises(InvalidInput, match="architecture is str"):
        execution.models_of("mlp", [mlp().state_dict()])


def test_models_of_weights_have_them() -> None:
    authors = [mlp() for _ in range(3)]
    inputs = torch.randn(2, 6)
    models = execution.models_of(mlp(), [author.state_dict() for author in authors])
    assert_same(loop(models, inputs), loop(authors, inputs))


@pytest.mark.slow
def test_compiled_groups_have_the_results_of_a_loop_and_many_of_them_are_compiled() -> None:
    """Dynamo's limit of recompilations would be reached with one code object for all."""
    for _ in range(10):
        models = [mlp() for _ in range(7)]
        inputs = torch.randn(4, 6)
        fused = execution.fuse(models, calls=10_000_000)
        assert_same(fused(inputs), loop(models, inputs))
        (choice,) = execution.explain(fused).choices.values()
        assert choice.results[-1].name == "fused in groups of 7, compiled"
        assert choice.results[-1].seconds > 0, str(choice)
        assert_same(fused(inputs), loop(models, inputs))


@pytest.mark.slow
def test_compiled_groups_follow_weights_and_read_no_inputs_of_another_kind() -> None:
    models = [mlp() for _ in range(5)]
    inputs = torch.randn(6, 12)[:, ::2]
    negated = torch.complex(inputs.contiguous(), inputs.contiguous()).conj().imag
    assert negated.stride() == inputs.stride()
    fused = execution.fuse(models, calls=1_000_000_000)
    for _ in range(2):
        assert_same(fused(inputs), loop(models, inputs))
    (choice,) = execution.explain(fused).choices.values()
    assert "compiled" in choice.chosen
    models[2].load_state_dict(mlp().state_dict())
    optimizer = torch.optim.SGD(models[1].parameters(), lr=0.5)
    models[1](inputs).sum().backward()
    optimizer.step()
    for other in (inputs, inputs.t(), negated, inputs[:1].expand(6, 6)):
        for _ in range(2):
            assert_same(fused(other), loop(models, other))
    models[3][0].weight.data = torch.ones(5, 6)
    models[4].append(nn.Tanh())
    models[0][0] = nn.Linear(6, 5)
    assert_same(fused(inputs), loop(models, inputs))


@pytest.mark.slow
def test_arguments_with_names_and_numbers_are_compiled_for_these_numbers() -> None:
    class Steps(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, pair: Any, *, steps: int) -> Any:
            first, second = pair
            for _ in range(steps):
                first = self.layer(first).tanh() + second
            return {"last": first, "twice": [first * 2, first[0]]}

    models = [Steps() for _ in range(4)]
    inputs = (torch.randn(2, 4), torch.randn(2, 4))
    for per_model in (False, True):
        rows = tuple(each.expand(4, 2, 4).contiguous() for each in inputs)
        fused = execution.fuse(models, calls=1_000_000_000, per_model=per_model)
        for steps in (1, 2, 1):
            for _ in range(2):
                found = fused(rows if per_model else inputs, steps=steps)
                with torch.no_grad():
                    expected = [model(inputs, steps=steps) for model in models]
                assert not execution.equality.difference(expected, found)
        assert "failed" not in str(execution.explain(fused))


@pytest.mark.slow
def test_a_function_that_cannot_be_exported_is_compiled_with_guards() -> None:
    hidden = torch.randn(3)
    compiled = execution.compilation.ProgramCompilation(lambda inputs: inputs * hidden)
    inputs = torch.randn(3)
    for _ in range(2):
        torch.testing.assert_close(compiled(inputs), inputs * hidden)
    hidden.add_(1)
    torch.testing.assert_close(compiled(inputs), inputs * hidden)


@examples(25, 200)
@given(data=st.data())
def test_convolutions_as_products_have_the_results_of_the_layer(data: Any) -> None:
    small = st.integers(1, 3)
    pair = st.tuples(small, small)
    stride, dilation, kernel = (data.draw(pair) for _ in range(3))
    padding = data.draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
    layer = nn.Conv2d(
        data.draw(small), data.draw(small), kernel, stride=stride, padding=padding,
        dilation=dilation, bias=data.draw(st.booleans()), dtype=torch.float64,
    )  # fmt: skip
    shape = (layer.in_channels, data.draw(st.integers(7, 12)), data.draw(st.integers(7, 12)))
    inputs = torch.randn(shape if data.draw(st.booleans()) else (2, *shape), dtype=torch.float64)
    converted = convolution.as_products(copy.deepcopy(layer))
    assert type(converted) is not nn.Conv2d
    torch.testing.assert_close(converted(inputs), layer(inputs))


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(4, 4, 3, groups=2),
        nn.Conv2d(1, 1, 3, padding="same"),
        nn.Conv2d(1, 1, 3, padding=1, padding_mode="circular"),
        nn.Conv2d(17, 2, 3),
        nn.Conv1d(1, 1, 3),
    ],
)
def test_other_convolutions_stay_as_they_are(layer: Any) -> None:
    kind = type(layer)
    assert type(convolution.as_products(layer)) is kind


@pytest.mark.slow
def test_groups_of_convolutions_have_the_results_of_a_loop() -> None:
    models = [
        nn.Sequential(nn.Conv2d(1, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(36, 3))
        for _ in range(5)
    ]
    inputs = torch.randn(2, 1, 8, 8)
    fused = execution.fuse(models, calls=1_000_000_000)
    for _ in range(2):
        assert_same(fused(inputs), loop(models, inputs))
    (choice,) = execution.explain(fused).choices.values()
    names = [each.name for each in choice.results if each.seconds > 0]
    assert "fused in groups of 5, convolutions as products, compiled" in names, str(choice)


@pytest.mark.slow
def test_without_a_compiler_the_best_of_the_others_is_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    models = [mlp(inputs=11) for _ in range(3)]
    fused = execution.fuse(models, calls=10_000_000)
    inputs = torch.randn(4, 11)
    with importlib.import_module("torch._inductor.config").patch({"cpp.cxx": (None, "none")}):
        assert_same(fused(inputs), loop(models, inputs))
    (choice,) = execution.explain(fused).choices.values()
    assert "compiled" not in choice.chosen
    assert "failed: " in choice.results[-1].reason


def test_the_choice_spreads_builds_over_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    choice = execution.choice

    def takes(seconds: float, result: Any = 1.0) -> Any:
        def function() -> Any:
            nonlocal now
            now += seconds
            return result

        return function

    def built(seconds: float, function: Any) -> Any:
        def build() -> Any:
            nonlocal now
            now += seconds
            return function

        return build

    def broken() -> Any:
        raise RuntimeError("no compiler\nmore")

    monkeypatch.setattr(choice.time, "perf_counter", lambda: now)
    candidate = choice.ExecutionCandidate
    candidates = [
        candidate(name="plain", build=lambda: takes(0.1)),
        candidate(name="other", build=lambda: takes(0.01, 2.0)),
        candidate(name="broken", build=broken),
        candidate(name="fused", build=lambda: takes(0.08)),
        candidate(name="compiled", build=built(5.0, takes(0.02)), build_seconds=1.0),
    ]
    sample = choice.ExecutionSample(call=lambda function: function())
    chosen = {}
    for calls in (5, 50, 5000):
        _, chosen[calls] = choice.choose(candidates, sample, calls=calls)
    _, late = choice.choose(candidates, sample, calls=5000, seconds=0.9)

    assert [each.chosen for each in chosen.values()] == ["fused", "fused", "compiled"]
    reasons = {result.name: result.reason for result in chosen[50].results}
    assert reasons["other"] == "dropped: the result is 2.0 instead of 1.0"
    assert reasons["broken"] == "failed: RuntimeError: no compiler"
    assert reasons["compiled"] == "faster, but its build takes more than it saves in 50 calls"
    assert "less time than the build" in chosen[5].results[-1].reason
    assert late.results[-1].reason == (
        "not tried: the time for the choice was over; a larger seconds= gives it more"
    )
    assert chosen[5000].speedup == pytest.approx(5)


class Changes(nn.Module):  # type: ignore[misc]
    """Writes to its input, or replaces its buffer."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what
        self.layer = nn.Linear(4, 2)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, inputs: Any) -> Any:
        if self.what == "input":
            inputs.add_(1)
        else:
            self.calls = self.calls + 1
        return self.layer(inputs) + self.calls


@pytest.mark.parametrize("what", ["input", "buffer"])
def test_calls_that_change_inputs_or_replace_buffers_are_executed_one_by_one(what: str) -> None:
    models = [Changes(what) for _ in range(3)]
    copies = copy.deepcopy(models)
    fused = execution.fuse(models, **NOT_COMPILED)
    ours, theirs = torch.zeros(2, 4), torch.zeros(2, 4)
    for _ in range(2):
        assert_same(fused(ours), loop(copies, theirs))
        assert torch.equal(ours, theirs)
    assert [model.calls.item() for model in models] == [model.calls.item() for model in copies]
    assert "a call changes the model or its inputs" in str(execution.explain(fused))


def test_replaced_tensors_and_modes_count_and_random_numbers_are_not_drawn() -> None:
    models = [nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).eval() for _ in range(20)]
    fused = execution.fuse(models, **NOT_COMPILED)
    inputs = torch.randn(3, 4)
    random = torch.get_rng_state()
    fused(inputs)
    assert torch.equal(torch.get_rng_state(), random)
    models[3][0].weight = nn.Parameter(torch.ones(4, 4))
    assert_same(fused(inputs), loop(models, inputs))
    models[4][1].train()
    assert_same(fused(inputs), loop(copy.deepcopy(models), inputs))


def test_functions_with_other_constants_and_classes_of_one_name_are_set_apart() -> None:
    def of_one_name(factor: float) -> Any:
        class Factor(nn.Linear):  # type: ignore[misc]
            def forward(self, inputs: Any) -> Any:
                return super().forward(inputs) * factor

        return Factor(4, 2)

    models = [of_one_name(1.0), of_one_name(2.0)]
    inputs = torch.randn(3, 4)
    assert_same(execution.fuse(models, **NOT_COMPILED)(inputs), loop(models, inputs))

    models = [mlp(4) for _ in range(3)]
    uses = (lambda value: value * 2, lambda value: value * 3, lambda value, by=2: value * by)
    for model, use in zip(models, uses, strict=True):
        use.__qualname__ = "use"
        model.use = use
    kinds = {execution.architecture.architecture(model) for model in models}
    assert len(kinds) == len(models)
