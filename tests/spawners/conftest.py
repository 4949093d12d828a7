"""Fixtures: a local backend, a service that it reports to, orders, and a fake driver."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from nbformat import NotebookNode

from carrel.hub.interfaces.backend import LaunchOrder
from carrel.hub.interfaces.backend_settings import BackendSettings
from carrel.hub.records.json_value import Json
from carrel.hub.records.requests import JobSpec
from carrel.spawners.devices.simulated import simulated_devices
from carrel.spawners.local.backend import LocalBackend

from ..fake_service import eventually
from .fake_service import FakeService
from .notebooks import text_of

NVML = Path(__file__).parents[1] / "fake_nvml" / "nvml.c"
AMD_SMI = Path(__file__).parents[1] / "fake_amd_smi" / "amd_smi.c"

Driver = Callable[..., None]
"""Sets how the fake driver behaves: ``driver(GPUS=2, HANG=1)``."""

_numbers = itertools.count(1)


@dataclass(slots=True, kw_only=True)
class Desk:
    """One backend with a service and a folder; ``order`` makes an attempt of a new request."""

    folder: Path
    service: FakeService
    settings: BackendSettings
    backend: LocalBackend
    leases: list[str] = field(default_factory=list)

    def order(
        self,
        notebook: NotebookNode | str = "",
        *,
        devices: int = 1,
        parameters: Mapping[str, Json] | None = None,
        kernel: str = "",
        command: tuple[str, ...] = (),
        workdir: str = "",
        archive: Path | None = None,
        memory_bytes: int = 0,
    ) -> LaunchOrder:
        request = f"j-{self.folder.name[-12:]}-{next(_numbers)}"
        folder = self.folder / request
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        folder.mkdir()
        text = notebook if isinstance(notebook, str) else text_of(notebook)
        (self.folder / f"{request}.ipynb").write_text(text)
        self.leases.append(f"{request}.1")
        return LaunchOrder(
            lease_id=f"{request}.1",
            request_id=request,
            epoch=1,
            owner="student1",
            devices=simulated_devices("node", devices),
            job=JobSpec(
                notebook_name="train.ipynb",
                parameters=parameters or {},
                kernel=kernel,
                output_name="out.ipynb",
                command=command,
                workdir=workdir,
                archive=archive is not None,
                memory_bytes=memory_bytes,
            ),
            archive_path=archive,
            seconds=600,
            token="the-token",
            folder=folder,
            input_path=self.folder / f"{request}.ipynb",
            home=home,
        )


@pytest.fixture
def service() -> Iterator[FakeService]:
    service = FakeService().up()
    yield service
    service.down()


@pytest.fixture
def desk(service: FakeService, tmp_path: Path) -> Iterator[Desk]:
    settings = BackendSettings(state=tmp_path, service_url=service.url, simulated_devices=2)
    backend = LocalBackend(settings, node="node")
    desk = Desk(folder=tmp_path, service=service, settings=settings, backend=backend)
    yield desk
    for lease in desk.leases:
        # Repeat the stop, as the service does, if a pause of the machine used up its patience.
        eventually(lambda lease=lease: desk.backend.stop(lease, None))


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the fake library of NVIDIA, built with gcc."""
    return _compiled(NVML, tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1")


@pytest.fixture(scope="session")
def fake_amd_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the fake library of AMD, built with gcc."""
    return _compiled(AMD_SMI, tmp_path_factory.mktemp("amd-smi") / "libamd_smi.so.26")


def _compiled(source: Path, target: Path) -> Path:
    compiler = shutil.which("gcc")
    if compiler is None:
        assert "gcc" not in os.environ.get("CARREL_REQUIRE", ""), "gcc is required and missing"
        pytest.skip("gcc is not installed")
    flags = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *flags, "-o", str(target), str(source)], check=True)
    return target.parent


@pytest.fixture
def driver(fake_library: Path, monkeypatch: pytest.MonkeyPatch) -> Driver:
    """A fake management library that pynvml loads instead of the machine's own."""
    return _driver(fake_library, "FAKE_NVML", monkeypatch)


@pytest.fixture
def amd_driver(fake_amd_library: Path, monkeypatch: pytest.MonkeyPatch) -> Driver:
    """A fake management library that the plug-in for AMD loads instead of the machine's own."""
    return _driver(fake_amd_library, "FAKE_AMD", monkeypatch)


def _driver(library: Path, prefix: str, monkeypatch: pytest.MonkeyPatch) -> Driver:
    others = os.environ.get("LD_LIBRARY_PATH", "")
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{library}:{others}".rstrip(":"))

    def behave(**behaviour: object) -> None:
        for name, value in behaviour.items():
            monkeypatch.setenv(f"{prefix}_{name}", str(value))

    return behave
