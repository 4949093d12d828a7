"""Load what PyTorch has compiled in an earlier job, and save what it compiles in this one.

Runs inside the job. The runner executes this file in the kernel as text (``kernel_code``): it needs
only the standard library. ``carrel.execution`` calls ``begin_in_program`` in a command.

Nothing happens until PyTorch imports its compiler: PyTorch is never imported for the cache. If
something fails, the job compiles as it would without a cache, and the report says why.

A cache is a line of JSON, then the bytes of ``torch.compiler.save_cache_artifacts``. They are
native code and pickles: the service puts only what the owner's own jobs, or the course, have
compiled into the folder of an attempt.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import importlib
import importlib.machinery
import json
import os
import platform
import stat
import sys
from typing import Any

COMPILED = "compiled"
"""The compiler's folder in that of the attempt. The service makes it where a job uses the cache."""
OWN, COURSE = "compile-cache.own", "compile-cache.course"
"""What an earlier job of the owner has compiled, and what the course has."""
NEW, REPORT = "compile-cache.new", "compile-cache.json"
LIMIT = 64 << 20
"""The most bytes of one cache."""
HEADER_BYTES = 4096
_COMPILER, _BACKEND = "torch._dynamo", "torch._inductor.compile_fx"
_FOLDER_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"
_REASON = 200


class CompileCache:
    """The cache of one process of a job.

    Attributes:
        folder: of the attempt.
        limit: the most bytes of what is saved.
    """

    carrel_compile_cache = True

    def __init__(self, folder: str, limit: int = LIMIT) -> None:
        self.folder = folder
        self.limit = limit
        self._loaded: list[dict[str, Any]] = []
        self._known: set[tuple[str, str]] = set()
        self._problems: list[str] = []

    def begin(self) -> None:
        """Wait for the compiler, as one of the finders of modules."""
        if _COMPILER in sys.modules:
            self._use_folder()
        if _BACKEND in sys.modules:
            self._load_all()
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Act on the imports of the compiler; other finders find them, and all other modules."""
        if name == _COMPILER:
            self._use_folder()
        if name != _BACKEND:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        loader: Any = None if spec is None else spec.loader
        if loader is None:
            return None
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            self._load_all()

        loader.exec_module = exec_module
        return spec

    def finish(self) -> str:
        """Save what the process has compiled, if the compiler was used; return nothing."""
        if _BACKEND not in sys.modules:
            return ""
        saved = {"graphs": 0, "bytes": 0}
        used: set[tuple[str, str]] = set()
        try:
            found = importlib.import_module("torch.compiler").save_cache_artifacts()
            if found is not None:
                content, info = found
                used = _keys(info)
                if not used <= self._known:
                    graphs = len(info.artifacts.get("inductor", ()))
                    saved = self._save(content, graphs)
        except Exception as error:
            self._problems.append(f"What it compiled is not kept: {_text(error)}.")
        report = {
            "loaded": [
                {"graphs": each["graphs"], "used": len(each["keys"] & used)} | each["origin"]
                for each in self._loaded
            ],
            "saved": saved,
            "problems": self._problems,
        }
        with contextlib.suppress(OSError):
            self._write(REPORT, json.dumps(report).encode())
        return ""

    def _use_folder(self) -> None:
        # Its default is below the folder for temporary files, which others may share.
        os.environ.setdefault(_FOLDER_VARIABLE, os.path.join(self.folder, COMPILED))

    def _load_all(self) -> None:
        for name, whose in ((OWN, "your job"), (COURSE, "the course's job")):
            with contextlib.suppress(FileNotFoundError):
                problem = self._load(name, whose)
                if problem:
                    self._problems.append(problem)

    def _load(self, name: str, whose: str) -> str:
        """Load a cache; return why it is not used as a sentence, or nothing."""
        try:
            header, content = read_cache(os.path.join(self.folder, name))
            origin = f"{whose} {header['request']}"
            if header["machine"] != machine():
                return (
                    f"What {origin} compiled is not used: "
                    "its Python, its PyTorch or its processor was another one."
                )
            info = importlib.import_module("torch.compiler").load_cache_artifacts(content)
            if info is None:
                return f"What {origin} compiled is not used: PyTorch cannot read it."
        except FileNotFoundError:
            raise
        except Exception as error:
            return f"What {whose} compiled is not used: {_text(error)}."
        keys = _keys(info)
        self._known |= keys
        self._loaded.append(
            {
                "graphs": header["graphs"],
                "keys": {key for key in keys if key[0] == "inductor"},
                "origin": {"request": header["request"], "course": name == COURSE},
            }
        )
        return ""

    def _save(self, content: bytes, graphs: int) -> dict[str, int]:
        if len(content) > self.limit:
            self._problems.append(
                f"What it compiled is not kept: it has {len(content) / 2**20:.0f} MiB, "
                f"more than {self.limit / 2**20:.0f} MiB."
            )
            return {"graphs": 0, "bytes": 0}
        header = new_header(content, graphs=graphs)
        self._write(NEW, json.dumps(header).encode() + b"\n" + content)
        return {"graphs": graphs, "bytes": len(content)}

    def _write(self, name: str, content: bytes) -> None:
        draft = os.path.join(self.folder, f".{name}.{os.getpid()}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
            file.write(content)
        os.replace(draft, os.path.join(self.folder, name))


def read_cache(path: str) -> tuple[dict[str, Any], bytes]:
    """Return the header and the bytes of a cache.

    Raises:
        OSError: it cannot be read.
        ValueError: it is damaged or too large.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is not a file")
        return parse_cache(file)


def parse_cache(file: Any) -> tuple[dict[str, Any], bytes]:
    """Return the header and the bytes of an open cache. Raises OSError, ValueError."""
    try:
        found = json.loads(file.readline(HEADER_BYTES))
        header: dict[str, Any] = {
            "machine": str(found["machine"])[:64],
            "graphs": int(found["graphs"]),
            "bytes": int(found["bytes"]),
            "sha256": str(found["sha256"]),
            "request": str(found["request"])[:100],
        }
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise ValueError("it is damaged") from None
    content = file.read(LIMIT + 1)
    if len(content) > LIMIT:
        raise ValueError(f"it has more than {LIMIT >> 20} MiB")
    whole = hashlib.sha256(content).hexdigest() == header["sha256"]
    if not whole or len(content) != header["bytes"] or header["graphs"] < 0:
        raise ValueError("it is damaged")
    return header, content


def new_header(content: bytes, *, graphs: int, request: str = "") -> dict[str, Any]:
    """Return the header of what was compiled in this process."""
    return {
        "machine": machine(),
        "graphs": graphs,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "request": request,
    }


def machine() -> str:
    """Return a digest of what compiled code depends on; PyTorch compares the GPU."""
    parts = [
        *(sys.implementation.cache_tag, str(importlib.import_module("torch").__version__)),
        *(platform.machine(), _processor()),
    ]
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:32]


def begin_in_program(folder: str) -> bool:
    """Use the cache in the program of a command, unless that has begun; return whether it is used.

    Args:
        folder: of the attempt.
    """
    if not os.path.isdir(os.path.join(folder, COMPILED)):
        return False
    if not any(getattr(finder, "carrel_compile_cache", False) for finder in sys.meta_path):
        cache = CompileCache(folder)
        cache.begin()
        atexit.register(cache.finish)
    return True


def install(folder: str) -> None:
    with contextlib.suppress(AttributeError, KeyError):
        kernel = globals()["get_ipython"]().kernel
        kernel.carrel_compile_cache = CompileCache(folder)
        kernel.carrel_compile_cache.begin()


def _keys(info: Any) -> set[tuple[str, str]]:
    return {(kind, str(key)) for kind, keys in info.artifacts.items() for key in keys}


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith(("flags", "Features")):
                return line
    return platform.processor()


def _text(error: Exception) -> str:
    return (
        f"{error}"[:_REASON]
        if isinstance(error, ValueError)
        else (f"{type(error).__name__}: {error}"[:_REASON])
    )
