"""Files in a home that are called like modules of Python, such as ``random.py``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import nbclient
import pytest

from carrel.spawners.devices.inventory import DeviceInventory

from ..attempts import wait_for_end
from ..conftest import Desk, Driver
from ..notebooks import notebook, printed, read

MODULES = sorted(sys.stdlib_module_names - set(sys.builtin_module_names) - {"__main__"})


def shadow(folder: Path) -> Path:
    """Put a file that fails into a folder for every module of the standard library."""
    folder.mkdir(exist_ok=True)
    for name in MODULES:
        (folder / f"{name}.py").write_text(f"raise RuntimeError('{name} of the home')")
    (folder / "mine.py").write_text("name = 'mine'")
    return folder


def test_a_notebook_runs_beside_them_and_imports_its_own_modules(desk: Desk) -> None:
    shadow(desk.folder / "home")
    order = desk.order(notebook("import mine, os\nprint(mine.name, os.getcwd())"))
    wait_for_end(desk, order, desk.backend.start(order))
    assert desk.service.ended["code"] == "succeeded", desk.service.ended
    assert printed(read(order.folder / "output.ipynb")) == f"mine {order.home}\n"


def test_a_command_runs_beside_them(desk: Desk) -> None:
    shadow(desk.folder / "home")
    order = desk.order(command=("true",))
    wait_for_end(desk, order, desk.backend.start(order))
    assert desk.service.ended["code"] == "succeeded", desk.service.ended


def test_a_kernel_imports_its_modules_before_it_enters_the_folder(desk: Desk) -> None:
    """Also in an environment that imports nothing by itself at the start (``-S``)."""
    order = desk.order(notebook("import mine\nprint(mine.name)"), kernel="bare")
    spec = shadow(order.home) / ".local" / "share" / "jupyter" / "kernels" / "bare"
    spec.mkdir(parents=True)
    argv = [sys.executable, "-S", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    found = {
        "argv": argv,
        "env": {"PYTHONPATH": str(Path(nbclient.__file__).parents[1])},
        "display_name": "Bare",
        "language": "python",
    }
    (spec / "kernel.json").write_text(json.dumps(found))
    wait_for_end(desk, order, desk.backend.start(order))
    assert desk.service.ended["code"] == "succeeded", desk.service.ended


def test_the_driver_is_queried_from_a_folder_that_has_them(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver(GPUS=1)
    monkeypatch.chdir(shadow(tmp_path))
    assert len(DeviceInventory("node").read().found) == 1
