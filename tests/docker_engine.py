"""A real Docker engine for tests: an existing one, or a ``dockerd`` that the tests start.

1. the engine that DOCKER_HOST names
2. the engine at the usual socket
3. without either, for root: a ``dockerd`` with its own data folder, socket and run folder and
   without a default bridge; it is stopped at the end

Parallel workers share the third: the first that needs it starts it, and the last one stops it.

Its images are kept between runs in ``$CARREL_DOCKER_DATA`` (by default a folder in the cache of
the home), so that the base image is built again only when its content has changed.
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
# Sources of the wheel in the image, and of the image itself.
IN_THE_IMAGE = ("images/base", "hub", "spawners", "extensions", "courses", "images")
KEPT = "carrel-tests"


@dataclass(slots=True, kw_only=True)
class DockerEngine:
    """Attributes:
    url: the value for DOCKER_HOST.
    folder: the folder of an engine that the tests started.
    data: its data folder, if it is not the one that is kept between runs.
    options: further options of ``dockerd``.
    within: a command that runs ``dockerd`` elsewhere, such as in another network namespace.
    live_restore: whether its containers outlive it, which excludes a swarm.
    alone: whether no other test uses it, so that a test may kill it.
    """

    url: str
    folder: Path | None = None
    data: Path | None = None
    options: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    live_restore: bool = True
    alone: bool = False
    process: subprocess.Popen[bytes] | None = None

    def client(self) -> docker.APIClient:
        return docker.APIClient(self.url, version="auto", timeout=60)

    def start(self) -> None:
        """Start an engine that the tests own; its containers kept running (live-restore)."""
        assert self.folder is not None
        data = self.data or Path(os.environ.get("CARREL_DOCKER_DATA") or _cache())
        data.mkdir(parents=True, exist_ok=True)
        (self.folder / "docker.pid").unlink(missing_ok=True)
        # It dies with its engine; until it is reaped, the next engine would wait for it.
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
                    *(["--live-restore"] if self.live_restore else []),
                    *self.options,
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        eventually(lambda: answers(self.url), START_SECONDS)

    def load(self, first: DockerEngine, image: str) -> None:
        """Copy an image from another engine with the same digest."""
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
    """Yield an engine that answers; skip if there is none, or fail if CARREL_REQUIRE names it."""
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
    """Yield one engine for all workers of a run; each user leaves a file beside its socket."""
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
    """Stop the engine, which may be the child of another worker that has ended."""
    kept = folder / "docker.pid"
    pid = int(kept.read_text())
    os.kill(pid, signal.SIGTERM)
    eventually(lambda: not kept.exists(), STOP_SECONDS)
    unmount(folder)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file that one process at a time can hold."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def second_engine(first: DockerEngine, image: str) -> Iterator[DockerEngine]:
    """Yield another engine on this machine, with its own data and a copy of the image."""
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
    """End processes of containers that a killed engine had not registered yet."""
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
    """Unmount file systems that an engine left in this folder."""
    for line in reversed(Path("/proc/self/mountinfo").read_text().splitlines()):
        place = line.split()[4]
        if Path(place).is_relative_to(folder):
            subprocess.run(["umount", place], check=False, capture_output=True)


def base_image(engine: DockerEngine) -> str:
    """Return the id of the newest base image; build it if its content has changed.

    ``CARREL_BASE_IMAGE`` names an image that is used as it is, during work on the tree.
    """
    if kept := os.environ.get("CARREL_BASE_IMAGE"):
        return str(engine.client().inspect_image(kept)["Id"])
    return _built(engine, "base", content(), "bootstrap", "build base")


def grading_image(engine: DockerEngine, base: str) -> str:
    """Return the id of the grading image on top of this base image."""
    engine.client().tag(base, "carrel/base", "latest")
    return _built(engine, "grading", base.removeprefix("sha256:")[:16], "build grading")


def _built(engine: DockerEngine, name: str, version: str, *steps: str) -> str:
    """Return the id of an image; build it with `carrel images build` if its content has changed."""
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
    """Return a hash over all files that may get into the image."""
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
    """Build both images if needed, so that tests which need them do not wait."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and with it the engine
    with docker_engine() as engine:
        grading_image(engine, base_image(engine))


if __name__ == "__main__":
    build_images()
