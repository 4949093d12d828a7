"""``carrel advise``: the job that it submits, and the advice that it prints."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ....fake_service import PREFIX, FakeService
from ..invocation import Carrel, carrel, service

__all__ = ["carrel", "service"]

SENTENCES = ["Now: batch 16.", "Fastest: batch 64."]
ADVICE = {
    "sentences": SENTENCES,
    "largest_batch": 900,
    "parameters": {"n": 64, "compile": True},
}


@pytest.fixture
def predicted(service: FakeService) -> dict[str, Any]:
    """What the service predicts of the run; a test may change it."""
    run_time: dict[str, Any] = {"seconds": 120.0, "low": 60.0, "high": 240.0, "sentence": "?"}
    cost = {"group": "cs101", "devices": 0, "seconds": 120, "device_seconds": 0, "sentence": "Now."}
    service.extra["POST", f"{PREFIX}/requests/dry-run"] = lambda handler: handler.say(
        200, cost | {"run_time": run_time}
    )
    return run_time


@pytest.fixture
def ends(service: FakeService, predicted: dict[str, Any]) -> Iterator[None]:
    """Let the job succeed with its advice as soon as it is submitted."""

    def end() -> None:
        service.wait_for(lambda: service.requests, 20)
        service.files["j-00000000"] = {"advice.json": json.dumps(ADVICE).encode()}
        service.change("j-00000000", state="succeeded", ended=True)

    thread = threading.Thread(target=end)
    thread.start()
    yield
    thread.join()


@pytest.mark.usefixtures("ends")
def test_a_probe_job_is_submitted_and_its_advice_printed(
    service: FakeService, carrel: Carrel
) -> None:
    done = carrel("advise", "train.ipynb", "-p", "lr", "0.1", "--devices", "1", "--memory", "1GiB",
                  "--within", "2h", "--batch-parameter", "n",
                  "--largest-batch", "512")  # fmt: skip  # pairs
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-3:-1] == SENTENCES
    submit = "carrel submit train.ipynb -p lr 0.1 -p n 64 -p compile true --devices 1"
    assert done.stdout.splitlines()[-1] == f"Submit it with: {submit}"
    (body,) = service.called("POST", "requests")
    assert body["notebook"]["name"] == "advice-train.ipynb"
    assert (body["devices"], body["seconds"], body["retries"]) == (1, 120, 0)
    assert body["labels"] == {"advice": "train.ipynb"}
    assert body.get("parameters", {}) == {}
    code = json.loads(body["notebook"]["content"])["cells"][-1]["source"]
    for expected in (
        "{'lr': 0.1}",
        "batch_parameter='n'",
        "budget=105",
        "deadline=7200",
        "largest=512",
    ):
        assert expected in code


@pytest.mark.usefixtures("ends")
def test_json_is_the_advice_alone(carrel: Carrel) -> None:
    done = carrel("advise", "train.ipynb", "--json")
    assert json.loads(done.stdout)["largest_batch"] == 900


@pytest.mark.usefixtures("ends")
@pytest.mark.parametrize(("seconds", "limit"), [(1000.0, 50), (60.0, 30), (1e6, 120)])
def test_a_probe_takes_a_twentieth_of_the_predicted_run(
    service: FakeService, carrel: Carrel, predicted: dict[str, Any], seconds: float, limit: int
) -> None:
    predicted |= {"seconds": seconds, "basis": "program"}
    assert carrel("advise", "train.ipynb").exit_code == 0
    assert service.called("POST", "requests")[0]["seconds"] == limit


@pytest.mark.usefixtures("ends")
def test_another_budget_replaces_the_rule(service: FakeService, carrel: Carrel) -> None:
    assert carrel("advise", "train.ipynb", "--budget", "5m").exit_code == 0
    (body,) = service.called("POST", "requests")
    assert body["seconds"] == 300
    assert "whole_budget=True" in body["notebook"]["content"]


@pytest.mark.usefixtures("predicted")
def test_a_probe_that_failed_says_why(service: FakeService, carrel: Carrel) -> None:
    cause = {"code": "cell_error", "message": "error in cell 2: InvalidInput: it never ended."}
    thread = threading.Thread(
        target=lambda: (
            service.wait_for(lambda: service.requests, 20),
            service.change("j-00000000", state="failed", ended=True, cause=cause),
        )
    )
    thread.start()
    done = carrel("advise", "train.ipynb")
    thread.join()
    assert done.exit_code == 1
    assert "it never ended" in done.output


def test_a_file_that_is_no_notebook_is_refused(carrel: Carrel, tmp_path: Path) -> None:
    (tmp_path / "data.ipynb").write_text("[]")
    done = carrel("advise", "data.ipynb")
    assert done.exit_code != 0
    assert "data.ipynb" in done.output
