"""Values are followed while a job reports them."""

from __future__ import annotations

import json
from pathlib import Path

from carrel.hub.attempts.reports import ReportFollower

FILE = "reports-0001.jsonl"


def line(name: str, value: float, step: int | None = None) -> str:
    return json.dumps({"name": name, "value": value, "step": step}) + "\n"


def test_each_value_is_returned_once_with_its_step(tmp_path: Path) -> None:
    follower = ReportFollower(tmp_path, FILE, "loss")
    assert follower.new_points() == []
    with (tmp_path / FILE).open("a") as file:
        file.write(line("loss", 3) + line("accuracy", 1) + "nonsense\n" + line("loss", 2))
        file.flush()
        assert follower.new_points() == [(0, 3), (1, 2)]
        assert follower.new_points() == []
        file.write(line("loss", 1, step=7) + line("loss", 0.5))
        file.flush()
        assert follower.new_points() == [(7, 1), (8, 0.5)]
    assert follower.seen == 4


def test_a_line_that_is_being_written_is_returned_when_it_is_complete(tmp_path: Path) -> None:
    follower = ReportFollower(tmp_path, FILE, "loss")
    whole = line("loss", 3)
    with (tmp_path / FILE).open("a") as file:
        file.write(whole[:9])
        file.flush()
        assert follower.new_points() == []
        file.write(whole[9:])
        file.flush()
        assert follower.new_points() == [(0, 3)]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text(line("loss", 3))
    (tmp_path / FILE).symlink_to(tmp_path / "other")
    assert ReportFollower(tmp_path, FILE, "loss").new_points() == []
