"""Images on a real engine: contents, what builds leave behind, and removal."""

from __future__ import annotations

import hashlib
import io
import json
import secrets
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from carrel.extensions.environment import jupyter_environment
from carrel.hub.errors import ImageFailed, InvalidInput
from carrel.images import labels, recipes, retention
from carrel.images.build import BuildOrder, build
from carrel.images.docker_cli import Docker, ListedImage
from carrel.images.lock_check import verify
from carrel.images.recipes import Recipe

from ..docker_engine import DockerEngine
from ..spawners.notebooks import notebook
from .kit import Site

pytestmark = pytest.mark.docker

INSTALLS = (
    (recipes.HERE / "datascience" / "Dockerfile")
    .read_text()
    .replace("FROM ${FROM}\n", "FROM ${FROM}\nENV PIP_NO_INDEX=1\n")
)
"""Those of the images above base do what this one does; here without asking a package index."""


@pytest.fixture(scope="module")
def engine(docker_engine: DockerEngine) -> Docker:
    return Docker(docker_engine.url)


@pytest.fixture
def shelf(engine: Docker, base_image: str, tmp_path: Path) -> Iterator[Shelf]:
    with shelf_in(tmp_path, engine, base_image) as made:
        yield made


@pytest.fixture(scope="module")
def series(
    engine: Docker, base_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Series]:
    """Three builds of one image, which several tests look at; the last test removes the first."""
    with shelf_in(tmp_path_factory.mktemp("series"), engine, base_image) as made:
        builds = [made.build(made.recipe(version)) for version in ("1.0", "2.0", "3.0")]
        yield Series(
            shelf=made,
            old=builds[0],
            middle=builds[1],
            newest=builds[2],
            steps=tuple(made.steps),
            log=tuple(made.log),
        )


@contextmanager
def shelf_in(folder: Path, engine: Docker, base_image: str) -> Iterator[Shelf]:
    engine.ask("tag", base_image, "carrel/base:latest")
    made = Shelf(engine, folder)
    yield made
    for image in engine.images():
        if image.name == made.name:
            engine.ask("image", "rm", *image.tags)


class Shelf:
    """A small image of a test, on top of base, that needs no package index."""

    def __init__(self, engine: Docker, folder: Path) -> None:
        self.engine = engine
        self.name = f"t{secrets.token_hex(4)}"
        self.folder = folder / self.name
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        self.log: list[str] = []
        self.steps: list[str] = []

    def recipe(self, version: str, dockerfile: str = INSTALLS) -> Recipe:
        """One that installs the package ``tiny`` in this version."""
        self.folder.mkdir(exist_ok=True)
        wheel = tiny(self.wheels, f"{self.name}pkg", version)
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        (self.folder / "Dockerfile").write_text(dockerfile)
        lock = f"{self.name}pkg=={version} --hash=sha256:{digest}\n"
        (self.folder / "requirements.txt").write_text(lock)
        (self.folder / "image.toml").write_text(
            'title = "Tiny"\nsummary = "For a test."\nfrom = "base"\nkernels = ["python3"]\n'
            f'packages = ["{self.name}pkg"]\n'
        )
        return Recipe.read(self.folder)

    def build(self, recipe: Recipe, ca_bundle: Path | None = None) -> ListedImage:
        order = BuildOrder(recipe=recipe, wheelhouse=self.wheels, ca_bundle=ca_bundle)
        return build(self.engine, order, self.log.append, self.steps.append)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """An image in three versions, of which each has another lock file."""

    shelf: Shelf
    old: ListedImage
    middle: ListedImage
    newest: ListedImage
    steps: tuple[str, ...]
    log: tuple[str, ...]


def tiny(folder: Path, name: str, version: str) -> Path:
    """A wheel of one empty module; the same bytes each time."""
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    content = {
        f"{name}.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(wheel, "w") as packed:
        for path, text in content.items():
            packed.writestr(zipfile.ZipInfo(path), text)
    return wheel


def inside(engine: Docker, image: str, *words: str) -> str:
    head, *rest = words
    run = ("run", "--rm", "--network", "none", "--entrypoint", head, image)
    return engine.ask(*run, *rest)


def layers(engine: Docker, image: str) -> list[str]:
    """The digests of their content, from the lowest up."""
    found = engine.ask("image", "inspect", "--format", "{{json .RootFS.Layers}}", image)
    return [str(layer) for layer in json.loads(found)]


def holds(engine: Docker, image: str, what: bytes) -> bool:
    """Whether an image has these bytes in a layer of its own, or in its metadata.

    The layers of the base image were there before these bytes, so that they are not read.
    """
    below = {layer.partition(":")[2] for layer in layers(engine, "carrel/base:latest")}
    with subprocess.Popen(
        [engine.program, "save", image], env=engine.environment, stdout=subprocess.PIPE
    ) as saving:
        assert saving.stdout is not None
        found = False
        with tarfile.open(fileobj=saving.stdout, mode="r|") as saved:
            for member in saved:
                known = not below.isdisjoint(Path(member.name).parts)
                content = saved.extractfile(member) if member.isfile() and not known else None
                if content is not None and _within(content.read(), what):
                    found = True
    assert saving.returncode == 0
    return found


def _within(content: bytes, what: bytes) -> bool:
    if what in content:
        return True
    try:  # a layer, which newer engines save compressed
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:*") as layer:
            files = (layer.extractfile(member) for member in layer if member.isfile())
            return any(file is not None and what in file.read() for file in files)
    except tarfile.TarError:
        return False


class TestBase:
    def test_it_holds_the_packages_of_its_lock_and_no_others(
        self, engine: Docker, base_image: str
    ) -> None:
        (image,) = engine.inspect([base_image])
        verdict = verify(engine, image, recipes.find("base"))
        assert verdict.good, verdict.sentences()

    def test_its_labels_describe_it(self, engine: Docker, base_image: str) -> None:
        (image,) = engine.inspect([base_image])
        locked = recipes.locked(recipes.find("base"))
        assert image.name == "base"
        assert image.labels[labels.TITLE] == "Python and Jupyter"
        assert image.labels[labels.KERNELS] == "python3"
        assert f"jupyterlab {locked['jupyterlab']}" in image.labels[labels.PACKAGES]
        assert image.labels[labels.BASE_NAME]

    def test_it_runs_as_a_student_and_jupyter_finds_the_extensions_of_carrel(
        self, engine: Docker, base_image: str
    ) -> None:
        said = inside(
            engine,
            base_image,
            "/opt/carrel/bin/python",
            "-c",
            "import json, os; from carrel.extensions.environment import jupyter_environment as j; "
            "print(json.dumps([os.getuid(), j({}), {n: os.environ[n] for n in j({})}]))",
        )
        uid, wanted, found = json.loads(said)
        assert uid == 1000
        assert found == wanted
        assert set(wanted) == set(jupyter_environment({}))


class TestSecrets:
    # What a step with the secret makes of it: proof that it was there.
    USES = INSTALLS.replace(
        "    sh /run", "    sha256sum < /run/secrets/ca > /ca.sum; \\\n    sh /run"
    )
    KEEPS = INSTALLS.replace(
        "    sh /run", "    cp /run/secrets/ca /usr/local/share/site.pem; \\\n    sh /run"
    )

    @pytest.fixture
    def secret(self, tmp_path: Path) -> tuple[Path, bytes]:
        marker = f"carrel-secret-{secrets.token_hex(16)}".encode()
        path = tmp_path / "site.pem"
        path.write_bytes(b"-----BEGIN CERTIFICATE-----\n" + marker + b"\n")
        return path, marker

    def test_the_certificates_of_a_site_are_in_no_layer(
        self, engine: Docker, shelf: Shelf, secret: tuple[Path, bytes]
    ) -> None:
        path, marker = secret
        assert "id=ca" in self.USES
        built = shelf.build(shelf.recipe("1.0", self.USES), path)
        seen = inside(engine, built.digest, "cat", "/ca.sum").split()[0]
        assert seen == hashlib.sha256(path.read_bytes()).hexdigest()
        assert not holds(engine, built.digest, marker)
        assert marker.decode() not in "\n".join(shelf.log)
        assert str(path) not in engine.ask("history", "--no-trunc", built.digest)

    def test_the_search_finds_a_secret_that_was_left_behind(
        self, engine: Docker, shelf: Shelf, secret: tuple[Path, bytes]
    ) -> None:
        path, marker = secret
        built = shelf.build(shelf.recipe("1.0", self.KEEPS), path)
        assert holds(engine, built.digest, marker)


class TestBuilds:
    def test_the_same_lock_gives_the_same_image_and_another_one_a_new(
        self, engine: Docker, series: Series
    ) -> None:
        shelf, first, second = series.shelf, series.middle, series.newest
        assert shelf.build(shelf.recipe("3.0")).digest == second.digest
        assert second.digest != first.digest
        assert first.labels[labels.LOCK] != second.labels[labels.LOCK]
        assert second.labels[labels.PACKAGES] == f"{shelf.name}pkg 3.0"
        assert second.labels[labels.BASE_DIGEST] == engine.inspect(["carrel/base:latest"])[0].digest
        assert [i.digest for i in engine.images() if i.name == shelf.name] == [
            second.digest,
            first.digest,
            series.old.digest,
        ]

    def test_it_shares_the_layers_of_its_base(
        self, engine: Docker, series: Series, base_image: str
    ) -> None:
        below, above = layers(engine, base_image), layers(engine, series.newest.digest)
        assert above[: len(below)] == below
        assert len(above) > len(below)

    def test_progress_is_reported_step_by_step(self, series: Series) -> None:
        assert any(step.startswith("[2/2] RUN") for step in series.steps)
        assert series.steps[-1].startswith("[2/2] done in")
        assert any(f"{series.shelf.name}pkg" in line for line in series.log)

    def test_a_build_that_fails_shows_the_end_of_its_log(self, shelf: Shelf) -> None:
        recipe = shelf.recipe("1.0")
        lock = recipe.lock()
        lock.write_text(lock.read_text().replace("sha256:", "sha256:0000"))
        with pytest.raises(ImageFailed, match="was not built") as failed:
            shelf.build(recipe)
        assert "hash" in str(failed.value).lower()

    def test_a_base_image_comes_first(self, engine: Docker) -> None:
        order = BuildOrder(recipe=recipes.find("torch"), base="datascience")
        if engine.has("carrel/datascience:latest"):
            pytest.skip("this engine has it")
        with pytest.raises(InvalidInput, match="Run first: carrel images build datascience"):
            build(engine, order, print, print)


class TestVerify:
    def test_packages_added_later_are_detected(self, engine: Docker, shelf: Shelf) -> None:
        more = INSTALLS.replace(
            "install.sh",
            "install.sh \\\n    && pip install --no-index --no-deps "
            "--find-links /run/packages/wheels smuggled",
        )
        tiny(shelf.wheels, "smuggled", "6.6")
        recipe = shelf.recipe("1.0", more)
        verdict = verify(engine, shelf.build(recipe), recipe)
        assert verdict.extra == ("smuggled 6.6",)
        assert not verdict.good


class TestPrune:
    def test_the_engines_own_prune_removes_no_build(self, engine: Docker, series: Series) -> None:
        found = engine.ask("image", "ls", "--quiet", "--no-trunc", "--filter", "dangling=true")
        builds = (series.old, series.middle, series.newest)
        assert not {image.digest for image in builds} & set(found.split())

    def test_an_image_used_by_a_container_is_not_removed(
        self, engine: Docker, series: Series
    ) -> None:
        old = series.old
        container = engine.ask("create", "--network", "none", old.digest, "true").strip()
        try:
            with pytest.raises(ImageFailed):
                retention.remove(engine, old)
            assert engine.inspect([old.digest])
        finally:
            engine.ask("rm", container)

    def test_only_unneeded_builds_are_removed(self, engine: Docker, series: Series) -> None:
        old, pinned, newest, name = series.old, series.middle, series.newest, series.shelf.name
        mine = [image for image in engine.images() if image.name == name]
        found = retention.retention_decisions(mine, {pinned.reference: "Pinned for cs101."})
        assert {fate.image.digest: fate.why for fate in found} == {
            newest.digest: f"It is the newest build of {name}.",
            pinned.digest: "Pinned for cs101.",
            old.digest: "",
        }
        # The tag that `old` had when it was built is that of the newest by now.
        retention.remove(engine, old)
        assert {image.digest for image in engine.images() if image.name == name} == {
            newest.digest,
            pinned.digest,
        }


def test_an_executed_notebook_names_its_image(site: Site) -> None:
    reference = f"base@{site.image}"
    order = site.order(notebook("1"), image=reference)
    site.backend.start(order)
    site.service.wait_for_event("ended")
    executed = json.loads((order.folder / "output.ipynb").read_text())
    assert executed["metadata"]["carrel"]["image"] == reference


def test_the_engine_lists_what_was_built(site: Site) -> None:
    (image,) = (each for each in site.backend.images() or () if each.digest == site.image)
    assert (image.name, image.default, image.kernels) == ("base", True, ("python3",))
    assert image.size_bytes > 100_000_000
    assert image.built_at > 1_700_000_000
