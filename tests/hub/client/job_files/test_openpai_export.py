"""An exported job reads back as the same job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.client.job_files import reader
from carrel.hub.client.job_files.description import JobFileFormat
from carrel.hub.client.job_files.job_fields import job_fields, with_images
from carrel.hub.client.job_files.openpai_export import export
from carrel.hub.errors import InvalidInput
from carrel.hub.schemas import JobIn, RequestOut

FOLDER = Path(__file__).parent / "golden"


def request(body: dict[str, Any], **more: Any) -> RequestOut:
    """Return the job that a site makes of a body."""
    job = JobIn.model_validate({"group": "cs101", **body})
    roles = [
        {**role.model_dump(exclude={"count"}), "minimum": role.count, "maximum": role.count}
        for role in job.roles
    ]
    main = next((r for r in job.roles if not job.must_succeed or r.name in job.must_succeed), None)
    return RequestOut(
        id="j-1", kind="job", owner="anna", state="queued", submitted_at=0.0,
        **job.model_dump(
            include={"group", "devices", "seconds", "memory_bytes", "retries", "priority", "labels",
                     "must_succeed", "arrangement", "image"}
        ),
        roles=roles,
        command=main.command if main else job.command,
        **more,
    )  # fmt: skip  # as a service does


def imported(name: str, content: bytes) -> dict[str, object]:
    job = reader.read(name, content, JobFileFormat.OPENPAI)
    return with_images(job_fields(name, job), {role.name: role.image for role in job.roles})


def there_and_back(name: str, content: bytes) -> tuple[dict[str, object], dict[str, object]]:
    body = imported(name, content)
    return body, imported("again.yaml", export(request(body)).text.encode())


@pytest.mark.parametrize("name", ["one_role.yaml", "two_roles.yaml", "version_1.json"])
def test_a_golden_file(name: str) -> None:
    body, again = there_and_back(name, (FOLDER / name).read_bytes())
    assert again == body


words = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20
).filter(lambda text: "<%" not in text)
commands = st.lists(words | st.sampled_from(["<% $parameters.p %>", "$PAI_JOB_NAME", " x:\t"]))
policies = st.fixed_dictionaries(
    {},
    optional={
        "minFailedInstances": st.sampled_from([-1, 1, 2]),
        "minSucceededInstances": st.sampled_from([-1, 1, 3]),
    },
)
roles = st.fixed_dictionaries(
    {
        "instances": st.integers(1, 3),
        "dockerImage": st.sampled_from(["a", "b"]),
        "resourcePerInstance": st.fixed_dictionaries(
            {"gpu": st.integers(0, 8), "memoryMB": st.sampled_from([0, 100, 2048])},
            optional={"ports": st.dictionaries(st.sampled_from(["ssh", "x"]), st.integers(1, 2))},
        ),
        "commands": commands.map(lambda found: ["true", *found]),
    },
    optional={"completion": policies},
)
files = st.fixed_dictionaries(
    {
        "protocolVersion": st.just(2),
        "name": st.from_regex(r"[A-Za-z0-9._~-]{1,20}", fullmatch=True),
        "type": st.just("job"),
        "prerequisites": st.just(
            [
                {"type": "dockerimage", "name": "a", "uri": "example/a:1"},
                {"type": "dockerimage", "name": "b", "uri": "b"},
            ]
        ),
        "jobRetryCount": st.integers(0, 10),
        "parameters": words.map(lambda text: {"p": f"<{text}%>"}),
        "taskRoles": st.dictionaries(
            st.sampled_from(["worker", "PS", "a_b", "_1"]), roles, min_size=1, max_size=3
        ),
        "extras": st.sampled_from(["oppo", "test", "crit"]).map(
            lambda name: {"hivedScheduler": {"jobPriorityClass": name}}
        ),
    }
)


@given(files)
def test_any_file(file: dict[str, Any]) -> None:
    content = yaml.safe_dump(file, sort_keys=False, allow_unicode=True).encode()
    body, again = there_and_back("job.yaml", content)
    assert again == body


def test_a_job_of_the_command_line_becomes_a_file() -> None:
    body: dict[str, Any] = {
        "roles": [
            {"name": "ps-server", "command": ["python", "it's.py"], "count": 1},
            {"name": "worker", "command": ["bash", "-c", "a <% b"], "devices": 2, "count": 3},
        ],
        "must_succeed": ["worker"],
        "arrangement": "spread",
        "labels": {"study": "one"},
        "retries": 0,
    }
    made = export(request(body, after=["j-0"], workdir="here"))
    assert yaml.safe_load(made.text) == {
        "protocolVersion": 2,
        "name": "j-1",
        "type": "job",
        "jobRetryCount": 0,
        "prerequisites": [{"type": "dockerimage", "uri": "none", "name": "image_0"}],
        "taskRoles": {
            "ps_server": {
                "instances": 1,
                "completion": {"minFailedInstances": -1, "minSucceededInstances": -1},
                "dockerImage": "image_0",
                "resourcePerInstance": {"gpu": 0, "cpu": 1, "memoryMB": 0},
                "commands": ["python 'it'\"'\"'s.py'"],
            },
            "worker": {
                "instances": 3,
                "completion": {"minFailedInstances": 1, "minSucceededInstances": 3},
                "dockerImage": "image_0",
                "resourcePerInstance": {"gpu": 2, "cpu": 1, "memoryMB": 0},
                "commands": ["a <% $parameters.open %> b"],
            },
        },
        "parameters": {"open": "<%"},
    }
    fields = [each.field for each in made.not_kept]
    assert fields == [
        "seconds", "group", "after", "workdir", "arrangement", "retries", "labels", "image",
    ]  # fmt: skip  # short


def test_a_notebook_cannot_be_exported() -> None:
    job = RequestOut(
        id="j-1", kind="job", owner="anna", group="cs101", devices=0, seconds=60, state="queued",
        submitted_at=0.0, notebook="train.ipynb",
    )  # fmt: skip  # short
    with pytest.raises(InvalidInput, match="j-1 is not a command"):
        export(job)
