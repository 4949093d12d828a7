"""The wheel contains the files that Carrel needs to run, and no others of the checkout."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from . import built_docs, notebook_jobs

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = [name.replace(".", "/") for name in PROJECT["tool"]["setuptools"]["packages"]]
# Files of a package that an installation does not need.
STAYS_HERE = {".pyc", ".so"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built from a copy, so that the checkout gets no build folder and no egg-info."""
    built_docs.ensure()
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "a checkout"
    source.mkdir()
    for name in ("pyproject.toml", "LICENSE", "README.md", "__init__.py", "py.typed"):
        shutil.copy(ROOT / name, source / name)
    ignore = shutil.ignore_patterns("__pycache__", "node_modules")
    for name in sorted({package.split("/")[1] for package in PACKAGES if "/" in package}):
        shutil.copytree(ROOT / name, source / name, ignore=ignore)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"),
            *("--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(folder)),
            str(source),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built)


def packaged(wheel: zipfile.ZipFile) -> set[str]:
    return {name for name in wheel.namelist() if ".dist-info/" not in name}


def test_the_wheel_contains_all_files_of_all_packages_and_no_others(wheel: zipfile.ZipFile) -> None:
    expected = {"carrel/__init__.py", "carrel/py.typed"}
    for top in sorted({package.split("/")[1] for package in PACKAGES if "/" in package}):
        for path in (ROOT / top).rglob("*"):
            inside = path.relative_to(ROOT)
            hidden = {"__pycache__", "node_modules"} & set(inside.parts)
            if path.is_file() and not hidden and path.suffix not in STAYS_HERE:
                expected.add(f"carrel/{inside.as_posix()}")
    kernel = "share/jupyter/kernels/carrel-fork/kernel.json"
    expected.add(next(name for name in packaged(wheel) if name.endswith(f".data/data/{kernel}")))
    assert packaged(wheel) == expected


@pytest.mark.parametrize(
    "name",
    [
        "carrel/py.typed",
        "carrel/hub/jupyterhub/config.py",
        "carrel/hub/jupyterhub/proxy/package-lock.json",
        "carrel/hub/store/migrations/script.py.mako",
        "carrel/hub/jupyterhub/templates/spawn_pending.html",
        "carrel/hub/web/help/index.html",
        "carrel/hub/web/help/searchindex.js",
        "carrel/hub/web/static/vendor/htmx.min.js",
        "carrel/hub/web/templates/desk/desk.html",
    ],
)
def test_programs_that_are_not_imported_are_in_the_wheel(wheel: zipfile.ZipFile, name: str) -> None:
    assert name in wheel.namelist()


def test_entry_points_exist() -> None:
    points = [*PROJECT["project"]["scripts"].values()]
    for group in PROJECT["project"]["entry-points"].values():
        points += group.values()
    code = """
import sys
from importlib.metadata import EntryPoint
for value in sys.argv[1:]:
    EntryPoint("name", value, "group").load()
"""
    subprocess.run([sys.executable, "-c", code, *points], check=True)


def test_the_pins_of_notebook_jobs_stay_out_of_the_environment_of_the_hub() -> None:
    hub, session = (
        notebook_jobs.locked(notebook_jobs.HUB),
        notebook_jobs.locked(notebook_jobs.SESSION),
    )
    assert {"jupyter-scheduler", "croniter", "pytz"} <= session.keys() - hub.keys()
    both = hub.keys() & session.keys()
    assert "jupyterlab" in both
    version = re.compile(r"==\S+")
    assert [n for n in both if version.findall(hub[n]) != version.findall(session[n])] == []
    extras = PROJECT["project"]["optional-dependencies"]
    other = [line for name, lines in extras.items() if name != "notebook-jobs" for line in lines]
    assert not [line for line in other if "jupyter-scheduler" in line]


def test_lock_files_have_all_dependencies_and_no_index_address() -> None:
    for name in ("up.txt", "dev.txt", "execution.txt"):
        text = (ROOT / "requirements" / name).read_text()
        assert "://" not in text
        assert "--index" not in text
        for line in text.splitlines():
            if line and not line.startswith((" ", "#")):
                assert line.endswith(" \\"), f"{name}: {line} has no hash"
    lock = (ROOT / "hub" / "jupyterhub" / "proxy" / "package-lock.json").read_text()
    assert '"resolved"' not in lock
