"""Accelerated functions against plain ones: results, side effects, and what switches them off."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from carrel.hub.attempts import compilations
from carrel.hub.errors import InvalidInput

from ... import torch_packages

torch, execution = torch_packages.load()
from ... import imperative_functions as imperative  # noqa: E402 # needs PyTorch

# The package loads its modules when their names are first used.
for _name in ("accelerated", "choice"):
    importlib.import_module(f"carrel.extensions.execution.{_name}")

MANY = 100_000_000
NAMES = sorted(imperative.functions())


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


class Compilation:
    """In the place of a compilation: a function of the plain one, by the number of the call."""

    change: Callable[[Any, int], Any] = staticmethod(lambda found, call: found)
    recompiles = False

    def __init__(self, function: Callable[..., Any], *, fullgraph: bool) -> None:
        assert not fullgraph
        self.graphs, self.calls, self.function = 1, 0, function
        self.breaks: dict[Any, None] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        self.graphs += self.recompiles
        return type(self).change(self.function(*args, **kwargs), self.calls)


@pytest.fixture
def compilation(monkeypatch: pytest.MonkeyPatch) -> type[Compilation]:
    """Choose without the compiler, and always what it would have compiled."""

    class Made(Compilation):
        pass

    monkeypatch.setattr(execution.accelerated, "CountedCompilation", Made)
    monkeypatch.setattr(execution.accelerated, "choose", choose_compiled)
    return Made


def choose_compiled(candidates: Any, sample: Any, *, calls: int, seconds: float) -> Any:
    """Choose what is compiled unless it differs; nothing is timed."""
    assert calls
    assert seconds
    plain, compiled = (each.build() for each in candidates)
    other = sample.difference(sample.first_result(plain), sample.first_result(compiled))
    choice = execution.choice
    results = [
        choice.CandidateResult(name="plain", seconds=2.0),
        choice.CandidateResult(name="compiled", seconds=1.0, reason=other and f"dropped: {other}"),
    ]
    chosen = choice.ExecutionChoice(
        chosen="plain" if other else "compiled", calls=calls, results=tuple(results)
    )
    return (plain if other else compiled), chosen


def copied(result: Any) -> Any:
    if isinstance(result, torch.Tensor):
        return result.detach().clone()
    if isinstance(result, dict):
        return {name: copied(each) for name, each in result.items()}
    return type(result)(map(copied, result)) if isinstance(result, list | tuple) else result


def observed(name: str, make: Callable[[Any], Any], calls: int = 7) -> tuple[list[Any], str]:
    """Return results and state after each of some calls of one of the forty functions."""
    imperative.reset()
    each = imperative.functions()[name]
    function = make(each.function)
    found = []
    for call in range(1, calls + 1):
        arguments = each.arguments(call)
        result = copied(function(*arguments))
        found.append((result, imperative.state(arguments, each.function)))
    return found, str(execution.explain(function)) if function is not each.function else ""


@pytest.mark.parametrize("name", NAMES)
def test_side_effects_are_found_in_the_source(name: str) -> None:
    each = imperative.functions()[name]
    effects = execution.purity.analyse(each.function).effects
    # An iterator is no kind of argument that is compiled.
    assert bool(effects) != (each.pure or name == "consumes_iterator"), effects


@pytest.mark.parametrize("name", [name for name in NAMES if not imperative.functions()[name].pure])
def test_functions_with_side_effects_are_executed_once_a_call(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, _ = observed(name, lambda function: function, calls=3)
    printed = capsys.readouterr().out
    found, text = observed(name, lambda f: execution.accelerate(f, calls=MANY), calls=3)
    assert execution.equality.difference(plain, found) == ""
    assert capsys.readouterr().out == printed
    assert "Executed plainly" in text


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if imperative.functions()[name].pure])
def test_compiled_functions_keep_their_results(name: str) -> None:
    plain, _ = observed(name, lambda function: function)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        found, text = observed(name, lambda f: execution.accelerate(f, calls=MANY))
    assert execution.equality.difference(plain, found) == ""
    assert "compiled" in text


def scaled(values: Any) -> Any:
    return (values * 2).sin()


def test_the_first_difference_switches_it_off_and_is_not_returned(
    compilation: type[Compilation],
) -> None:
    inputs = torch.linspace(0, 1, 5)
    accelerated = execution.accelerate(scaled, calls=MANY)
    torch.testing.assert_close(accelerated(inputs), scaled(inputs))
    assert "chosen: compiled" in str(execution.explain(accelerated))
    torch.testing.assert_close(accelerated(inputs), scaled(inputs))
    compilation.change = staticmethod(lambda found, _call: found + 1)
    with pytest.warns(UserWarning, match=r"accelerate\(scaled\).*differs by"):
        torch.testing.assert_close(accelerated(inputs), scaled(inputs))
    assert "at call 2 after the choice" in str(execution.explain(accelerated))
    torch.testing.assert_close(accelerated(inputs), scaled(inputs))


def test_later_calls_are_compared_by_a_sample(compilation: type[Compilation]) -> None:
    inputs = torch.linspace(0, 1, 5)
    accelerated = execution.accelerate(scaled, calls=MANY)
    for _ in range(4):
        accelerated(inputs)
    compilation.change = staticmethod(lambda found, _call: found + 1)
    wrong = 0
    with warnings.catch_warnings(record=True) as told:
        while not told:
            wrong += not torch.equal(accelerated(inputs), scaled(inputs))
    assert 0 < wrong <= 2 * execution.accelerated.LARGEST_MEAN_GAP


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(InvalidInput, match="int cannot be called"):
        execution.accelerate(3)


def test_errors_are_those_of_the_function(compilation: type[Compilation]) -> None:
    def checked(values: Any) -> Any:
        if values.sum() < 0:
            raise ValueError("negative")
        return values.sin()

    accelerated = execution.accelerate(checked, calls=MANY)
    inputs = torch.ones(3)
    for _ in range(5):
        accelerated(inputs)
    with pytest.raises(ValueError, match="negative"):
        accelerated(-inputs)
    assert "Executed plainly" not in str(execution.explain(accelerated))

    def fail(found: Any, _call: int) -> Any:
        raise RuntimeError("no compiler")

    compilation.change = staticmethod(fail)
    with pytest.warns(UserWarning, match="failed: RuntimeError: no compiler"):
        torch.testing.assert_close(accelerated(inputs), inputs.sin())


def test_a_global_that_gets_a_side_effect_is_not_executed_twice(
    compilation: type[Compilation], monkeypatch: pytest.MonkeyPatch
) -> None:
    accelerated = execution.accelerate(uses_helper, calls=MANY)
    inputs = torch.ones(3)
    accelerated(inputs)
    accelerated(inputs)
    monkeypatch.setitem(globals(), "helper", counting_helper)
    before = len(imperative.LOG)
    accelerated(inputs)
    assert len(imperative.LOG) == before + 1
    assert "append changes" in str(execution.explain(accelerated))


def test_a_hook_that_is_registered_later_is_called_once_a_call(
    compilation: type[Compilation],
) -> None:
    layer, called = torch.nn.Linear(3, 2), []
    accelerated = execution.accelerate(layer, calls=MANY)
    inputs = torch.ones(1, 3)
    for _ in range(5):
        accelerated(inputs)
    layer.register_forward_hook(lambda *_: called.append(1))
    for _ in range(3):
        torch.testing.assert_close(accelerated(inputs), layer(inputs))
    assert len(called) == 6
    assert "Linear has hooks" in str(execution.explain(accelerated))


def helper(values: Any) -> Any:
    return values.cos()


def counting_helper(values: Any) -> Any:
    imperative.LOG.append(1)
    return values.cos()


def uses_helper(values: Any) -> Any:
    return helper(values) * 2


def test_what_is_compiled_again_and_again_is_executed_plainly(
    compilation: type[Compilation],
) -> None:
    accelerated = execution.accelerate(scaled, calls=MANY)
    inputs = torch.ones(3)
    accelerated(inputs)
    compilation.recompiles = True
    for _ in range(10):
        accelerated(inputs)
    assert "6 later calls were compiled again" in str(execution.explain(accelerated))


def test_arguments_that_may_run_other_code_and_many_shapes_are_executed_plainly(
    compilation: type[Compilation],
) -> None:
    class Odd(torch.Tensor):  # type: ignore[misc]
        pass

    accelerated = execution.accelerate(scaled, calls=MANY)
    accelerated(torch.ones(3).as_subclass(Odd))
    assert "where an argument is Odd" in str(execution.explain(accelerated))
    for size in range(1, 12):
        accelerated(torch.ones(size))
    assert "a choice was made for 8" in str(execution.explain(accelerated))


NEIGHBOURS = torch.eye(3).to_sparse()


def test_a_sparse_global_tensor_is_used_as_by_plain_execution(
    compilation: type[Compilation],
) -> None:
    def spread(x: Any) -> Any:
        return NEIGHBOURS @ x

    x = torch.arange(6.0).view(3, 2)
    fast = execution.accelerate(spread, calls=MANY)
    for _ in range(3):
        assert torch.equal(fast(x), x)
    assert compilation is not None


def test_gradients_and_shared_memory_are_compared(compilation: type[Compilation]) -> None:
    compilation.change = staticmethod(lambda found, _call: found.detach().requires_grad_())
    accelerated = execution.accelerate(scaled, calls=MANY)
    accelerated(torch.ones(3, requires_grad=True))
    assert "dropped: " in str(execution.explain(accelerated))

    def view(values: Any) -> Any:
        return values[:2]

    compilation.change = staticmethod(lambda found, _call: found.clone())
    accelerated = execution.accelerate(view, calls=MANY)
    accelerated(torch.ones(3))
    assert "dropped: " in str(execution.explain(accelerated))


def refused() -> list[tuple[Callable[..., Any], str]]:
    """Return functions that must not be executed twice, each with a part of the reason."""
    held, weights = [torch.ones(2)], torch.ones(2)
    names: dict[str, Any] = {}

    def by_view(values: Any) -> Any:
        flat = values.view(-1)
        flat += 1
        return flat

    def by_element(values: Any) -> Any:
        found = [values]
        found[0] += 1
        return found

    def by_alias() -> Any:
        mine = held
        mine.append(1)

    def by_closure(values: Any) -> Any:
        weights.add_(1)
        return values * weights

    def by_position(values: Any) -> Any:
        return torch.nn.functional.relu(values, True)

    def by_getattr(values: Any) -> Any:
        return getattr(values, "add_")(1)  # noqa: B009

    def by_reading(values: Any) -> Any:
        change = values.add_
        return change(1)

    def by_keyword(values: Any) -> Any:
        return torch.sin(values, out=values)

    def by_default(values: Any, found: list[Any] = []) -> Any:  # noqa: B006
        found.append(1)
        return values

    def by_setting(values: Any) -> Any:
        names["a"] = 1
        return values

    def opens(values: Any) -> Any:
        with open("/dev/null") as file:
            return file.read(), values

    def by_dropout(values: Any) -> Any:
        return torch.nn.functional.dropout(values)

    def generates(values: Any) -> Any:
        yield values

    def by_loop(values: Any) -> Any:
        for row in values:
            row += 1  # noqa: PLW2901 # as users write
        return values

    def by_branch(values: Any, copy: bool) -> Any:
        if copy:
            values = values.clone()
        values += 1
        return values

    def by_nested(values: Any) -> Any:
        def inner() -> Any:
            return values.mul_(2)

        return inner()

    return [
        (by_view, "changes flat"), (by_element, "found[0]"), (by_alias, "append changes mine"),
        (by_closure, "add_ changes weights"), (by_position, "inplace"), (by_getattr, "getattr"),
        (by_reading, "add_ changes"), (by_keyword, "out"), (by_default, "append changes found"),
        (by_setting, "writes to names"), (opens, "open"), (by_dropout, "random"),
        (generates, "generator"), (by_loop, "changes row"), (by_branch, "changes values"),
        (by_nested, "mul_ changes values"),
        (torch.nn.Dropout(), "training mode"), (torch.nn.ReLU(inplace=True), "inplace"),
        (torch.nn.Embedding(3, 2, max_norm=1.0), "max_norm"), (len, "not a function written"),
    ]  # fmt: skip


@pytest.mark.parametrize("place", range(len(refused())))
def test_what_may_change_something_is_refused_by_its_line(place: int) -> None:
    function, reason = refused()[place]
    effects = execution.purity.analyse(function).effects
    assert any(reason in effect.reason for effect in effects), effects


def test_own_objects_may_change_and_numbers_too() -> None:
    def makes(values: Any, count: int) -> Any:
        count += 1
        found: list[Any] = []
        total = torch.zeros(3)
        values = values * 2
        values += 1
        for step in range(count):
            total += values
            total[0] = step
            found.append(total.clone())
        return found, {"count": count}

    analyse = execution.purity.analyse
    assert analyse(makes, frozenset({"count"})).effects == []
    (effect,) = analyse(makes).effects
    assert (effect.source, effect.rewrite) == ("count += 1", "Write count = count + 1.")


def test_a_job_records_what_became_of_its_functions(
    compilation: type[Compilation], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CARREL_REPORTS", str(tmp_path / "reports.jsonl"))
    execution.accelerate(scaled, calls=MANY)(torch.ones(3))
    execution.accelerate(imperative.prints)(*imperative.vector(1))
    compiled, printing = compilations.read_compilations(tmp_path)
    assert (compiled.function, compiled.obstacles) == ("scaled", ())
    assert compiled.outcome.startswith("Compiled: 2.0 times as fast")
    assert printing.function == "prints"
    (line,) = printing.obstacles
    assert line.source.startswith("print(")
    assert line.place.startswith("imperative_functions.py, line ")
    assert line.rewrite == "Return what you print, and print it after the call."
    # A folder that cannot be written is not worth a failed job.
    monkeypatch.setenv("CARREL_REPORTS", str(tmp_path / "missing" / "reports.jsonl"))
    execution.accelerate(imperative.prints)(*imperative.vector(1))


def test_a_broken_graph_is_a_line_with_a_rewrite(tmp_path: Path) -> None:
    source = tmp_path / "steps.py"
    source.write_text("if x.sum() > 0:\nwhile x.max() > 1:\n    n = x.sum().item()\nodd(x)\n")

    def rewrite(line: int, reason: str, name: str = "step") -> tuple[str, str]:
        frame = SimpleNamespace(filename=str(source), lineno=line, name=name)
        found = execution.compilation.GraphBreak.of(
            SimpleNamespace(graph_break=True, reason=reason, user_stack=[frame])
        )
        obstacle = execution.compile_report.obstacle_of_break(found)
        assert obstacle.place == f"steps.py, line {line}"
        assert found.function == "step"
        return obstacle.reason, obstacle.rewrite

    assert "torch.cond" in rewrite(1, "generic_jump TensorVariable()")[1]
    resumed = "torch_dynamo_resume_in_step_at_1"
    assert "torch.while_loop" in rewrite(2, "generic_jump TensorVariable()", resumed)[1]
    assert "in a tensor" in rewrite(3, "Unsupported Tensor.item() call with …\n  more")[1]
    assert rewrite(4, "Unsupported builtin\n  Explanation")[0] == (
        "breaks the graph (Unsupported builtin)"
    )
    end = SimpleNamespace(graph_break=False, reason="return_value", user_stack=[])
    assert execution.compilation.GraphBreak.of(end) is None


@pytest.mark.slow
def test_the_compiler_names_the_line_of_a_branch_on_data() -> None:
    accelerated = execution.accelerate(imperative.branch_on_sum, calls=MANY)
    accelerated(*imperative.vector(1))
    text = str(execution.explain(accelerated))
    assert "(if values.mean() > 0.9:): breaks the graph" in text
    assert "torch.cond" in text


def test_a_short_function_that_is_executed_plainly_is_called_without_a_look_at_its_arguments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first call is slow, as memory is new; the time that the choice measured counts."""

    def choose_plain(candidates: Any, *_args: Any, **_kwargs: Any) -> Any:
        choice = execution.choice
        results = (
            choice.CandidateResult(name="plain", seconds=1e-7),
            choice.CandidateResult(name="compiled", reason="not clearly faster"),
        )
        return candidates[0].build(), choice.ExecutionChoice(
            chosen="plain", calls=MANY, results=results
        )

    monkeypatch.setattr(execution.accelerated, "choose", choose_plain)
    function = execution.accelerate(scaled, calls=MANY)
    function(torch.ones(3_000_000))
    assert "so short that" in str(execution.explain(function))
