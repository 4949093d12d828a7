"""A real Docker engine for tests: the one that is there, or one of our own.

1. the one that DOCKER_HOST names
2. the one at the usual socket
3. where neither is and this is root: ``dockerd``, started by hand with a data folder, socket and
   run folder of its own and no default bridge, and stopped at the end

Workers that run tests side by side share the third: the first that needs it starts it, and the
last one that had it stops it.

Its images are kept between runs in ``$CARREL_DOCKER_DATA`` (a folder in the home's cache
otherwise), so that the base image is built once and again only when what is in it has changed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import docker
import psutil
from docker.errors import DockerException
from requests.exceptions import RequestException

from .fake_service import eventually
from .requirements import need

ROOT = Path(__file__).resolve().parents[1]
USUAL = "unix:///var/run/docker.sock"
START_SECONDS = 60.0
STOP_SECONDS = 60.0
# What the wheel inside the image is made from, and what the image is built from.
IN_THE_IMAGE = ("images/base", "hub", "spawners", "extensions", "courses", "images")
KEPT = "carrel-tests"


@dataclass(slots=True, kw_only=True)
class DockerEngine:
    """Attributes:
    url: what DOCKER_HOST is to be.
    folder: of one that was started here.
    data: its data folder, if it is not the one that is kept between runs.
    options: more of them for ``dockerd``.
    within: a command that runs it elsewhere, such as in a network of its own.
    alone: nobody else has it: a test may kill it.
    """

    url: str
    folder: Path | None = None
    data: Path | None = None
    options: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    alone: bool = False
    process: subprocess.Popen[bytes] | None = None

    def client(self) -> docker.APIClient:
        return docker.APIClient(self.url, version="auto", timeout=60)

    def start(self) -> None:
        """Only of one of our own; what it ran goes on (live-restore)."""
        assert self.folder is not None
        data = self.data or Path(os.environ.get("CARREL_DOCKER_DATA") or _cache())
        data.mkdir(parents=True, exist_ok=True)
        (self.folder / "docker.pid").unlink(missing_ok=True)
        # It dies with its engine; while nobody has buried it, the next engine would wait for it.
        (self.folder / "exec" / "containerd" / "containerd.pid").unlink(missing_ok=True)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *self.within,
                    "dockerd",
                    *("--data-root", str(data)),
                    *("--exec-root", str(self.folder / "exec")),
                    *("--pidfile", str(self.folder / "docker.pid")),
                    *("--host", self.url),
                    *("--bridge", "none"),
                    "--live-restore",
                    *self.options,
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        eventually(lambda: answers(self.url), START_SECONDS)

    def load(self, first: DockerEngine, image: str) -> None:
        """An image of another engine, by the same digest."""
        there = docker.APIClient(first.url, version="auto", timeout=300)
        here = docker.APIClient(self.url, version="auto", timeout=300)
        for _ in here.load_image(there.get_image(image)):
            pass

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(STOP_SECONDS)
            self.process = None


def site_file(state: Path, engine: DockerEngine, more: str = "") -> None:
    """Before the first start of an installation: which engine it has, and what else is said.

    The image is the one that is built from this tree, whatever else the engine has.
    """
    state.mkdir(parents=True, exist_ok=True)
    (state / "carrel.toml").write_text(f'[docker]\nhost = "{engine.url}"\nimage = "base"\n{more}')


def answers(url: str) -> bool:
    try:
        client = docker.APIClient(url, version="auto", timeout=5)
    except (DockerException, RequestException):
        return False
    client.close()
    return True


@contextmanager
def docker_engine() -> Iterator[DockerEngine]:
    """One that answers; skips where none can be had, or fails where CARREL_REQUIRE names it."""
    named = os.environ.get("DOCKER_HOST")
    for url in filter(None, [named, None if named else USUAL]):
        if answers(url):
            yield DockerEngine(url=url)
            return
    need("docker", not named, f"no Docker engine answers at DOCKER_HOST={named}")
    own = os.geteuid() == 0 and shutil.which("dockerd") and shutil.which("iptables")
    need("docker", own, "no Docker engine (Debian's packages: docker.io, iptables; as root)")
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    with shared_engine(run) if run else own_engine() as engine:
        yield engine


@contextmanager
def own_engine() -> Iterator[DockerEngine]:
    # A socket's path is short: pytest's own folders are not.
    with tempfile.TemporaryDirectory(prefix="carrel-docker-") as folder:
        engine = DockerEngine(url=f"unix://{folder}/docker.sock", folder=Path(folder), alone=True)
        try:
            engine.start()
            yield engine
        finally:
            engine.stop()
            unmount(Path(folder))


@contextmanager
def shared_engine(run: str) -> Iterator[DockerEngine]:
    """One for all workers of a run; each that has it leaves a file beside its socket."""
    folder = Path(tempfile.gettempdir(), f"carrel-docker-{run[:12]}")
    folder.mkdir(mode=0o700, exist_ok=True)
    engine = DockerEngine(url=f"unix://{folder}/docker.sock", folder=folder)
    mine = folder / f"used-by-{os.getpid()}"
    with locked(folder / "lock"):
        if not answers(engine.url):
            engine.start()
        mine.touch()
    try:
        yield engine
    finally:
        with locked(folder / "lock"):
            mine.unlink()
            users = (int(each.name.rpartition("-")[2]) for each in folder.glob("used-by-*"))
            if not any(map(psutil.pid_exists, users)):
                _stop(folder)


def _stop(folder: Path) -> None:
    """It may be another worker's child, which has ended by now."""
    kept = folder / "docker.pid"
    pid = int(kept.read_text())
    os.kill(pid, signal.SIGTERM)
    eventually(lambda: not kept.exists(), STOP_SECONDS)
    unmount(folder)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """By one process at a time."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def second_engine(first: DockerEngine, image: str) -> Iterator[DockerEngine]:
    """Another engine on this machine, with data of its own, and the same image by its digest."""
    own = os.geteuid() == 0 and shutil.which("dockerd")
    need("docker", own, "a second Docker engine needs dockerd and root")
    # A socket's path is short: pytest's own folders are not.
    with tempfile.TemporaryDirectory(prefix="carrel-docker-") as folder:
        engine = DockerEngine(
            url=f"unix://{folder}/docker.sock",
            folder=Path(folder),
            data=Path(folder, "data"),
            # The first engine keeps the tables of this machine.
            options=("--iptables=false",),
            alone=True,
        )
        try:
            engine.start()
            engine.load(first, image)
            yield engine
        finally:
            engine.stop()
            end_what_was_half_made(Path(folder))
            unmount(Path(folder))


def end_what_was_half_made(folder: Path) -> None:
    """An engine that was killed as it made a container knows nothing of it afterwards."""
    for process in psutil.process_iter(["name", "cmdline"]):
        words = " ".join(process.info["cmdline"] or ())
        if "containerd-shim" in process.info["name"] and str(folder) in words:
            below: list[psutil.Process] = []
            with suppress(psutil.NoSuchProcess):  # It may end by itself meanwhile.
                below = process.children(recursive=True)
            for each in (*below, process):
                with suppress(psutil.NoSuchProcess):
                    each.kill()


def unmount(folder: Path) -> None:
    """What an engine leaves mounted there: a network, and more where it was killed."""
    for line in reversed(Path("/proc/self/mountinfo").read_text().splitlines()):
        place = line.split()[4]
        if Path(place).is_relative_to(folder):
            subprocess.run(["umount", place], check=False, capture_output=True)


def base_image(engine: DockerEngine) -> str:
    """The id of the newest base image, which is built where what is in it has changed.

    ``CARREL_BASE_IMAGE`` names one that is taken as it is, while the tree is being changed.
    """
    if kept := os.environ.get("CARREL_BASE_IMAGE"):
        return str(engine.client().inspect_image(kept)["Id"])
    return _built(engine, "base", content(), "bootstrap", "build base")


def grading_image(engine: DockerEngine, base: str) -> str:
    """The id of the grading image that stands on this base image."""
    engine.client().tag(base, "carrel/base", "latest")
    return _built(engine, "grading", base.removeprefix("sha256:")[:16], "build grading")


def _built(engine: DockerEngine, name: str, version: str, *steps: str) -> str:
    """The id of an image of which each version is built once, as an administrator does it."""
    client = engine.client()
    with locked(Path(tempfile.gettempdir(), f"carrel-tests-{name}.lock")):
        if not client.images(name=f"{KEPT}/{name}:{version}"):
            environment = {**os.environ, "DOCKER_HOST": engine.url}
            carrel = Path(shutil.which("carrel", path=_own_path()) or "carrel")
            for step in steps:
                words = [carrel, "images", *step.split()]
                subprocess.run(words, env=environment, cwd=ROOT, check=True, timeout=1800)
            client.tag(f"carrel/{name}:latest", f"{KEPT}/{name}", version)
    return str(client.inspect_image(f"{KEPT}/{name}:{version}")["Id"])


def content() -> str:
    """Of every file that may find its way into the image."""
    digest = hashlib.sha256((ROOT / "pyproject.toml").read_bytes())
    for folder in IN_THE_IMAGE:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _own_path() -> str:
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


def _cache() -> Path:
    return Path.home() / ".cache" / "carrel-tests" / "docker"


def build_images() -> None:
    """Build what is missing of both images, so that tests which need them do not wait."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and with it the engine
    with docker_engine() as engine:
        grading_image(engine, base_image(engine))


if __name__ == "__main__":
    build_images()
