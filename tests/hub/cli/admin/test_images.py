"""``carrel images …``: its calls to the service and to the engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from carrel.images import labels

from ....fake_service import PREFIX, FakeService
from ....images.conftest import FakeDocker
from ..invocation import Carrel, carrel, service

__all__ = ["carrel", "service"]

OLD = "sha256:" + "a" * 64
NEW = "sha256:" + "b" * 64


def shown(name: str, digest: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "digest": digest,
        "reference": f"{name}@{digest}",
        "title": "PyTorch",
        "summary": "For networks.",
        "size_bytes": 2**31,
        "built_at": 1_700_000_000.0,
        "packages": ["torch 2.13.0"],
        "kernels": ["python3"],
        "nodes": ["local"],
        **more,
    }


PIN = {
    "group": "cs101",
    "image": "torch",
    "digest": OLD,
    "reference": f"torch@{OLD}",
    "until": "2027-02-15",
    "set_by": "grace",
    "set_at": 1.0,
    "holds": True,
    "there": True,
    "sentence": "pinned for cs101 until 15 February 2027",
}
CATALOGUE = {
    "choice": True,
    "images": [
        shown("torch", NEW, newest=True),
        shown("torch", OLD, pinned=[PIN["sentence"]]),
        shown("torch", "sha256:" + "c" * 64),
    ],
    "pins": [PIN],
    "may_pin": ["cs101"],
}


@pytest.fixture
def sent(service: FakeService) -> list[tuple[str, Any]]:
    """The calls other than for the catalogue."""
    calls: list[tuple[str, Any]] = []

    def pin(handler: Any) -> None:
        body = json.loads(handler.raw) if handler.raw else None
        calls.append((f"{handler.command} {handler.path.removeprefix(PREFIX)}", body))
        handler.say(200, PIN)

    service.extra["GET", f"{PREFIX}/images"] = lambda handler: handler.say(200, CATALOGUE)
    for verb in ("PUT", "DELETE"):
        service.extra[verb, f"{PREFIX}/groups/cs101/pins/torch"] = pin
    return calls


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDocker:
    """An engine with two builds of torch, the older one tagged by hand."""
    fake = FakeDocker(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(fake.folder))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    built = [
        {
            "Id": digest,
            "Created": f"2026-11-{day}T10:00:00Z",
            "Size": 2**31,
            "RepoTags": tags,
            "Config": {"Labels": {labels.NAME: "torch"}},
        }
        for digest, day, tags in ((NEW, "20", ["carrel/torch:latest"]), (OLD, "10", ["mine:1"]))
    ]
    fake.answer("image", "rm")
    fake.answer("image", "inspect", out=built)
    fake.answer("image", "ls", out=f"{NEW}\n{OLD}")
    return fake


def needs(service: FakeService, **why: str) -> None:
    needed = [{"image": f"torch@{OLD}", "why": text} for text in why.values()]
    answer = {"needed": needed}
    service.extra["GET", f"{PREFIX}/images/needed"] = lambda handler: handler.say(200, answer)


class TestCatalogue:
    def test_older_builds_are_listed_where_they_are_pinned_or_asked_for(
        self, carrel: Carrel, sent: list[tuple[str, Any]]
    ) -> None:
        done = carrel("images")
        assert done.exit_code == 0, done.output
        head, *rows = done.output.splitlines()
        assert head.split() == ["IMAGE", "TITLE", "SIZE", "BUILT", "ON", "PINNED"]
        assert [row.split()[0] for row in rows] == ["torch@bbbbbbbbbbbb", "torch@aaaaaaaaaaaa"]
        assert rows[1].endswith("  for cs101 until 15 February 2027")
        assert len(carrel("images", "list", "--all").output.splitlines()) == 4
        assert json.loads(carrel("images", "list", "--json").output)["choice"]

    def test_an_image_is_shown_by_name_or_digest(
        self, carrel: Carrel, sent: list[tuple[str, Any]]
    ) -> None:
        assert f"torch@{NEW}" in carrel("images", "show", "torch").output
        old = json.loads(carrel("images", "show", f"torch@{OLD}", "--json").output)
        assert old["reference"] == f"torch@{OLD}"
        unknown = carrel("images", "show", "julia")
        assert unknown.exit_code == 1
        assert unknown.output == "carrel: There is no image julia. One of: torch.\n"

    def test_a_site_without_images_says_so(self, carrel: Carrel, service: FakeService) -> None:
        none = {"choice": False, "images": [], "pins": []}
        service.extra["GET", f"{PREFIX}/images"] = lambda handler: handler.say(200, none)
        assert "there are no images to choose" in carrel("images").output


class TestPins:
    def test_a_teacher_pins_and_unpins(self, carrel: Carrel, sent: list[tuple[str, Any]]) -> None:
        pin = ("--group", "cs101", "--until", "2027-02-15")
        done = carrel("images", "pin", "torch", *pin)
        assert done.output == f"torch@{OLD} is pinned for cs101 until 15 February 2027.\n"
        carrel("images", "pin", f"torch@{OLD}", "--group", "cs101")
        assert carrel("images", "unpin", "torch", "--group", "cs101").exit_code == 0
        place = "/groups/cs101/pins/torch"
        assert sent == [
            (f"PUT {place}", {"digest": "", "until": "2027-02-15"}),
            (f"PUT {place}", {"digest": OLD, "until": ""}),
            (f"DELETE {place}", None),
        ]

    def test_an_invalid_image_name_is_not_sent(
        self, carrel: Carrel, sent: list[tuple[str, Any]]
    ) -> None:
        done = carrel("images", "pin", "torch:latest", "--group", "cs101")
        assert done.exit_code == 1
        assert "is not the name of an image" in done.output
        assert sent == []


class TestAsking:
    def test_a_job_and_a_session_name_their_image(
        self, carrel: Carrel, service: FakeService
    ) -> None:
        carrel("submit", "train.ipynb", "--group", "cs101", "--image", f"torch@{OLD}")
        carrel("submit", "train.ipynb", "--group", "cs101")
        first, second = service.called("POST", "requests")
        assert first["image"] == f"torch@{OLD}"
        assert "image" not in second


class TestPrune:
    def test_builds_that_a_course_needs_are_kept(
        self, carrel: Carrel, service: FakeService, engine: FakeDocker
    ) -> None:
        needs(service, pin="Pinned for cs101 until 15 February 2027.")
        done = carrel("images", "prune", "--yes")
        assert done.exit_code == 0, done.output
        assert done.output.splitlines() == [
            "torch@bbbbbbbbbbbb kept: It is the newest build of torch.",
            "torch@aaaaaaaaaaaa kept: Pinned for cs101 until 15 February 2027.",
            "Removed 0 builds.",
        ]
        assert not any(words[:2] == ["image", "rm"] for words in engine.asked)

    def test_unused_builds_are_removed(
        self, carrel: Carrel, service: FakeService, engine: FakeDocker
    ) -> None:
        needs(service)
        dry = carrel("images", "prune", "--dry-run")
        assert "torch@aaaaaaaaaaaa can be removed." in dry.output
        assert carrel("images", "prune", input="n\n").output.endswith("Removed 0 builds.\n")
        assert not any(words[:2] == ["image", "rm"] for words in engine.asked)
        done = json.loads(carrel("images", "prune", "--yes", "--json").output)
        assert [image["reference"] for image in done["removed"]] == [f"torch@{OLD}"]
        removed = [words[2:] for words in engine.asked if words[:2] == ["image", "rm"]]
        assert removed == [[OLD]]

    def test_a_site_that_is_not_responding_prunes_nothing(
        self, carrel: Carrel, service: FakeService, engine: FakeDocker
    ) -> None:
        service.extra["GET", f"{PREFIX}/images/needed"] = lambda handler: handler.say(
            403, {"code": "forbidden", "detail": "This needs administrator rights."}
        )
        done = carrel("images", "prune", "--yes")
        assert done.exit_code == 1
        assert "This needs administrator rights." in done.output
        assert not any(words[:2] == ["image", "rm"] for words in engine.asked)


def test_an_unknown_image_is_not_built(carrel: Carrel, engine: FakeDocker) -> None:
    done = carrel("images", "build", "julia")
    assert done.exit_code == 1
    assert "One of: base, datascience, grading, jax, spark, torch" in done.output
    assert engine.asked == []


def test_a_build_prints_its_steps_and_keeps_its_log(
    carrel: Carrel, engine: FakeDocker, tmp_path: Path
) -> None:
    (tmp_path / "tiny").mkdir()
    for name, text in (
        ("Dockerfile", "ARG FROM\nFROM ${FROM}\n"),
        ("requirements.txt", ""),
        ("image.toml", 'title = "Tiny"\nsummary = "Small."\nfrom = "torch"\n'),
    ):
        (tmp_path / "tiny" / name).write_text(text)
    engine.answer(
        "image", "inspect", out=[{"Id": NEW, "Config": {"Labels": {labels.NAME: "tiny"}}}]
    )
    engine.answer("tag")
    engine.answer("build", out="#4 [1/1] FROM carrel/torch\n#4 DONE 0.1s\n")
    log = tmp_path / "build.log"
    done = carrel("images", "build", "./tiny", "--log", str(log))
    assert done.exit_code == 0, done.output
    assert f"tiny@{NEW}" in done.output
    assert "  [1/1] done in 0.1s" in done.output
    assert "#4 DONE 0.1s" in log.read_text()
