"""Job files of other platforms on the command line."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from ....fake_service import PREFIX, FakeService
from ..invocation import Carrel, carrel, service

__all__ = ["carrel", "service"]

JOB = """\
protocolVersion: 2
name: two-roles
type: job
jobRetryCount: 1
prerequisites:
  - {type: dockerimage, name: image, uri: torch}
taskRoles:
  server:
    dockerImage: image
    resourcePerInstance: {gpu: 0, cpu: 1, memoryMB: 512}
    commands: [python server.py]
  worker:
    instances: 2
    completion: {minSucceededInstances: 2}
    dockerImage: image
    resourcePerInstance: {gpu: 1, memoryMB: 1024}
    commands: [python worker.py]
"""
MANIFEST = """\
name: model
gpus: 1
framework: {name: pytorch, version: "1.0", command: python train.py}
"""


def catalogue(service: FakeService, *names: str, choice: bool = True) -> None:
    images = [
        {
            "name": name, "digest": "sha256:1", "reference": f"{name}@sha256:1", "title": "",
            "summary": "", "size_bytes": 1, "built_at": 0.0, "newest": True,
        }
        for name in names
    ]  # fmt: skip  # short
    body = {"choice": choice, "images": images, "pins": []}
    service.extra["GET", f"{PREFIX}/images"] = lambda handler: handler.say(200, body)


@pytest.fixture(autouse=True)
def files(service: FakeService, carrel: Carrel) -> None:
    catalogue(service, "torch")
    Path("job.yaml").write_text(JOB)


def posted(service: FakeService) -> list[dict[str, Any]]:
    return service.called("POST", "requests")


def packed(body: dict[str, Any]) -> list[str]:
    content = base64.b64decode(body["archive"])
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return archive.getnames()


def test_a_file_is_submitted_after_what_is_not_kept_is_listed(
    service: FakeService, carrel: Carrel
) -> None:
    done = carrel("submit", "--format", "openpai", "job.yaml", "--time", "2h", "--label", "a=b")
    assert done.exit_code == 0, done.output
    (body,) = posted(service)
    assert [(r["name"], r["count"], r["devices"], r["image"]) for r in body["roles"]] == [
        ("server", 1, 0, "torch"),
        ("worker", 2, 1, "torch"),
    ]
    assert (body["seconds"], body["retries"], body["memory_bytes"]) == (7200, 1, 2**30)
    assert body["labels"] == {"name": "two-roles", "a": "b"}
    assert body["must_succeed"] == ["worker"]
    assert packed(body) == []
    assert done.stderr.splitlines()[0] == "job.yaml: two-roles (openpai)"
    assert "line 10, taskRoles.server.resourcePerInstance.cpu: A job has no number" in done.stderr
    assert "Memory is the same for each member: server gets 1,024 MiB." in done.stderr


def test_options_have_precedence_over_the_file(service: FakeService, carrel: Carrel) -> None:
    catalogue(service, "torch", "other")
    done = carrel(
        "submit", "--format", "openpai", "job.yaml", "--retries", "3", "--memory", "2GiB",
        "--priority", "opportunistic", "--image", "other", "--label", "name=mine",
    )  # fmt: skip  # short
    assert done.exit_code == 0, done.output
    (body,) = posted(service)
    assert (body["retries"], body["memory_bytes"], body["priority"]) == (3, 2**31, "opportunistic")
    assert [role["image"] for role in body["roles"]] == ["other", "other"]
    assert body["labels"]["name"] == "mine"


def test_a_dry_run_shows_the_roles_and_submits_nothing(
    service: FakeService, carrel: Carrel
) -> None:
    done = carrel("submit", "--format", "openpai", "job.yaml", "--dry-run")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[:4] == [
        "job.yaml: two-roles (openpai)",
        "ROLE    MEMBERS  DEVICES   MEMORY  IMAGE  COMMAND",
        "server        1        0  1.0 GiB  torch  python server.py",
        "worker        2        1  1.0 GiB  torch  python worker.py",
    ]
    assert posted(service) == []


def test_a_dry_run_needs_no_site(carrel: Carrel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CARREL_TOKEN")
    monkeypatch.setenv("XDG_CONFIG_HOME", "nothing")
    done = carrel("import", ".", "--dry-run")
    assert done.exit_code == 0, done.output
    assert "You are not signed in to a site: images are not checked." in done.stderr
    assert "1 job could be submitted, 0 files refused." in done.stderr
    assert carrel("import", ".").exit_code == 1


def test_a_missing_image_is_refused_with_the_nearest(service: FakeService, carrel: Carrel) -> None:
    catalogue(service, "base", "my-torch")
    done = carrel("submit", "--format", "openpai", "job.yaml")
    assert done.exit_code == 6
    assert "job.yaml, line 6: The site has no image 'torch'. The nearest is my-torch" in done.stderr
    assert carrel("import", "job.yaml", "--nearest-image").exit_code == 0
    assert [role["image"] for role in posted(service)[0]["roles"]] == ["my-torch", "my-torch"]


def test_a_folder_is_imported_in_the_order_of_its_paths_or_not_at_all(
    service: FakeService, carrel: Carrel
) -> None:
    for name in ("jobs/b.yml", "jobs/a/c.yaml", "jobs/.hidden/x.yaml", "jobs/.y.yaml"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(JOB.replace("two-roles", Path(name).stem))
    Path("jobs/notes.txt").write_text("no job")
    Path("jobs/link.yaml").symlink_to("b.yml")
    Path("jobs/bad.json").write_text('{"a": ]')

    done = carrel("import", "jobs")
    assert done.exit_code == 1
    assert "Refused: jobs/bad.json, line 1: This is not valid YAML" in done.stderr
    assert "Nothing was submitted." in done.stderr
    assert posted(service) == []

    done = carrel("import", "jobs", "--skip-refused", "--json")
    assert done.exit_code == 1
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["file"], line["request"] and line["request"]["id"]) for line in lines] == [
        ("jobs/a/c.yaml", "j-00000000"),
        ("jobs/b.yml", "j-00000001"),
        ("jobs/bad.json", None),
    ]
    assert lines[2]["refused"]["line"] == 1
    assert lines[0]["roles"][1] == {
        "name": "worker", "members": 2, "devices": 1, "image": "torch",
        "command": "python worker.py",
    }  # fmt: skip  # short
    assert lines[0]["not_kept"][0] == {
        "line": 4,
        "field": "jobRetryCount",
        "reason": "After a lost process or a transient error it is retried 1 times, and not after "
        "an error of its own code.",
    }
    assert [body["labels"]["name"] for body in posted(service)] == ["c", "b"]


def test_a_file_that_the_site_refuses_is_refused_alone(
    service: FakeService, carrel: Carrel
) -> None:
    service.refuse = (409, {"code": "over_maximum", "message": "Too many devices."})
    done = carrel("import", "job.yaml")
    assert done.exit_code == 1
    assert "Refused: job.yaml: Too many devices." in done.stderr
    assert "0 jobs submitted, 1 file refused." in done.stderr


def test_a_manifest_needs_the_files_beside_it(service: FakeService, carrel: Carrel) -> None:
    Path("model").mkdir()
    Path("model/manifest.yml").write_text(MANIFEST)
    Path("model/train.py").write_text("")
    done = carrel("import", "model", "--image", "torch")
    assert done.exit_code == 1
    assert "Upload it with --upload" in done.stderr
    done = carrel("import", "model", "--image", "torch", "--upload")
    assert done.exit_code == 0, done.output
    (body,) = posted(service)
    assert sorted(packed(body)) == ["manifest.yml", "train.py"]
    assert (body["devices"], body["image"]) == (1, "torch")
    assert body["command"][:2] == ["bash", "-c"]
    assert body["command"][2].endswith("\npython train.py")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["submit", "job.yaml", "--dry-run"], "it needs --format"),
        (["submit", "job.yaml"], "add --format openpai or --format ffdl"),
        (["submit", "--format", "openpai", "job.yaml", "--devices", "1"], "omit --devices"),
        (["submit", "--format", "openpai", "job.yaml", "-p", "x", "1"], "Options of notebooks"),
        (["submit", "--format", "openpai", "--roles", "x.toml"], "either FILE or --roles"),
        (["import"], "Missing argument"),
    ],
)
def test_options_that_contradict_each_other(
    service: FakeService, carrel: Carrel, arguments: list[str], message: str
) -> None:
    done = carrel(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["import", "empty"], "empty has no job files."),
        (["import", "missing.yaml"], "missing.yaml is not a file."),
        (["submit", "--format", "ffdl", "job.yaml"], "job.yaml, line 1: framework is missing."),
    ],
)
def test_files_that_are_no_job_files(
    service: FakeService, carrel: Carrel, arguments: list[str], message: str
) -> None:
    Path("empty").mkdir()
    done = carrel(*arguments)
    assert done.exit_code not in {0, 2}
    assert message in done.stderr


def test_a_job_is_exported_and_imported_again(service: FakeService, carrel: Carrel) -> None:
    service.add("j-1", key="", command=["python", "train.py"], devices=2, image="torch")
    done = carrel("export", "j-1")
    assert done.exit_code == 0, done.output
    assert "Not kept: seconds: The time limit: OpenPAI has none." in done.stderr
    Path("again.yaml").write_text(done.stdout)
    assert carrel("import", "again.yaml").exit_code == 0
    (body,) = posted(service)
    assert (body["command"], body["devices"], body["image"]) == (
        ["bash", "-c", "python train.py"],
        2,
        "torch",
    )
    shown = json.loads(carrel("export", "--format", "openpai", "j-1", "--json").stdout)
    assert (shown["format"], shown["text"]) == ("openpai", done.stdout)
