"""Jobs of several members on the command line: equal ones, and roles from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from ....fake_service import FakeService
from ..invocation import Carrel, carrel, service

__all__ = ["carrel", "service"]

ROLES = """
arrangement = "spread"
must_succeed = ["worker"]

[roles.server]
command = ["python", "server.py"]

[roles.worker]
command = "torchrun 'my train.py'"
devices = 4
minimum = 2
maximum = 4
image = "torch"
"""


def test_equal_members_have_the_devices_and_the_image_of_the_options(
    service: FakeService, carrel: Carrel
) -> None:
    done = carrel(
        "run",
        "--workdir",
        ".",
        "--nodes",
        "2",
        "--devices",
        "4",
        "--image",
        "torch",
        "--",
        "torchrun",
        "train.py",
    )
    assert done.exit_code == 0, done.output
    body = service.called("POST", "requests")[0]
    assert body["roles"] == [
        {
            "name": "worker",
            "count": 2,
            "devices": 4,
            "image": "torch",
            "command": ["torchrun", "train.py"],
        }
    ]
    assert body["devices"] == 0
    assert not {"command", "image"} & body.keys()


@pytest.mark.parametrize("command", ["run", "submit"])
def test_roles_come_from_a_file(service: FakeService, carrel: Carrel, command: str) -> None:
    Path("roles.toml").write_text(ROLES)
    done = carrel(command, "--roles", "roles.toml", "--time", "4h", "--workdir", ".")
    assert done.exit_code == 0, done.output
    body = service.called("POST", "requests")[0]
    assert (body["arrangement"], body["must_succeed"], body["seconds"]) == (
        "spread",
        ["worker"],
        14400,
    )
    assert body["roles"] == [
        {"name": "server", "command": ["python", "server.py"]},
        {
            "name": "worker",
            "command": ["torchrun", "my train.py"],
            "devices": 4,
            "minimum": 2,
            "maximum": 4,
            "image": "torch",
        },
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("roles = 1", "roles.toml has no roles."),
        ("[roles]", "roles.toml has no roles."),
        ("[roles.a]\nmembers = 2", "the key 'members' of the role a is not known"),
        ("nodes = 2\n[roles.a]", "the key 'nodes' is not known"),
        ("roles = ", "is not valid TOML"),
        ('arrangement = "apart"\n[roles.a]', '"pack", "spread" or "node".'),
        ('must_succeed = "a"\n[roles.a]', 'A list of names of roles, such as ["worker"].'),
        ('[roles.a]\ncommand = ["x", 3]', "the key 'command' of the role a cannot be 3."),
        ("[roles.a]\ndevices = 0.5", "the key 'devices' of the role a cannot be 0.5."),
        (f"[roles.{'a' * 70}]", "1 to 32 lower-case letters, digits and hyphens."),
        ("[roles]\na = 1", "the role a is not a table"),
        ('[roles.a]\ncommand = "echo \'"', "has an open quotation"),
        (
            '[roles.a]\ncommand = "x"\ncount = "two"',
            "the key 'count' of the role a cannot be 'two'. A whole number of members, such as 2.",
        ),
    ],
)
def test_a_file_that_is_no_list_of_roles_is_refused_with_the_reason(
    service: FakeService, carrel: Carrel, text: str, message: str
) -> None:
    Path("roles.toml").write_text(text)
    done = carrel("run", "--roles", "roles.toml", "--group", "cs101", "--workdir", ".")
    assert done.exit_code == 6
    assert message in done.stderr
    assert not service.requests


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run",), "Missing argument 'PROGRAM'"),
        (("submit",), "Missing argument 'FILE'"),
        (("run", "--roles", "x.toml", "python"), "give only --roles"),
        (("submit", "a.ipynb", "--roles", "x.toml"), "Give either FILE or --roles FILE"),
    ],
)
def test_contradicting_arguments_are_refused(
    service: FakeService, carrel: Carrel, arguments: tuple[str, ...], message: str
) -> None:
    done = carrel(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr
