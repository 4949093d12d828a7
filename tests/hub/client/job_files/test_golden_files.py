"""Job files of all formats, and what becomes of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from carrel.hub.client.job_files import openpai_variables, reader
from carrel.hub.client.job_files.description import DescribedJob, JobFileFormat
from carrel.hub.client.job_files.job_fields import job_fields
from carrel.hub.schemas import JobIn

FOLDER = Path(__file__).parent / "golden"
FILES = sorted(path for path in FOLDER.iterdir() if path.suffix != ".expected")


def result(name: str, job: DescribedJob) -> dict[str, object]:
    body = json.dumps(job_fields(name, job), ensure_ascii=False)
    if job.prologue:
        body = body.replace(json.dumps(job.prologue, ensure_ascii=False)[1:-1], r"PROLOGUE\n")
    return {
        "images": {role.name: role.image for role in job.roles},
        "body": json.loads(body),
        "not_kept": [f"line {each.line}, {each.field}: {each.reason}" for each in job.not_kept],
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_becomes_this_job(path: Path) -> None:
    expected = json.loads(path.with_suffix(".expected").read_text())
    job = reader.read(path.name, path.read_bytes())
    assert result(path.name, job) == expected
    JobIn.model_validate({"group": "-", **job_fields(path.name, job)})


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_windows_line_ends_and_a_byte_order_mark_change_nothing(path: Path) -> None:
    expected = json.loads(path.with_suffix(".expected").read_text())
    content = b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n")
    assert result(path.name, reader.read(path.name, content)) == expected


def test_no_secret_is_in_a_job_or_in_what_is_not_kept() -> None:
    for path in FILES:
        assert "correct horse" not in repr(reader.read(path.name, path.read_bytes()))


def test_a_prologue_has_the_names_and_ports_of_the_file() -> None:
    path = FOLDER / "two_roles.yaml"
    job = reader.read(path.name, path.read_bytes(), JobFileFormat.OPENPAI)
    name, script, roles = openpai_variables.split(job.prologue + job.roles[1].script)
    assert (name, script) == ("parameter_server", job.roles[1].script)
    assert [(role.name, role.count, role.ports) for role in roles] == [
        ("Worker", 2, (("sync", 2),)),
        ("ps_server", 1, ()),
    ]


def test_a_secret_that_a_command_names_becomes_one_of_the_site() -> None:
    text = (FOLDER / "two_roles.yaml").read_text()
    used = text.replace("commands:\n", "commands:\n      - login <% $secrets.docker %>\n", 1)
    assert used != text
    job = reader.read("job.yaml", used.encode(), JobFileFormat.OPENPAI)
    assert job.secrets == ("docker",)
    assert job_fields("job.yaml", job)["secrets"] == ["docker:env"]
    assert "login ${docker}" in "".join(role.script for role in job.roles)
    assert any("carrel secret set docker" in each.reason for each in job.not_kept)
    assert "correct horse" not in repr(job)
