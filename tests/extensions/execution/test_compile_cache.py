"""What PyTorch has compiled in one program is loaded by the next one, and only where it fits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from carrel.hub.attempts import compile_cache_side as side
from carrel.hub.attempts.compile_cache_report import read_compile_cache_report
from carrel.hub.attempts.compile_caches import allow, copy_cache, keep_cache

from ... import torch_packages

torch, _ = torch_packages.load()
pytestmark = pytest.mark.slow

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


def attempt(folder: Path, program: str, kept: Path | None = None) -> list[int]:
    """Run a program as a job does; return how many graphs it compiled and loaded."""
    folder.mkdir()
    allow(folder, None)
    if kept is not None:
        copy_cache(kept, folder / side.OWN, mode=0o600, owner=None)
    places = (str(torch_packages.PACKAGES.folder), *sys.path)
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, str(folder)],
        env={
            **{name: value for name, value in os.environ.items() if "INDUCTOR" not in name},
            "PYTHONPATH": os.pathsep.join(places),
            "CARREL_REPORTS": str(folder / "reports.jsonl"),
            "HOME": str(folder.parent),
        },
        cwd=folder.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[int] = json.loads(done.stdout)
    return found


def told(folder: Path) -> tuple[str, ...]:
    return tuple(read_compile_cache_report(folder).sentences)


@pytest.mark.parametrize("program", [ACCELERATED, HOOKED])
def test_the_next_program_compiles_nothing(tmp_path: Path, program: str) -> None:
    first, again = tmp_path / "1", tmp_path / "2"
    assert attempt(first, program) == [1, 0]
    assert told(first) == ("Kept 1 compiled graph for your next job.",)
    keep_cache(first, tmp_path / "kept", {"request": "j-1"})
    begun = time.time()
    assert attempt(again, program, tmp_path / "kept") == [0, 1]
    libraries = [path.stat().st_mtime for path in (again / side.COMPILED).rglob("*.so")]
    assert libraries
    assert max(libraries) < begun
    assert told(again) == ("Loaded 1 compiled graph of your job j-1, of which 1 was used.",)
    # The compiler wrote nowhere else.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2", "kept"]


@pytest.mark.parametrize(
    ("half", "machine", "reason"),
    [
        (True, "", "What your job compiled is not used: EOFError"),
        (False, "other", "its Python, its PyTorch or its processor was another one."),
    ],
)
def test_what_does_not_fit_is_ignored(
    tmp_path: Path, half: bool, machine: str, reason: str
) -> None:
    attempt(tmp_path / "1", HOOKED)
    header, content = side.read_cache(str(tmp_path / "1" / side.NEW))
    content = content[: len(content) // 2] if half else content
    changed = side.new_header(content, graphs=1, request="j-1")
    changed["machine"] = machine or header["machine"]
    kept = tmp_path / "kept"
    kept.write_bytes(json.dumps(changed).encode() + b"\n" + content)
    assert attempt(tmp_path / "2", HOOKED, kept) == [1, 0]
    assert any(reason in sentence for sentence in told(tmp_path / "2")), told(tmp_path / "2")
