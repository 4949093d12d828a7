"""The simulator as an environment of Gymnasium, and the example of the how-to."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.scheduling.model.learned_order import LearnedOrder

from ..kit import drawn_experiment

env_checker = pytest.importorskip(
    "gymnasium.utils.env_checker", reason="Gymnasium is missing: pip install 'carrel[gymnasium]'"
)
environment = pytest.importorskip("carrel.hub.simulation.replay.gymnasium_environment")
PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "train-an-order.md"


def test_gymnasium_accepts_the_environment() -> None:
    made = environment.QueueOrderEnvironment(drawn_experiment().trace, "2x8", jobs=40)
    env_checker.check_env(made, skip_render_check=True)


def test_a_seed_chooses_the_episode() -> None:
    made = environment.QueueOrderEnvironment(drawn_experiment().trace, "2x8", jobs=40)
    first, _ = made.reset(seed=1)
    again, _ = made.reset(seed=1)
    assert first.tolist() == again.tolist()
    assert len({tuple(made.reset()[0]) for _ in range(8)}) > 1


def test_a_step_before_an_episode_is_refused() -> None:
    with pytest.raises(InvalidInput, match="There is no episode"):
        environment.QueueOrderEnvironment(drawn_experiment().trace, "2x8").step([0.0])


def test_the_example_of_the_how_to_trains_and_writes_an_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["submitted_at,seconds,devices,user"]
    lines += [
        f"{each.submitted_at:.0f},{each.seconds:.0f},{each.devices},{each.user}"
        for each in drawn_experiment().trace.jobs
    ]
    (tmp_path / "jobs.csv").write_text("\n".join(lines) + "\n")
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "example.py").write_text(code.replace("range(100)", "range(2)"))
    monkeypatch.chdir(tmp_path)
    runpy.run_path("example.py")
    order = LearnedOrder.from_json("mine", (tmp_path / "mine.json").read_bytes())
    assert any(order.weights)
