"""Secrets in the processes of a job: as files and variables, masked in outputs, gone at the end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.attempts.secret_values import SecretValues, remove_left_behind
from carrel.hub.interfaces.backend import LaunchOrder
from carrel.spawners.runner.attempt.output_masker import Masker

from ..attempts import wait_for_end
from ..conftest import Desk
from ..notebooks import notebook

VALUE = "tok-8f14e45fceea167a"
KEY = "-----BEGIN KEY-----\nbGluZSBvbmU\nbGluZSB0d28\n-----END KEY-----\n"
ANSWER = {"files": {"DEPLOY_KEY": KEY}, "variables": {"TOKEN": VALUE}, "missing": ""}
CODE = """
import os, stat, sys
from pathlib import Path
folder = Path(os.environ["CARREL_SECRETS"])
key = folder / "DEPLOY_KEY"
modes = [oct(stat.S_IMODE(each.stat().st_mode)) for each in (folder, key)]
print(modes, key.stat().st_size, len(os.environ["TOKEN"]), flush=True)
print("the token is", os.environ["TOKEN"], key.read_text(), flush=True)
Path(os.environ["HOME"], "where").write_text(str(folder))
"""


def run(desk: Desk, order: LaunchOrder, answer: dict[str, object] = ANSWER) -> int | None:
    desk.service.secrets = answer
    order = replace(order, job=replace(order.job, secrets=("DEPLOY_KEY:file", "TOKEN:env=TOKEN")))
    return wait_for_end(desk, order, desk.backend.start(order))


def everything(folder: Path) -> str:
    return "\n".join(
        path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()
    )


def test_a_command_reads_its_secrets_and_nothing_keeps_them(desk: Desk) -> None:
    order = desk.order(command=("python", "-c", CODE))
    assert run(desk, order) == 0
    log = (order.folder / "log.txt").read_text()
    assert f"['0o700', '0o600'] {len(KEY)} {len(VALUE)}" in log
    assert "the token is *** ***" in log
    assert not Path((order.home / "where").read_text()).exists()
    for text in (VALUE, "bGluZSBvbmU"):
        assert text not in everything(desk.folder) + str(desk.service.events)


def test_values_are_masked_in_the_outputs_of_a_notebook(desk: Desk) -> None:
    order = desk.order(
        notebook(CODE, "os.environ['TOKEN']", "raise ValueError('with ' + os.environ['TOKEN'])")
    )
    run(desk, order)
    assert desk.service.ended["code"] == "cell_error"
    assert "with ***" in desk.service.ended["message"]
    output = (order.folder / "output.ipynb").read_text()
    assert "the token is ***" in output
    for text in (VALUE, "bGluZSBvbmU"):
        assert text not in everything(desk.folder) + str(desk.service.events)


def test_a_job_whose_secret_is_missing_fails_with_the_reason(desk: Desk) -> None:
    why = "The secret TOKEN of student1 has been removed."
    order = desk.order(command=("touch", "started"))
    run(desk, order, {"files": {}, "variables": {}, "missing": why})
    assert desk.service.ended["code"] == "missing_secret"
    assert desk.service.ended["message"].startswith(why)
    assert not (order.home / "started").exists()


def test_the_folder_of_a_killed_process_is_removed_by_the_next(tmp_path: Path) -> None:
    values = SecretValues(files={"A": "value"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.getpid", lambda: 2**22 + 1)  # more than any process has
        with values.in_environment():
            (folder,) = Path("/dev/shm").glob(f"carrel-secrets-{2**22 + 1}-*")
            remove_left_behind()
            assert not folder.exists()


def test_short_values_are_not_masked_and_long_ones_first() -> None:
    assert (
        Masker(["abc", "password", "password-2"]).text("abc password-2 password") == "abc *** ***"
    )
    assert Masker().text("anything") == "anything"
