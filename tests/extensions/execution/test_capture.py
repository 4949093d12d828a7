"""Captured functions against plain ones, and packages that are loaded only from one's own cache."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from carrel.hub.errors import InvalidInput

from ... import torch_packages

torch, execution = torch_packages.load()
nn = torch.nn
captured_functions = import_module("carrel.extensions.execution.captured")
compilation = import_module("carrel.extensions.execution.compilation")
package_cache = import_module("carrel.extensions.execution.package_cache")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "carrel" / "execution"


def test_few_calls_are_executed_plainly_and_other_inputs_too() -> None:
    net = nn.Linear(3, 2)
    captured = execution.capture(net, torch.ones(1, 3), calls=1)
    for inputs in (torch.ones(1, 3), torch.ones(4, 3)):
        torch.testing.assert_close(captured(inputs), net(inputs).detach())
    assert "chosen: plain" in str(execution.explain(captured))
    with pytest.raises(RuntimeError):
        captured(torch.ones(4, 2))
    sparse = torch.eye(3).to_sparse()
    assert torch.equal(
        execution.capture(lambda x: x * 2, sparse, calls=1)(sparse).to_dense(), torch.eye(3) * 2
    )


def test_bad_examples_are_refused_or_raise_what_the_function_raises() -> None:
    with pytest.raises(InvalidInput, match="Argument 1 of the example is int"):
        execution.capture(nn.Linear(3, 2), (torch.ones(3), 4))
    with pytest.raises(InvalidInput, match=r"The example is int\."):
        execution.capture(nn.Linear(3, 2), 4)
    with pytest.raises(InvalidInput, match="int cannot be called"):
        execution.capture(4, torch.ones(3))
    with pytest.raises(RuntimeError):
        execution.capture(nn.Linear(3, 2), torch.ones(4))


def test_functions_that_change_inputs_or_modules_are_executed_plainly() -> None:
    example = torch.zeros(4, 3)
    for function in (lambda inputs: inputs.add_(1), nn.BatchNorm1d(3)):
        captured = execution.capture(function, example)
        assert "a call changes the module or its inputs" in str(execution.explain(captured))
        assert not example.any()
    random = torch.get_rng_state()
    execution.capture(torch.rand_like, example, calls=1)
    assert torch.equal(torch.get_rng_state(), random)


def test_a_recorded_graph_leaves_the_module_as_it_is_and_ends_with_its_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def record(function: Any, example: Any) -> Any:
        if isinstance(function, nn.Module):  # as PyTorch does
            function.forward = function.forward
        recorded = function(*example)
        return lambda *_: recorded

    monkeypatch.setattr(torch.cuda, "make_graphed_callables", record)
    net, inputs = nn.Linear(3, 2).eval(), torch.ones(1, 3)
    run = captured_functions.graphed(net, (inputs,))
    assert "forward" not in vars(net)
    with torch.no_grad():
        before = net(inputs)
        torch.testing.assert_close(run(inputs * 2), before)
        net.weight = nn.Parameter(torch.ones(2, 3))
        torch.testing.assert_close(run(inputs * 2), net(inputs * 2))


HOOKS: dict[str, Callable[[Any], Any]] = {
    "forward": lambda net: net[0].register_forward_hook(lambda *found: found[-1] * 2),
    "before": lambda net: net[1].register_forward_pre_hook(lambda _, inputs: (inputs[0] * 2,)),
    "with names": lambda net: net.register_forward_hook(
        lambda *found: found[-1] * 2, with_kwargs=True
    ),
    "backward": lambda net: net[0].register_full_backward_hook(lambda *_: None),
    "of all modules": lambda _: nn.modules.module.register_module_forward_hook(
        lambda *found: found[-1] * 2
    ),
    "before all modules": lambda _: nn.modules.module.register_module_forward_pre_hook(
        lambda _, inputs: (inputs[0] * 2,)
    ),
}


@pytest.mark.parametrize("kind", HOOKS)
def test_modules_with_hooks_are_executed_plainly(kind: str) -> None:
    net, inputs = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), torch.randn(2, 3)
    handle = HOOKS[kind](net)
    try:
        captured = execution.capture(net, inputs)
        torch.testing.assert_close(captured(inputs), net(inputs).detach())
    finally:
        handle.remove()
    assert "Executed plainly: " in str(execution.explain(captured))
    assert " hook" in str(execution.explain(captured))


@pytest.mark.parametrize("kind", HOOKS)
def test_hooks_that_are_registered_after_the_choice_are_called(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    net, inputs = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), torch.randn(2, 3)
    before = net(inputs).detach()
    # As a package, which executes no hook.
    monkeypatch.setattr(captured_functions, "choose", lambda *_, **__: (lambda _: before, None))

    def function(inputs: Any) -> Any:
        return net(inputs)

    captured = execution.capture(function, inputs)
    assert captured(inputs) is before
    handle = HOOKS[kind](net)
    try:
        found = captured(inputs)
        torch.testing.assert_close(found, net(inputs).detach())
    finally:
        handle.remove()
    assert found is not before
    assert "hooks were registered on a module: 1." in str(execution.explain(captured))
    assert captured(inputs) is before


def test_a_package_that_others_may_write_or_link_is_not_found(cache: Path) -> None:
    packages = execution.package_cache
    path = packages.store("a", lambda target: Path(target).write_bytes(b"code"))
    assert packages.find("a") == path
    assert path.stat().st_mode & 0o777 == 0o600
    assert cache.stat().st_mode & 0o777 == 0o700
    path.chmod(0o620)
    assert packages.find("a") is None
    (cache / "b.pt2").symlink_to(path)
    assert packages.find("b") is None
    path.chmod(0o600)
    cache.chmod(0o777)
    assert packages.find("a") is None
    with pytest.raises(PermissionError, match="others may write"):
        packages.store("c", lambda target: Path(target).write_bytes(b"code"))
    assert [each.name for each in cache.iterdir() if each.is_dir()] == []


def test_compilers_use_a_folder_of_the_user_unless_one_is_set(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/chosen")
    compilation.use_own_cache()
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == "/chosen"
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    compilation.use_own_cache()
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(cache / "inductor")
    assert (cache / "inductor").stat().st_mode & 0o777 == 0o700
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    (cache / "inductor").chmod(0o777)
    with pytest.raises(PermissionError, match="others may write"):
        compilation.use_own_cache()


def test_packages_of_other_strides_or_branches_have_other_names() -> None:
    class Branch(nn.Module):  # type: ignore[misc]
        def __init__(self, factor: int) -> None:
            super().__init__()
            self.factor = factor

        def forward(self, inputs: Any) -> Any:
            return torch.cond(
                inputs.sum() > 0, lambda x: x * self.factor, lambda x: x - 1, (inputs,)
            )

    def key(factor: int, inputs: Any) -> str:
        program = torch.export.export(Branch(factor), (inputs,))
        found: str = package_cache.content_key(program)
        return found

    inputs = torch.ones(3, 3)
    keys = [key(2, inputs), key(3, inputs), key(2, torch.ones(3, 6)[:, ::2])]
    assert len(set(keys)) == len(keys)
    assert key(2, inputs) == keys[0]


@pytest.mark.slow
def test_a_package_is_kept_by_content_and_not_used_once_weights_change(cache: Path) -> None:
    inputs = torch.randn(2, 5)
    net = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)).eval()
    exported = captured_functions.exported
    with torch.no_grad():
        for _ in range(2):
            run = exported(net, (inputs,))
            torch.testing.assert_close(run(inputs), net(inputs))
        assert len(list(cache.glob("*.pt2"))) == 1
        net[2].bias.add_(2)
        torch.testing.assert_close(run(inputs), net(inputs))
    with pytest.raises(InvalidInput, match="neither arguments nor weights"):
        exported(lambda first: first * net[0].bias.detach()[0], (inputs,))


CHANGES = {
    "optimizer step": lambda net: torch.optim.SGD(net.parameters(), lr=0.5).step(),
    "load_state_dict": lambda net: net.load_state_dict(
        {name: value + 1 for name, value in net.state_dict().items()}
    ),
    "data": lambda net: setattr(net[0].weight, "data", torch.ones(4, 5)),
    "parameter": lambda net: setattr(net[0], "weight", nn.Parameter(torch.ones(4, 5))),
    "buffer": lambda net: net[1].running_mean.add_(1),
    "mode": lambda net: net[1].train(),
    "layer": lambda net: net.append(nn.Tanh()),
    "dictionary": lambda net: vars(net[0])["_parameters"].update(
        weight=nn.Parameter(torch.ones(4, 5))
    ),
    "bias of none": lambda net: net[2].register_parameter("bias", nn.Parameter(torch.ones(3))),
    "fewer layers": lambda net: net.__delitem__(2),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_a_package_is_not_used_once_its_module_changes(change: str) -> None:
    net = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3, bias=False)).eval()
    inputs = torch.randn(2, 5)
    net(inputs).sum().backward()
    with torch.no_grad():
        run = captured_functions.exported(net, (inputs,))
        before = run(inputs)
        torch.testing.assert_close(before, net(inputs))
        CHANGES[change](net)
        found = run(inputs)
        if change != "mode":  # a call in training mode changes the statistics
            torch.testing.assert_close(found, net(inputs))
        assert found.shape != before.shape or not torch.equal(found, before)


@pytest.mark.slow
def test_a_package_is_moved_with_its_module() -> None:
    net, inputs = nn.Linear(5, 4), torch.randn(2, 5)
    with torch.no_grad():
        run = captured_functions.exported(net, (inputs,))
        net.requires_grad_(False)
        torch.testing.assert_close(run(inputs), net(inputs))
        net.double()
        torch.testing.assert_close(run(inputs.double()), net(inputs.double()))


@pytest.mark.slow
def test_inputs_of_another_kind_do_not_reach_a_package() -> None:
    """A package has no guards: it reads the memory of a tensor as that of the example."""
    net, inputs = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), torch.randn(3, 6)[:, ::2]
    captured = execution.capture(net, inputs, calls=1_000_000_000)
    assert "chosen: plain" not in str(execution.explain(captured))
    negated = torch.complex(inputs.contiguous(), inputs.contiguous()).conj().imag
    assert negated.is_neg()
    assert negated.stride() == inputs.stride()
    others = (
        inputs.t(),
        negated,
        inputs.double(),
        inputs[:2],
        inputs[:1].expand(3, 3),
    )
    for other in others:
        with torch.no_grad():
            model = net.double() if other.dtype is torch.float64 else net.float()
            torch.testing.assert_close(captured(other), model(other))
    assert f"or PyTorch is in another mode: {len(others)}." in str(execution.explain(captured))


def test_the_name_of_a_package_depends_on_options_and_threads() -> None:
    program = torch.export.export(nn.Linear(3, 2), (torch.ones(1, 3),))
    key = package_cache.content_key
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = key(program)
        torch.set_num_threads(2)
        assert len({one, key(program), key(program, {"max_autotune_gemm": True})}) == 3
    finally:
        torch.set_num_threads(threads)


@pytest.mark.slow
def test_a_captured_function_equals_the_plain_one_whatever_was_chosen() -> None:
    def function(first: Any, second: Any) -> Any:
        return first.sin() + second, {"product": first * second}

    inputs = torch.randn(4, 3), torch.randn(4, 3)
    captured = execution.capture(function, inputs, calls=100_000_000)
    torch.testing.assert_close(captured(*inputs), function(*inputs))
    (choice,) = execution.explain(captured).choices.values()
    assert [each.name for each in choice.results] == ["plain", "compiled", "exported"]
    assert all(each.seconds > 0 for each in choice.results), str(choice)
