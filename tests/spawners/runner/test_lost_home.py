"""A home that disappears while a job runs, or cannot be used: a sentence, and no lost work."""

from __future__ import annotations

import pytest

from ..attempts import wait_for_end
from ..conftest import Desk
from ..notebooks import notebook

REMOVE = "import os, shutil\nshutil.rmtree(os.environ['HOME'])"
REPLACE = REMOVE + "\nopen(os.environ['HOME'], 'w').close()"
LINK = REMOVE + "\nos.symlink('nowhere', os.environ['HOME'])"


@pytest.mark.parametrize("change", [REMOVE, REPLACE, LINK])
def test_a_job_that_ran_all_its_cells_has_succeeded_also_without_its_home(
    desk: Desk, change: str
) -> None:
    order = desk.order(notebook(change, "print('after')"))
    wait_for_end(desk, order, desk.backend.start(order))
    assert desk.service.ended == {
        "code": "succeeded",
        "message": "Ran 2 cells without an error.",
        "details": "",
    }


def test_a_command_that_removes_the_home_has_succeeded(desk: Desk) -> None:
    order = desk.order(command=("sh", "-c", 'cd / && rm -r "$HOME"'))
    wait_for_end(desk, order, desk.backend.start(order))
    assert desk.service.ended["code"] == "succeeded"
