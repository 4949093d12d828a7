"""The command field of the form that submits a job."""

from __future__ import annotations

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.web.forms.job import JobForm

FIELDS = {"kind": "command", "group": "cs101", "time": "1h", "devices": "0"}


def test_a_pipe_that_no_shell_would_run_is_refused_with_a_way_out() -> None:
    with pytest.raises(InvalidInput, match="No shell runs the command") as refused:
        JobForm.filled({**FIELDS, "command": "cat a | wc"}).job(0.0)
    assert (refused.value.field, "sh -c" in refused.value.accepted) == ("command", True)


def test_a_quoted_operator_and_a_shell_are_accepted() -> None:
    for line in ("grep '|' a", "sh -c 'cat a | wc'"):
        assert JobForm.filled({**FIELDS, "command": line}).job(0.0).command
