"""What PyTorch has compiled in one program is loaded by the next one, and only where it fits."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from carrel.hub.attempts import compile_cache_side as side
from carrel.hub.attempts.compile_caches import keep_cache

from ... import torch_packages
from .compile_cache_programs import ACCELERATED, HOOKED, attempt, told

torch, _ = torch_packages.load()
pytestmark = pytest.mark.slow


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
