"""Stand-ins for GPUs and for the NVIDIA container toolkit, for a machine that has neither.

The GPUs are device nodes under other names. An engine gives them in the two ways in which it gives
real ones: by a runtime that reads NVIDIA_VISIBLE_DEVICES, and by name (CDI) where it is new enough.
The runtime is the engine's default here, as on many sites: setting that variable to
"all" sees every GPU then, unless something says otherwise.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from carrel.hub.scheduling.model.snapshot import Device

from ..docker_engine import DockerEngine, end_what_was_half_made, unmount

NODES: Final = {"GPU-stand-in-0": ("/dev/nvidia0", 1, 5), "GPU-stand-in-1": ("/dev/nvidia1", 1, 7)}
"""By UUID: where it is seen, and what it is: the devices of zeros and of a full disk."""
GPUS: Final = tuple(
    Device(id=name, node="local", index=index, model="Stand-in", memory_bytes=1 << 30)
    for index, name in enumerate(NODES)
)
_CDI_SINCE: Final = 28
"""From this version on an engine lists what it can give by name."""
_RUNTIME: Final = '''#!{python} -I
"""Stands in for nvidia-container-runtime: a runc that first reads NVIDIA_VISIBLE_DEVICES."""

import json, os, sys
from pathlib import Path

NODES = {nodes}
if "create" in sys.argv:
    path = Path(sys.argv[sys.argv.index("--bundle") + 1], "config.json")
    config = json.loads(path.read_text())
    told = [each.partition("=")[2] for each in config["process"].get("env", ())
            if each.startswith("NVIDIA_VISIBLE_DEVICES=")][-1:]
    names = told[0].split(",") if told and told[0] not in ("", "void", "none") else []
    if names == ["all"]:
        names = list(NODES)
    for name in names:
        if name not in NODES:
            sys.exit(f"unknown device {{name}}")
        place, major, minor = NODES[name]
        node = {{"path": place, "type": "c", "major": major, "minor": minor, "fileMode": 0o666}}
        allowed = {{"allow": True, "type": "c", "major": major, "minor": minor, "access": "rwm"}}
        linux = config["linux"]
        linux.setdefault("devices", []).append(node)
        linux.setdefault("resources", {{}}).setdefault("devices", []).append(allowed)
    path.write_text(json.dumps(config))
os.execv({runc!r}, ["runc", *sys.argv[1:]])
'''
_HOOK: Final = "#!/bin/sh\n# An engine takes requests for GPUs where it finds this program.\n"


@contextmanager
def engine_with_gpus(first: DockerEngine, image: str) -> Iterator[DockerEngine]:
    """An engine with data of its own, and the same image by its digest."""
    # A socket's path is short: pytest's own folders are not.
    with TemporaryDirectory(prefix="carrel-gpus-") as name:
        folder = Path(name)
        runtime, named = _runtime(folder), ("--cdi-spec-dir", str(_cdi(folder)))
        engine = DockerEngine(
            url=f"unix://{folder}/docker.sock",
            folder=folder,
            data=folder / "data",
            options=(
                "--iptables=false",  # the first engine keeps the tables of this machine
                *("--add-runtime", f"nvidia={runtime}", "--default-runtime", "nvidia"),
                *(named if has_cdi() else ()),
            ),
            within=("env", f"PATH={folder}:{os.environ['PATH']}"),
            alone=True,
        )
        try:
            engine.start()
            engine.load(first, image)
            yield engine
        finally:
            engine.stop()
            end_what_was_half_made(folder)
            unmount(folder)


def has_cdi() -> bool:
    said = subprocess.run(["dockerd", "--version"], check=True, capture_output=True, text=True)
    version = re.search(r"version (\d+)", said.stdout)
    return version is not None and int(version[1]) >= _CDI_SINCE


def _runtime(folder: Path) -> Path:
    runc = shutil.which("runc")
    assert runc is not None
    text = _RUNTIME.format(python=sys.executable, nodes=NODES, runc=runc)
    for name, content in (("stand-in-runtime", text), ("nvidia-container-runtime-hook", _HOOK)):
        (folder / name).write_text(content)
        (folder / name).chmod(0o755)
    return folder / "stand-in-runtime"


def _cdi(folder: Path) -> Path:
    place = folder / "cdi"
    place.mkdir()
    described = [
        {
            "name": name,
            "containerEdits": {
                "deviceNodes": [
                    {"path": path, "type": "c", "major": major, "minor": minor, "fileMode": 0o666}
                ]
            },
        }
        for name, (path, major, minor) in NODES.items()
    ]
    spec = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": described}
    (place / "nvidia.json").write_text(json.dumps(spec))
    return place
