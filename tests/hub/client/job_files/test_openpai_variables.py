"""The variables of OpenPAI, as bash sets them in each member."""

from __future__ import annotations

import subprocess

import pytest

from carrel.hub.client.job_files import openpai_variables
from carrel.hub.client.job_files.openpai_variables import TaskRoleNames

ROLES = (
    TaskRoleNames(name="worker", count=2, ports=(("sync", 2),)),
    TaskRoleNames(name="ps_server", count=1, ports=(("http", 1),)),
)


def variables(roles: tuple[TaskRoleNames, ...], **environment: str) -> dict[str, str]:
    script = openpai_variables.prologue("the-job", roles) + "env"
    done = subprocess.run(
        ["bash", "-c", script],
        env={"PATH": "/usr/bin:/bin", **environment},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    found = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    return {name: value for name, value in found.items() if name.startswith("PAI_")}


OF_THE_JOB = {
    "PAI_JOB_NAME": "the-job",
    "PAI_WORK_DIR": "/",
    "PAI_TASK_ROLE_COUNT": "2",
    "PAI_TASK_ROLE_LIST": "worker,ps_server",
    "PAI_TASK_ROLE_TASK_COUNT_worker": "2",
    "PAI_TASK_ROLE_TASK_COUNT_ps_server": "1",
    "PAI_HOST_IP_worker_0": "10.0.0.1",
    "PAI_HOST_IP_worker_1": "10.0.0.2",
    "PAI_HOST_IP_ps_server_0": "10.0.0.3",
    "PAI_PORT_LIST_worker_0_ssh": "20500",
    "PAI_PORT_LIST_worker_0_http": "20501",
    "PAI_PORT_LIST_worker_0_sync": "20502,20503",
    "PAI_PORT_LIST_worker_1_ssh": "20504",
    "PAI_PORT_LIST_worker_1_http": "20505",
    "PAI_PORT_LIST_worker_1_sync": "20506,20507",
    "PAI_PORT_LIST_ps_server_0_ssh": "20508",
    "PAI_PORT_LIST_ps_server_0_http": "20509",
    "PAI_TASK_ROLE_worker_HOST_LIST": "10.0.0.1:20501,10.0.0.2:20505",
    "PAI_TASK_ROLE_ps_server_HOST_LIST": "10.0.0.3:20509",
}


@pytest.mark.parametrize(
    ("rank", "own"),
    [
        (
            "1",
            {
                "PAI_CURRENT_TASK_ROLE_NAME": "worker",
                "PAI_CURRENT_TASK_ROLE_TASK_COUNT": "2",
                "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "1",
                "PAI_TASK_INDEX": "1",
                "PAI_CURRENT_CONTAINER_IP": "10.0.0.2",
                "PAI_CURRENT_CONTAINER_PORT": "20505",
                "PAI_CONTAINER_HOST_ssh_PORT_LIST": "20504",
                "PAI_CONTAINER_HOST_http_PORT_LIST": "20505",
                "PAI_CONTAINER_HOST_sync_PORT_LIST": "20506,20507",
            },
        ),
        (
            "2",
            {
                "PAI_CURRENT_TASK_ROLE_NAME": "ps_server",
                "PAI_CURRENT_TASK_ROLE_TASK_COUNT": "1",
                "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "0",
                "PAI_TASK_INDEX": "0",
                "PAI_CURRENT_CONTAINER_IP": "10.0.0.3",
                "PAI_CURRENT_CONTAINER_PORT": "20509",
                "PAI_CONTAINER_HOST_ssh_PORT_LIST": "20508",
                "PAI_CONTAINER_HOST_http_PORT_LIST": "20509",
            },
        ),
    ],
)
def test_a_member_of_several(rank: str, own: dict[str, str]) -> None:
    addresses = "10.0.0.1,10.0.0.2,10.0.0.3"
    found = variables(ROLES, RANK=rank, MASTER_PORT="9500", CARREL_ADDRESSES=addresses)
    assert found == OF_THE_JOB | own
    assert all(openpai_variables.is_set(name) for name in found)


def test_a_job_of_one_member() -> None:
    found = variables((TaskRoleNames(name="train", count=1, ports=()),))
    assert found["PAI_HOST_IP_train_0"] == "127.0.0.1"
    port = found["PAI_CONTAINER_HOST_http_PORT_LIST"]
    assert 20_000 < int(port) < 32_768
    assert found["PAI_TASK_ROLE_train_HOST_LIST"] == f"127.0.0.1:{port}"


def test_variables_that_are_not_set_are_known() -> None:
    text = "x=$PAI_USER_NAME; y=${PAI_HOST_IP_a_0}; z=$PAI_USER_NAME"
    assert openpai_variables.used(text) == ["PAI_USER_NAME", "PAI_HOST_IP_a_0"]
    assert not openpai_variables.is_set("PAI_USER_NAME")


def test_a_script_without_them_is_not_split() -> None:
    assert openpai_variables.split("# Variables of OpenPAI\necho") == (
        "",
        "# Variables of OpenPAI\necho",
        (),
    )
