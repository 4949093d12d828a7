"""Programs that compile a model, each run in a process of its own as a job is."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

from carrel.hub.attempts import compile_cache_side as side
from carrel.hub.attempts.compile_cache_report import read_compile_cache_report
from carrel.hub.attempts.compile_caches import allow, copy_cache

from ... import torch_packages

PLAIN = """
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Softplus()).eval()
{compile}
with torch.no_grad():
    inputs = torch.ones(2, 8)
    torch.testing.assert_close(compiled(inputs), net(inputs))
counted = torch._dynamo.utils.counters["inductor"]
print([counted[f"fxgraph_cache_{{what}}"] for what in ("miss", "hit")])
"""
ACCELERATED = PLAIN.format(
    compile="from carrel.extensions.execution.compilation import CountedCompilation\n"
    "compiled = CountedCompilation(net)"
)
HOOKED = "from carrel.hub.attempts import compile_cache_side\nimport sys\n" + PLAIN.format(
    compile="compile_cache_side.begin_in_program(sys.argv[1])\ncompiled = torch.compile(net)"
)


def run(
    folder: Path, program: str, kept: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program as a job does."""
    folder.mkdir()
    allow(folder, None)
    if kept is not None:
        copy_cache(kept, folder / side.OWN, mode=0o600, owner=None)
    places = (str(torch_packages.PACKAGES.folder), *sys.path)
    return subprocess.run(
        [sys.executable, "-P", "-c", program, str(folder)],
        env={
            **{name: value for name, value in os.environ.items() if "INDUCTOR" not in name},
            "PYTHONPATH": os.pathsep.join(places),
            "CARREL_REPORTS": str(folder / "reports.jsonl"),
            "HOME": str(folder.parent),
            **environment,
        },
        cwd=folder.parent,
        capture_output=True,
        text=True,
        check=False,
    )


def attempt(folder: Path, program: str, kept: Path | None = None) -> list[int]:
    """Run a program as a job does; return how many graphs it compiled and loaded."""
    done = run(folder, program, kept)
    assert done.returncode == 0, done.stderr
    found: list[int] = json.loads(done.stdout)
    return found


def told(folder: Path) -> tuple[str, ...]:
    return tuple(read_compile_cache_report(folder).sentences)


def changed(kept: Path, change: Callable[[dict[str, bytes]], Mapping[str, bytes]]) -> Path:
    """Return a valid cache with changed files."""
    header, content = side.read_cache(str(kept))
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        files = {}
        for member in archive:
            source = archive.extractfile(member)
            assert source is not None
            files[member.name] = source.read()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in change(files).items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    header = side.new_header(packed.getvalue(), graphs=1, request="j-1") | {
        "machine": header["machine"]
    }
    path = kept.with_name(f"{kept.name}.changed")
    path.write_bytes(json.dumps(header).encode() + b"\n" + packed.getvalue())
    return path
