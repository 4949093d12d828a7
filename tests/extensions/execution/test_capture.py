"""Captured functions against plain ones, and packages that are loaded only from one's own cache."""

from __future__ import annotations

import contextlib
import copy
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.errors import InvalidInput

from ... import torch_packages
from ...property_settings import examples

torch, execution = torch_packages.load()
nn = torch.nn
captured_functions = import_module("carrel.extensions.execution.captured")
compilation = import_module("carrel.extensions.execution.compilation")
package_cache = import_module("carrel.extensions.execution.package_cache")
tensor_kinds = import_module("carrel.extensions.execution.purity.tensor_kinds")
pytree = import_module("torch.utils._pytree")


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


def test_a_broken_package_is_removed_with_a_warning_and_built_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inductor = import_module("torch._inductor")

    def build(_: Any, *, package_path: str, **__: Any) -> None:
        Path(package_path).write_bytes(b"whole")

    def load(path: str) -> Any:
        if Path(path).read_bytes() != b"whole":
            raise RuntimeError("no library in the archive\nat line 3")
        loader = SimpleNamespace(
            get_call_spec=lambda: ["", pytree.treespec_dumps(pytree.tree_structure(0))],
            run=lambda tensors: [tensors[0] * 2],
        )
        return SimpleNamespace(loader=loader)

    monkeypatch.setattr(inductor, "aoti_compile_and_package", build)
    monkeypatch.setattr(inductor, "aoti_load_package", load)
    module = compilation.module_of(lambda first: first * 2)
    program = torch.export.export(module, (torch.ones(2),))
    compilation.compiled_program(program)
    (path,) = cache.glob("*.pt2")
    for broken in (b"", b"who"):
        path.write_bytes(broken)
        with pytest.warns(UserWarning, match="cannot be loaded .RuntimeError: no library in the a"):
            run = compilation.compiled_program(program)
        assert torch.equal(run(torch.ones(2)), torch.full((2,), 2.0))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compilation.compiled_program(program)


@pytest.mark.slow
def test_a_truncated_package_is_built_again(cache: Path) -> None:
    module = compilation.module_of(lambda first: first * 2)
    program = torch.export.export(module, (torch.ones(2),))
    config = import_module("torch._inductor.config")
    with config.patch({"aot_inductor.metadata": {}}):  # as in a new process
        compilation.compiled_program(program)
    (path,) = cache.glob("*.pt2")
    whole = path.read_bytes()
    for part in (whole[: len(whole) // 2], b""):
        path.write_bytes(part)
        with pytest.warns(UserWarning, match="cannot be loaded"):
            run = compilation.compiled_program(program)
        assert torch.equal(run(torch.ones(2)), torch.full((2,), 2.0))


def test_packages_that_were_not_used_for_longest_are_removed(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keep(name: str) -> None:
        path = package_cache.store(name, lambda target: Path(target).write_bytes(bytes(10)))
        order.append(name)
        for age, each in enumerate(reversed(order)):
            if (other := path.with_name(f"{each}.pt2")).exists():
                os.utime(other, (1e9 - age, 1e9 - age))

    order: list[str] = []
    monkeypatch.setenv(package_cache.BYTES_VARIABLE, "30")
    for name in "abc":
        keep(name)
    abandoned, recent = cache / "build-old", cache / "build-new"
    for path in (abandoned, recent):
        path.mkdir()
    os.utime(abandoned, (1e9, 1e9))
    assert package_cache.find("a") is not None  # used: now b is the oldest
    keep("d")
    assert sorted(each.stem for each in cache.glob("*.pt2")) == ["a", "c", "d"]
    assert not abandoned.exists()
    assert recent.exists()
    monkeypatch.setenv(package_cache.BYTES_VARIABLE, "0")
    keep("e")
    assert [each.stem for each in cache.glob("*.pt2")] == ["e"]


def test_packages_may_be_kept_and_removed_at_once(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(package_cache.BYTES_VARIABLE, "50")
    with ThreadPoolExecutor(8) as pool:
        kept = pool.map(
            lambda number: package_cache.store(
                f"{number}", lambda target: Path(target).write_bytes(bytes(10))
            ),
            range(64),
        )
        assert len(list(kept)) == 64
    package_cache.store("last", lambda target: Path(target).write_bytes(bytes(10)))
    assert sum(each.stat().st_size for each in cache.glob("*.pt2")) <= 50


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


def choose_package(candidates: Any, sample: Any, **_: Any) -> Any:
    """Choose the package, without times."""
    plain, package = (
        next(each for each in candidates if each.name == name).build()
        for name in ("plain", "exported")
    )
    assert not sample.difference(sample.first_result(plain), sample.first_result(package))
    return package, None


class Package:
    """In the place of a package: executes the exported program, and refuses tensors for which
    compiled code would read the wrong memory."""

    calls = 0

    def __init__(self, program: Any) -> None:
        assert not program.constants
        assert not program.state_dict
        self.execute = program.module()
        self.kinds: list[Any] = []

    def __call__(self, *tensors: Any) -> Any:
        kinds = [tensor_kinds.tensor_kind(each) for each in tensors]
        self.kinds = self.kinds or kinds
        assert kinds == self.kinds
        type(self).calls += 1
        return self.execute(*tensors)


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> type[Package]:
    class Made(Package):
        pass

    monkeypatch.setattr(captured_functions, "choose", choose_package)
    monkeypatch.setattr(captured_functions, "compiled_program", Made)
    return Made


@pytest.mark.slow
def test_a_package_is_kept_by_content_and_serves_other_weights(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(captured_functions, "choose", choose_package)
    inputs = torch.randn(2, 5)
    for _ in range(2):
        net = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)).eval()
        nn.init.ones_(net[2].bias)  # the compiler must not compute with the values
        captured = execution.capture(net, inputs)
        for change in (
            lambda net: net,
            lambda net: net[2].bias.data.mul_(2),
            lambda net: net[0].weight.detach().numpy().fill(0.5),
            lambda net: setattr(net[0].weight, "data", torch.randn(5, 4).t()),
        ):
            change(net)
            torch.testing.assert_close(captured(inputs), net(inputs).detach())
        assert "the module was changed (capture it again): 1." in str(execution.explain(captured))
    assert len(list(cache.glob("*.pt2"))) == 1


def test_a_function_that_uses_other_tensors_is_not_packaged() -> None:
    net = nn.Linear(5, 4)
    with pytest.raises(InvalidInput, match="neither arguments nor weights"):
        captured_functions.ExportedFunction(lambda first: first * net.bias, (torch.ones(4),))


class Squared(nn.Module):  # type: ignore[misc]
    def forward(self, value: Any) -> Any:
        return value**2


class Settings:
    def __init__(self) -> None:
        self.scales = [1.0, 2.0]


class Model(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(5, 4)
        self.norm = nn.BatchNorm1d(4)
        self.rest = nn.Sequential(nn.Conv1d(1, 2, (2,)), nn.ReLU(), nn.Linear(3, 3, bias=False))
        self.scale = 1
        self.settings = Settings()
        self.powers = {"first": 1.0}

    def forward(self, inputs: Any) -> Any:
        found = self.norm(self.first(inputs)) * self.scale
        scale = self.settings.scales[0] * self.powers["first"]
        return self.ended(self.rest(found.unsqueeze(1)).flatten(1) * scale)

    def ended(self, value: Any) -> Any:
        return shifted(value) * SCALE["of all"]


SCALE = {"of all": 1.0}
OFFSET = 1.0


def shifted(value: Any) -> Any:
    return value + OFFSET


# By what is changed: whether the package serves the changed module, and the change.
SERVED: dict[str, Callable[[Any], Any]] = {
    "optimizer step": lambda net: torch.optim.SGD(net.parameters(), lr=0.5).step(),
    "load_state_dict": lambda net: net.load_state_dict(
        {name: value + 1 for name, value in net.state_dict().items()}
    ),
    "data": lambda net: setattr(net.first.weight, "data", torch.ones(4, 5)),
    "data in place": lambda net: net.first.weight.data.mul_(2),
    "NumPy": lambda net: net.first.weight.detach().numpy().__setitem__(0, 3.0),
    "parameter": lambda net: setattr(net.first, "weight", nn.Parameter(torch.ones(4, 5))),
    "buffer": lambda net: net.norm.running_mean.add_(1),
    "one tensor twice": lambda net: setattr(net.first, "bias", net.norm.bias),
    "dictionary": lambda net: vars(net.first)["_parameters"].update(
        weight=nn.Parameter(torch.ones(4, 5))
    ),
    "gradients": lambda net: net.requires_grad_(False),
}
NOT_SERVED: dict[str, Callable[[Any], Any]] = {
    "layer": lambda net: net.rest.append(nn.Tanh()),
    "other layer": lambda net: net.rest.__setitem__(1, nn.Tanh()),
    "bias of none": lambda net: net.rest[2].register_parameter("bias", nn.Parameter(torch.ones(3))),
    "fewer layers": lambda net: net.rest.__delitem__(2),
    "strides": lambda net: setattr(net.first.weight, "data", torch.randn(5, 4).t()),
    "own strides": lambda net: setattr(
        net.first.weight, "data", net.first.weight.data.as_strided((4, 5), (1, 4))
    ),
    "negated": lambda net: setattr(
        net.first.bias, "data", torch.complex(torch.ones(4), torch.ones(4)).conj().imag
    ),
    "dtype": lambda net: net.double(),
    "tensor of another class": lambda net: vars(net.first)["_parameters"].update(
        bias=torch.ones(4)
    ),
    "attribute": lambda net: setattr(net, "scale", 2),
    "attribute of equal value": lambda net: setattr(net, "scale", 1.0),
    "attribute of a layer": lambda net: setattr(net.norm, "eps", 1.0),
    "list": lambda net: net.settings.scales.__setitem__(0, 3.0),
    "object": lambda net: setattr(net.settings, "scales", (3.0,)),
    "element": lambda net: net.powers.update(first=2.0),
    "class": lambda net: setattr(net.rest[1], "__class__", nn.Tanh),
    "forward": lambda net: setattr(net.rest[1], "forward", lambda value: value * 2),
    "parametrization": lambda net: nn.utils.parametrize.register_parametrization(
        net.first, "weight", Squared()
    ),
}


@pytest.mark.parametrize("change", [*SERVED, *NOT_SERVED])
def test_whatever_is_changed_in_a_module_counts(change: str, package: type[Package]) -> None:
    net = Model().eval()
    inputs = torch.randn(2, 5)
    net(inputs).sum().backward()
    captured = execution.capture(net, inputs)
    torch.testing.assert_close(captured(inputs), net(inputs).detach())

    (SERVED | NOT_SERVED)[change](net)
    calls = package.calls
    inputs = inputs.to(net.first.bias.dtype)
    torch.testing.assert_close(captured(inputs), net(inputs).detach())

    assert package.calls - calls == (change in SERVED)
    kind = "their inputs have another shape" if change == "dtype" else "the module was changed"
    assert (kind in str(execution.explain(captured))) == (change in NOT_SERVED)


@pytest.mark.parametrize("change", ["element", "global name", "outer variable"])
def test_values_of_names_in_the_code_count(
    change: str, package: type[Package], monkeypatch: pytest.MonkeyPatch
) -> None:
    factor = 2.0
    net, inputs = Model().eval(), torch.randn(2, 5)

    def function(value: Any) -> Any:
        return shifted(value) * factor * SCALE["of all"]

    captured = [execution.capture(net, inputs), execution.capture(function, inputs)]
    if change == "element":
        monkeypatch.setitem(SCALE, "of all", 3.0)
    elif change == "global name":
        monkeypatch.setitem(globals(), "OFFSET", 3.0)
    else:
        factor = 3.0
    calls = package.calls
    for one, plain in zip(captured, (net, function), strict=True):
        torch.testing.assert_close(one(inputs), plain(inputs).detach())
    assert package.calls - calls == (change == "outer variable")


def test_in_training_mode_a_module_is_executed_plainly(package: type[Package]) -> None:
    net, inputs = Model().eval(), torch.randn(2, 5)
    captured = execution.capture(net, inputs)
    net.train()
    other = copy.deepcopy(net)
    torch.testing.assert_close(captured(inputs), other(inputs).detach())
    torch.testing.assert_close(net.norm.running_mean, other.norm.running_mean)


@examples(50, 500)
@given(names=st.lists(st.sampled_from(sorted(SERVED | NOT_SERVED)), min_size=1, max_size=4))
def test_random_changes_of_a_module_count(names: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(captured_functions, "choose", choose_package)
        patch.setattr(captured_functions, "compiled_program", Package)
        net = Model().eval()
        inputs = torch.randn(2, 5)
        captured = execution.capture(net, inputs)
        for name in names:
            with contextlib.suppress(Exception):  # after another change there may be no such layer
                (SERVED | NOT_SERVED)[name](net)
            if name in ("dtype", "fewer layers"):
                inputs = inputs.to(net.first.weight.dtype)
            try:
                expected = net(inputs).detach()
            except RuntimeError:
                with pytest.raises(RuntimeError):
                    captured(inputs)
            else:
                torch.testing.assert_close(captured(inputs), expected)


def modules_with_layers() -> Any:
    layer = st.sampled_from(
        [nn.ReLU, nn.Tanh, lambda: nn.Linear(4, 4), lambda: nn.LayerNorm(4),
         lambda: nn.Linear(4, 4, bias=False), lambda: nn.Conv1d(1, 1, 3, padding=1)]
    )  # fmt: skip
    return st.lists(layer, min_size=1, max_size=4)


@examples(30, 300)
@given(makers=modules_with_layers(), rows=st.integers(1, 3), products=st.booleans())
def test_random_modules_have_the_results_of_plain_execution(
    makers: list[Any], rows: int, products: bool
) -> None:
    net = nn.Sequential(*(make() for make in makers)).eval()
    inputs = torch.randn(rows, 1, 4)
    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(captured_functions, "compiled_program", Package)
        function = captured_functions.ExportedFunction(net, (inputs,), products=products)
        for _ in range(2):
            tensors = function.usable_tensors((inputs,))
            assert execution.equality.difference(net(inputs), function(*tensors)) == ""
            for parameter in net.parameters():
                parameter.data.normal_()


@examples(25, 200)
@given(first=st.data(), second=st.data())
def test_programs_have_one_key_if_their_results_have_one_form(first: Any, second: Any) -> None:
    leaf = st.integers(0, 1)
    forms = st.recursive(
        leaf,
        lambda part: st.one_of(
            st.lists(part, min_size=1, max_size=2),
            st.tuples(part, part),
            st.dictionaries(st.sampled_from("ab"), part, min_size=1, max_size=2),
        ),
        max_leaves=3,
    )
    one, other = first.draw(forms), second.draw(forms)

    def key(form: Any) -> str:
        def function(*inputs: Any) -> Any:
            return pytree.tree_map(lambda place: inputs[place] * 2, form)

        arguments = (torch.ones(2), torch.ones(2))
        program = torch.export.export(compilation.module_of(function), arguments)
        found: str = package_cache.content_key(program)
        return found

    assert (key(one) == key(other)) == (one == other)


def test_keys_depend_on_arguments_with_names_and_on_the_configuration_of_the_compiler() -> None:
    def key(**kwargs: Any) -> str:
        module = compilation.module_of(lambda first, **_: first * 2)
        found: str = package_cache.content_key(
            torch.export.export(module, (torch.ones(2),), kwargs)
        )
        return found

    keys = [key(), key(second=torch.ones(2)), key(third=torch.ones(2))]
    with import_module("torch._inductor.config").patch({"cpp.simdlen": 8}):
        keys.append(key())
    torch.set_float32_matmul_precision("medium")
    try:
        keys.append(key())
    finally:
        torch.set_float32_matmul_precision("highest")
    assert len(set(keys)) == len(keys)
    assert key() == keys[0]


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
