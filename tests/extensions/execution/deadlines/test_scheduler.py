"""Requests with deadlines: what is executed, refused or offloaded, and what an error leaves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from pathlib import Path
from typing import Any

import pytest

from carrel.hub.errors import InvalidInput

from .... import torch_packages

_, execution = torch_packages.load()

SECOND = 1.0


class ManualClock:
    """Stands still, but for what models add."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Gate:
    """A model of one second that a test can hold."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.begun = threading.Semaphore(0)
        self.may_end = threading.Event()
        self.may_end.set()

    def __call__(self, inputs: int) -> int:
        self.begun.release()
        assert self.may_end.wait(60)
        self.clock.now += SECOND
        return inputs + 1

    def hold(self) -> None:
        """Let the next run wait for ``may_end``."""
        while self.begun.acquire(blocking=False):
            pass
        self.may_end.clear()


class Desk:
    """One worker with one model, and where its work goes to."""

    def __init__(self, *, deadline: float, offload: bool = False) -> None:
        self.clock = ManualClock()
        self.model = Gate(self.clock)
        self.elsewhere: list[int] = []
        self.scheduler = execution.schedule(
            {"model": self.model},
            ["cpu"],
            {"model": deadline},
            samples={"model": 0},
            offload=self._offload if offload else None,
            clock=self.clock,
        )
        self.elsewhere.clear()

    def _offload(self, model: str, inputs: int) -> int:
        self.elsewhere.append(inputs)
        self.clock.now += SECOND / 4
        return inputs + 1

    def busy(self) -> Future[Any]:
        """Submit a request that runs until ``may_end`` is set."""
        self.model.hold()
        future: Future[Any] = self.scheduler.submit("model", 0)
        assert self.model.begun.acquire(timeout=60)
        return future


@pytest.fixture
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    made = Desk(**request.param)
    yield made
    made.model.may_end.set()
    made.scheduler.close()


@pytest.mark.parametrize("desk", [{"deadline": 2.5}], indirect=True)
def test_what_cannot_end_in_time_is_refused_at_once_and_the_rest_is_executed(desk: Desk) -> None:
    running = desk.busy()
    waiting = desk.scheduler.submit("model", 10)
    refused = desk.scheduler.submit("model", 20)
    with pytest.raises(
        execution.DeadlineMissed, match=r"It would end 500\.0 ms late; 1 other request waits\."
    ):
        refused.result(0)
    desk.model.may_end.set()
    assert (running.result(60), waiting.result(60)) == (1, 11)
    desk.scheduler.close()
    assert desk.scheduler.counts() == {"submitted": 3, "in time": 2, "missed": 1}
    assert execution.explain(desk.scheduler).notes == (
        "Requests are executed by earliest deadline on: CPU worker 1.",
        "model must answer within 2500.0 ms; 9 of 10 runs take at most 1000.00 ms on a CPU worker.",
        "Of 3 requests: 2 answered in time, 1 not executed, as too late.",
    )


@pytest.mark.parametrize("desk", [{"deadline": 2.5, "offload": True}], indirect=True)
def test_what_would_be_late_here_is_executed_elsewhere(desk: Desk) -> None:
    desk.busy()
    first = desk.scheduler.submit("model", 10)
    assert not desk.elsewhere
    second = desk.scheduler.submit("model", 20)
    assert wait([first, second], 60, FIRST_COMPLETED).done
    desk.model.may_end.set()
    assert (first.result(60), second.result(60)) == (11, 21)
    desk.scheduler.close()
    assert desk.scheduler.counts()["offloaded"] == 1


@pytest.mark.parametrize("desk", [{"deadline": 5.0}], indirect=True)
def test_an_earlier_deadline_goes_first(desk: Desk) -> None:
    desk.busy()
    order: list[str] = []
    later = desk.scheduler.submit("model", 1)
    sooner = desk.scheduler.submit("model", 2, within=3.0)
    later.add_done_callback(lambda _: order.append("later"))
    sooner.add_done_callback(lambda _: order.append("sooner"))
    desk.model.may_end.set()
    later.result(60)
    sooner.result(60)
    desk.scheduler.close()
    assert order == ["sooner", "later"]


@pytest.mark.parametrize("desk", [{"deadline": 5.0}], indirect=True)
def test_what_waits_past_its_deadline_is_not_executed(desk: Desk) -> None:
    desk.busy()
    waiting = desk.scheduler.submit("model", 1)
    desk.clock.now += 10
    desk.model.may_end.set()
    with pytest.raises(execution.DeadlineMissed, match="Its deadline passed before it"):
        waiting.result(60)


@pytest.mark.parametrize("desk", [{"deadline": 5.0}], indirect=True)
def test_a_callback_may_submit_again(desk: Desk) -> None:
    desk.busy()
    waiting = [desk.scheduler.submit("model", number) for number in (1, 2)]
    again: list[Future[Any]] = []
    for each in waiting:
        each.add_done_callback(lambda _: again.append(desk.scheduler.submit("model", 5)))
    desk.clock.now += 10
    desk.model.may_end.set()
    for each in waiting:
        with pytest.raises(execution.DeadlineMissed):
            each.result(60)
    desk.scheduler.close()
    desk.model.begun.release()
    assert len(again) == 2


@pytest.mark.parametrize("desk", [{"deadline": 5.0}], indirect=True)
def test_a_late_request_keeps_out_only_those_that_it_concerns(desk: Desk) -> None:
    desk.busy()
    late = desk.scheduler.submit("model", 1, within=2.9)
    desk.clock.now += 1.5
    patient = desk.scheduler.submit("model", 2, within=60)
    desk.model.may_end.set()
    assert (late.result(60), patient.result(60)) == (2, 3)


@pytest.mark.parametrize("desk", [{"deadline": 5.0}], indirect=True)
def test_an_error_of_a_model_is_its_own(desk: Desk) -> None:
    with pytest.raises(TypeError):
        desk.scheduler("model", None)
    assert desk.scheduler("model", 1) == 2
    with pytest.raises(InvalidInput, match="no model 'other'"):
        desk.scheduler.submit("other", 1)
    desk.scheduler.close()
    with pytest.raises(InvalidInput, match="closed"):
        desk.scheduler.submit("model", 1)


@pytest.mark.parametrize("desk", [{"deadline": 2.5}], indirect=True)
def test_an_idle_worker_runs_what_once_took_too_long(desk: Desk) -> None:
    slow = desk.busy()
    desk.clock.now += 10
    desk.model.may_end.set()
    assert slow.result(60) == 1
    assert desk.scheduler("model", 20) == 21
    desk.scheduler.close()
    assert desk.scheduler.counts() == {"submitted": 2, "late": 1, "in time": 1}


@pytest.mark.parametrize("desk", [{"deadline": 2.5}], indirect=True)
def test_a_request_that_its_user_cancels_makes_place_for_others(desk: Desk) -> None:
    desk.busy()
    assert desk.scheduler.submit("model", 10).cancel()
    desk.model.may_end.set()
    assert desk.scheduler("model", 20) == 21


@pytest.mark.parametrize("desk", [{"deadline": 5.0}], indirect=True)
def test_what_waits_is_cancelled_when_the_scheduler_is_closed(desk: Desk) -> None:
    running = desk.busy()
    waiting = desk.scheduler.submit("model", 1)
    closing = threading.Thread(target=desk.scheduler.close)
    closing.start()
    with pytest.raises(CancelledError):
        waiting.result(60)
    desk.model.may_end.set()
    closing.join(60)
    assert running.result(0) == 1


def made(**changed: Any) -> Any:
    clock = ManualClock()
    model = Gate(clock)
    options: dict[str, Any] = {
        "models": {"model": model},
        "accelerators": ["cpu"],
        "deadlines": {"model": 2.0},
        "samples": {"model": 0},
    }
    return execution.schedule(**options | changed, clock=clock)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"deadlines": {"model": 0.5}}, r"within 500.00 ms.*At least 1000.00 ms"),
        ({"deadlines": {}}, "no deadline: model"),
        ({"deadlines": {"model": float("nan")}}, "not above 0 s: model"),
        ({"deadlines": {"model": "1 s"}}, "not above 0 s: model"),
        ({"deadlines": {"model": 2.0, "modle": 2.0}}, "have a deadline, and are no models: modle"),
        ({"periods": {"modle": 2.0}}, "have a period, and are no models: modle"),
        ({"samples": {}}, "no sample: model"),
        ({"accelerators": []}, "nothing to schedule"),
        ({"accelerators": ["cuda:0"]}, "cannot run on cuda:0"),
        ({"models": {"model": 3}}, "int is no model"),
        ({"periods": {"model": 0.5}}, "need 2.0 workers, and there are 1"),
        *(
            ({"periods": {"model": given}}, "These periods are not above 0 s: model")
            for given in (0, -1, "1 s", None, float("nan"))
        ),
        ({"accelerators": "cpu"}, "The accelerators are one text, 'cpu'"),
        ({"models": [len]}, "The models are list"),
        ({"offload": 3}, "Requests cannot be offloaded to 3, 1 at a time"),
        ({"offload": max, "offload_at_once": 0}, "offloaded to <built-in function max>, 0 at a"),
    ],
)
def test_bad_input_is_refused(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        made(**changed)
    assert told.split(".*", maxsplit=1)[0] in refused.value.message


@pytest.mark.parametrize("desk", [{"deadline": 2.5}], indirect=True)
def test_a_request_has_a_number_of_seconds_and_none_is_left_to_one_that_is_over(desk: Desk) -> None:
    for given in ("1 s", float("nan"), True):
        with pytest.raises(InvalidInput, match="is not a time"):
            desk.scheduler.submit("model", 1, within=given)
    with pytest.raises(execution.DeadlineMissed, match="Its deadline passed before it was"):
        desk.scheduler.submit("model", 1, within=-1).result(60)
    assert desk.scheduler.submit("model", 1, within=float("inf")).result(60) == 2


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is missing")
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with (tmp_path / "large.onnx").open("wb") as file:
        file.truncate(10 << 30)
    for name in ("model.onnx", "large.onnx", "missing.onnx"):
        with pytest.raises(InvalidInput, match=rf"{name} cannot be loaded: .*\. Pass the path"):
            made(models={"model": tmp_path / name})


def test_an_onnx_model_gives_its_outputs(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is missing")
    onnx = pytest.importorskip("onnx", reason="onnx is missing")
    numpy = pytest.importorskip("numpy")
    floats = onnx.TensorProto.FLOAT
    ends = [onnx.helper.make_tensor_value_info(name, floats, [2]) for name in ("x", "y")]
    node = onnx.helper.make_node("Add", ["x", "x"], ["y"])
    graph = onnx.helper.make_graph([node], "twice", ends[:1], ends[1:])
    opsets = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9)
    onnx.save(model, tmp_path / "model.onnx")
    inputs = numpy.array([1, 2], "float32")
    with execution.schedule(
        {"model": tmp_path / "model.onnx"},
        ["cpu", "cpu"],
        {"model": 30.0},
        samples={"model": inputs},
    ) as scheduler:
        (found,) = scheduler("model", inputs)
    assert found.tolist() == [2, 4]
