"""Code of a compile cache that cannot be loaded costs its job time, and never the job."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from carrel.hub.attempts import compile_cache_side as side
from carrel.hub.attempts.compile_caches import keep_cache

from ... import torch_packages
from .compile_cache_programs import HOOKED, attempt, changed, run, told

torch, _ = torch_packages.load()
pytestmark = pytest.mark.slow

FOREIGN = """
extern "C" void of_another_library();
extern "C" void* PyInit_kernel() { of_another_library(); return nullptr; }
extern "C" void __avx_chk_kernel() { of_another_library(); }
"""
"""It needs a function that is not here, as code for another C++ library does."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A valid cache of one graph."""
    folder = tmp_path_factory.mktemp("kept")
    assert attempt(folder / "1", HOOKED) == [1, 0]
    keep_cache(folder / "1", folder / "cache", {"request": "j-1"})
    return folder / "cache"


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("foreign")
    (folder / "a.cpp").write_text(FOREIGN)
    made = ["g++", "-shared", "-fPIC", "-o", str(folder / "a.so"), str(folder / "a.cpp")]
    subprocess.run(made, check=True)
    return (folder / "a.so").read_bytes()


def libraries_are(content: bytes) -> Callable[[dict[str, bytes]], Mapping[str, bytes]]:
    def change(files: dict[str, bytes]) -> Mapping[str, bytes]:
        names = [name for name in files if name.endswith(".so")]
        assert len(names) > 1, "the kernel, and the probe of the processor"
        return files | dict.fromkeys(names, content)

    return change


def modules_are_half(files: dict[str, bytes]) -> Mapping[str, bytes]:
    names = [name for name in files if name.endswith(".py")]
    assert names
    return files | {name: files[name][: len(files[name]) // 2] + b"\n(" for name in names}


def check(tmp_path: Path, kept: Path, reason: str) -> None:
    """A job with this cache compiles by itself, says why, and leaves a good cache."""
    misses, hits = attempt(tmp_path / "2", HOOKED, kept)
    assert (misses > 0, hits) == (True, 0)
    problem, saved = sorted(told(tmp_path / "2"), reverse=True)
    start = "What your job j-1 compiled cannot be used here, so that this job compiled it again: "
    assert problem.startswith(start)
    assert reason in problem
    assert str(tmp_path) not in problem
    assert saved == "Kept 1 compiled graph for your next job."
    keep_cache(tmp_path / "2", tmp_path / "again", {"request": "j-2"})
    assert attempt(tmp_path / "3", HOOKED, tmp_path / "again") == [0, 1]
    loaded = told(tmp_path / "3")[0]
    assert loaded == "Loaded 1 compiled graph of your job j-2, of which 1 was used."


def test_a_library_for_another_system_is_compiled_again(
    tmp_path: Path, kept: Path, foreign: bytes
) -> None:
    check(tmp_path, changed(kept, libraries_are(foreign)), "undefined symbol: of_another_library")


def test_a_library_that_is_none_is_compiled_again(tmp_path: Path, kept: Path) -> None:
    check(tmp_path, changed(kept, libraries_are(b"not a library")), "ImportError: ")


def test_half_of_a_graph_is_compiled_again(tmp_path: Path, kept: Path) -> None:
    check(tmp_path, changed(kept, modules_are_half), "RuntimeError: Failed to import ")


def test_only_a_library_is_left_of_a_cache_and_it_cannot_be_loaded(
    tmp_path: Path, kept: Path, foreign: bytes
) -> None:
    def change(files: dict[str, bytes]) -> Mapping[str, bytes]:
        return libraries_are(foreign)({n: t for n, t in files.items() if n.endswith(".so")})

    check(tmp_path, changed(kept, change), "undefined symbol: of_another_library")


def test_a_failure_of_the_compiler_itself_is_raised_and_blames_no_cache(
    tmp_path: Path, kept: Path
) -> None:
    other = HOOKED.replace("Softplus()", "Tanh()")
    done = run(tmp_path / "2", other, kept, CXX="/bin/false")
    assert done.returncode == 1
    assert "InvalidCxxCompiler" in done.stderr or "CppCompileError" in done.stderr
    assert told(tmp_path / "2") == (
        "Loaded 1 compiled graph of your job j-1, of which 0 were used.",
    )


def test_a_job_without_a_compiler_that_cannot_use_its_cache_fails_by_its_own_error(
    tmp_path: Path, kept: Path, foreign: bytes
) -> None:
    damaged = changed(kept, libraries_are(foreign))
    broken = HOOKED.replace(
        "compiled = torch.compile(net)",
        "compiled = torch.compile(net)\n"
        "from torch._inductor import cpp_builder\n"
        "def build(self):\n    raise RuntimeError('no compiler')\n"
        "cpp_builder.CppBuilder.build = build",
    )
    done = run(tmp_path / "2", broken, damaged)
    assert done.returncode == 1
    assert "RuntimeError: no compiler" in done.stderr
    assert any("cannot be used here" in sentence for sentence in told(tmp_path / "2"))
    assert not any((tmp_path / "2" / side.COMPILED).rglob("*.main.so"))


@pytest.mark.parametrize("changed", [False, True], ids=["the-same-model", "another-model"])
def test_headers_are_precompiled_only_for_a_library_that_is_missing(
    tmp_path: Path, kept: Path, changed: bool
) -> None:
    program = HOOKED.replace("Softplus()", "Tanh()") if changed else HOOKED
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = run(tmp_path / "2", program, kept, TMPDIR=str(temporary))
    assert (done.returncode, done.stdout) == (0, "[1, 0]\n" if changed else "[0, 1]\n")
    assert any(temporary.rglob("*.gch")) is changed
