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


def test_several_members_run_a_command_together_each_with_the_devices() -> None:
    form = JobForm(kind="command", group="cs101", devices="2", command="torchrun a.py", nodes="3")
    body = form.job(0.0)
    (role,) = body.roles
    assert (role.count, role.devices, role.command) == (3, 2, ["torchrun", "a.py"])
    assert (body.devices, body.command) == (0, [])


@pytest.mark.parametrize("nodes", ["0", "-1", "two", "1.5", "1000000"])
def test_a_number_of_members_that_cannot_be_is_refused_at_its_field(nodes: str) -> None:
    form = JobForm(kind="command", group="cs101", command="torchrun a.py", nodes=nodes)
    with pytest.raises(InvalidInput) as caught:
        form.job(0.0)
    assert caught.value.field == "nodes"
    assert "whole number from 1" in caught.value.accepted
