"""Image builds: the engine's commands, progress messages, lock checks and retention."""

from __future__ import annotations

import sys
import zipfile
from itertools import pairwise
from pathlib import Path

import pytest

from carrel.hub.errors import ImageFailed, InvalidInput, Unavailable
from carrel.images import build as images_build
from carrel.images import build_context, labels, recipes, retention
from carrel.images.build import BuildOrder, BuildProgress, build
from carrel.images.docker_cli import Docker, ListedImage
from carrel.images.lock_check import compare

from .conftest import FakeDocker

LOG = """#1 [internal] load build definition from Dockerfile
#1 transferring dockerfile: 2.29kB done
#1 DONE 0.0s
#4 [1/3] FROM docker.io/carrel/debian:bookworm
#4 CACHED
#5 [2/3] RUN apt-get update -qq     && apt-get install -y -qq --no-install-recommends tini less
#5 0.311 Get:1 bookworm InRelease
#5 [2/3] RUN apt-get update -qq     && apt-get install -y -qq --no-install-recommends tini less
#5 DONE 39.7s
#6 [3/3] RUN pip install
#6 1.0 Collecting torch
#6 ERROR: executor failed running
"""


def image(name: str, number: int, *, on: str = "") -> ListedImage:
    return ListedImage(
        digest=f"sha256:{number:064x}",
        name=name,
        built=f"2026-11-{number:02}",
        size_bytes=1,
        labels={labels.NAME: name, labels.BASE_DIGEST: on},
        tags=(),
    )


def inspected(name: str, digest: str, **marks: str) -> dict[str, object]:
    return {
        "Id": digest,
        "Created": "2026-11-21T10:00:00Z",
        "Size": 5,
        "RepoTags": [f"carrel/{name}:latest"],
        "Config": {"Labels": {labels.NAME: name, **marks}},
    }


class TestProgram:
    def test_the_first_docker_with_buildkit_is_used(self, tmp_path: Path) -> None:
        without = FakeDocker(tmp_path / "newer", buildkit=False)
        able = FakeDocker(tmp_path / "debian")
        docker = Docker(path=f"{without.folder}:{able.folder}")
        assert docker.program == str(able.folder / "docker")
        with pytest.raises(ImageFailed, match=r"does not support BuildKit\. Install its plug-in"):
            assert Docker(path=str(without.folder)).program
        with pytest.raises(ImageFailed, match="program docker was not found"):
            assert Docker(path=str(tmp_path)).program

    def test_an_engine_that_does_not_answer_is_reported(
        self, docker: Docker, fake: FakeDocker
    ) -> None:
        fake.answer("image", err="Cannot connect to the Docker daemon at unix:///x.", status=1)
        with pytest.raises(Unavailable, match="does not answer"):
            docker.images()

    def test_a_refusal_shows_the_engines_message(self, docker: Docker, fake: FakeDocker) -> None:
        fake.answer("image", err="Error: image is being used by container 12", status=1)
        with pytest.raises(ImageFailed, match="used by container 12"):
            docker.ask("image", "rm", "x")


class TestBuild:
    @pytest.fixture(autouse=True)
    def no_wheel(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Packing this checkout takes seconds, and has a test of its own."""
        monkeypatch.setattr(build_context, "wheel_of_carrel", lambda folder: folder)

    def words(self, docker: Docker, fake: FakeDocker, order: BuildOrder) -> list[str]:
        below = "sha256:" + "1" * 64
        fake.answer("image", "ls", out="12")
        fake.answer("image", "inspect", out=[inspected(order.recipe.name, below)])
        fake.answer("tag")
        fake.answer("build", out=LOG.replace("ERROR: executor failed running", "DONE 2.0s"))
        build(docker, order, lambda line: None, lambda text: None)
        return next(words for words in fake.asked if words[0] == "build")

    def test_secrets_are_handed_over_by_path_and_the_site_by_argument(
        self, docker: Docker, fake: FakeDocker, tmp_path: Path
    ) -> None:
        bundle, config = tmp_path / "ca.pem", tmp_path / "pip.conf"
        bundle.write_text("certificates")
        config.write_text("[global]")
        order = BuildOrder(
            recipe=recipes.find("base"),
            ca_bundle=bundle,
            pip_config=config,
            arguments=("HTTP_PROXY=http://proxy",),
        )
        words = self.words(docker, fake, order)
        pairs = list(pairwise(words))
        assert ("--secret", f"id=ca,src={bundle}") in pairs
        assert ("--secret", f"id=pip,src={config}") in pairs
        assert ("--build-arg", "FROM=carrel/debian:bookworm") in pairs
        assert ("--build-arg", "HTTP_PROXY=http://proxy") in pairs
        assert ("--tag", "carrel/base:latest") in pairs
        assert ("--network", "host") in pairs

    def test_labels_name_the_image_and_its_base(self, docker: Docker, fake: FakeDocker) -> None:
        recipe = recipes.find("torch")
        words = self.words(docker, fake, BuildOrder(recipe=recipe, variant="cuda"))
        marks = dict(value.split("=", 1) for word, value in pairwise(words) if word == "--label")
        assert marks[labels.NAME] == "torch"
        assert marks[labels.TITLE] == "PyTorch (cuda)"
        assert marks[labels.KERNELS] == "python3"
        assert marks[labels.PACKAGES].startswith("torch 2.13.0, numpy ")
        assert marks[labels.LOCK] == recipes.fingerprint(recipe, "cuda")
        assert marks[labels.BASE_NAME] == "carrel/datascience:latest"
        assert marks[labels.BASE_DIGEST] == "sha256:" + "1" * 64

    def test_without_a_bootstrapped_debian_the_public_one_is_pulled(
        self, docker: Docker, fake: FakeDocker
    ) -> None:
        fake.answer("image", "inspect", out=[inspected("base", "sha256:" + "2" * 64)])
        fake.answer("image", "ls", out="")
        fake.answer("tag")
        fake.answer("build", out="")
        build(docker, BuildOrder(recipe=recipes.find("base")), lambda line: None, lambda text: None)
        words = next(words for words in fake.asked if words[0] == "build")
        assert f"FROM={images_build.PULLED}" in words

    def test_a_base_image_must_be_built_first(self, docker: Docker, fake: FakeDocker) -> None:
        fake.answer("image", "ls", out="")
        order = BuildOrder(recipe=recipes.find("torch"))
        with pytest.raises(InvalidInput, match="Run first: carrel images build datascience"):
            build(docker, order, lambda line: None, lambda text: None)

    def test_a_failure_ends_with_the_end_of_the_log(self, docker: Docker, fake: FakeDocker) -> None:
        fake.answer("image", "ls", out="")
        fake.answer("build", out=LOG, status=1)
        lines: list[str] = []
        with pytest.raises(ImageFailed) as failed:
            build(docker, BuildOrder(recipe=recipes.find("base")), lines.append, lambda text: None)
        assert str(failed.value).startswith("base was not built.\n")
        assert "executor failed running" in str(failed.value)
        assert LOG.splitlines()[0] in lines

    def test_missing_files_are_reported_before_anything_is_built(
        self, docker: Docker, fake: FakeDocker, tmp_path: Path
    ) -> None:
        fake.answer("image", "ls", out="")
        for order, sentence in (
            (
                BuildOrder(recipe=recipes.find("base"), ca_bundle=tmp_path / "no.pem"),
                "There is no file",
            ),
            (BuildOrder(recipe=recipes.find("base"), wheelhouse=tmp_path), "There is no wheel in"),
        ):
            with pytest.raises(InvalidInput, match=sentence):
                build(docker, order, lambda line: None, lambda text: None)
        assert not any(words[0] == "build" for words in fake.asked)


def test_progress_reports_each_step_once() -> None:
    progress = BuildProgress()
    said = [sentence for line in LOG.splitlines() for sentence in progress.feed(line)]
    assert said == [
        "[1/3] FROM docker.io/carrel/debian:bookworm",
        "[1/3] cached",
        "[2/3] RUN apt-get update -qq && apt-get install -y -qq --no-install-recomme…",
        "[2/3] done in 39.7s",
        "[3/3] RUN pip install",
        "[3/3] ERROR: executor failed running",
    ]


def test_a_long_step_reports_its_output_every_ten_seconds() -> None:
    log = """\
#5 [2/3] RUN apt-get install
#5 2.10 Unpacking libjansson4:amd64 (2.14-2) ...
#5 11.31 Unpacking libgssapi-krb5-2:amd64 (1.20.1-2) ...
#5 14.00 Unpacking libkrb5-3:amd64 (1.20.1-2) ...
#9 30.00 of a step whose start is not in the log
#5 43.12 Setting up libgssapi-krb5-2:amd64 (1.20.1-2) ...
#5 DONE 44.0s
"""
    progress = BuildProgress()
    assert [sentence for line in log.splitlines() for sentence in progress.feed(line)] == [
        "[2/3] RUN apt-get install",
        "[2/3] 11 s: Unpacking libgssapi-krb5-2:amd64 (1.20.1-2) ...",
        "[2/3] 43 s: Setting up libgssapi-krb5-2:amd64 (1.20.1-2) ...",
        "[2/3] done in 44.0s",
    ]


class TestWheel:
    def test_the_same_code_gives_the_same_bytes(self, tmp_path: Path) -> None:
        made = []
        for name in ("one", "two"):
            folder = tmp_path / name
            folder.mkdir()
            made.append(build_context.wheel_of_carrel(folder).read_bytes())
        assert made[0] == made[1]
        with zipfile.ZipFile(tmp_path / "one" / next((tmp_path / "one").iterdir()).name) as wheel:
            names = wheel.namelist()
        assert "carrel/images/base/requirements.txt" in names
        assert "carrel/spawners/runner/__main__.py" in names
        assert not any(name.startswith("carrel/tests") for name in names)

    def test_an_installed_carrel_is_packed_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        source, place, again = (tmp_path / name for name in ("source", "place", "again"))
        for folder in (source, again):
            folder.mkdir()
        built = build_context.wheel_of_carrel(source)
        with zipfile.ZipFile(built) as wheel:
            wheel.extractall(place)
            before = {name: wheel.read(name) for name in wheel.namelist()}
        monkeypatch.syspath_prepend(str(place))
        monkeypatch.setattr(build_context, "ROOT", place / "carrel")
        assert str(place) in sys.path
        with zipfile.ZipFile(build_context.wheel_of_carrel(again)) as wheel:
            after = {name: wheel.read(name) for name in wheel.namelist()}
        record = next(name for name in before if name.endswith("RECORD"))
        assert set(after) == set(before)
        assert sorted(after.pop(record).split()) == sorted(before.pop(record).split())
        assert after == before


LOCKED = {"numpy": "2.4.6", "typing-extensions": "4.16.0"}


class TestVerdict:
    def test_the_packages_of_the_lock_and_carrel_itself_are_good(self) -> None:
        inside = {"numpy": "2.4.6", "typing_extensions": "4.16.0", "carrel": "0.1.0", "pip": "23"}
        verdict = compare(image("base", 1), LOCKED, inside, same_lock=True)
        assert verdict.good
        assert verdict.sentences() == [
            "base@000000000000 has exactly the 2 packages of its lock files."
        ]

    def test_every_difference_is_named(self) -> None:
        inside = {"numpy": "2.4.5", "requests": "2"}
        verdict = compare(image("base", 1), LOCKED, inside, same_lock=False)
        assert not verdict.good
        assert verdict.sentences() == [
            "base@000000000000 was built from other lock files.",
            "base@000000000000 lacks: typing-extensions 4.16.0.",
            "base@000000000000 has other versions: numpy 2.4.5 for 2.4.6.",
            "base@000000000000 has packages that are not in its lock files: requests 2.",
        ]


class TestFates:
    def test_needed_newest_and_base_images_are_kept(self) -> None:
        base1, base2, base3 = image("base", 1), image("base", 2), image("base", 3)
        science1 = image("science", 4, on=base1.digest)
        torch1 = image("torch", 5, on=science1.digest)
        torch2 = image("torch", 6, on=base2.digest)
        science2 = image("science", 7, on=base3.digest)
        torch3 = image("torch", 8, on=science2.digest)
        images = [torch3, science2, torch2, torch1, science1, base3, base2, base1]
        needed = {torch1.reference: "Pinned for cs101."}
        assert [
            (fate.image, fate.why) for fate in retention.retention_decisions(images, needed)
        ] == [
            (torch3, "It is the newest build of torch."),
            (science2, "It is the newest build of science."),
            (torch2, ""),
            (torch1, "Pinned for cs101."),
            (science1, "It is the base of an image that is kept."),
            (base3, "It is the newest build of base."),
            (base2, ""),
            (base1, "It is the base of an image that is kept."),
        ]

    def test_a_digest_counts_whatever_the_name_in_the_reference(self) -> None:
        old, new = image("base", 1), image("base", 2)
        (_, fate) = retention.retention_decisions(
            [new, old], {f"renamed@{old.digest}": "An output names it."}
        )
        assert fate.why == "An output names it."
