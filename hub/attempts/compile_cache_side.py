"""Load what PyTorch has compiled in an earlier job, and save what it compiles in this one.

Runs inside the job. The runner executes this file in the kernel as text (``kernel_code``): it needs
only the standard library. ``carrel.execution`` calls ``begin_in_program`` in a command.

Nothing happens until PyTorch imports its compiler: PyTorch is never imported for the cache. If
something fails, the job compiles as it would without a cache, and the report says why.

A cache is a line of JSON, then an archive of the compiler's folder. (``save_cache_artifacts`` of
PyTorch saves no libraries of a CPU: they would be built again, which takes most of the time.) It is
native code and pickles: the service puts only what the owner's own jobs, or the course, have
compiled into the folder of an attempt.
"""

from __future__ import annotations

import atexit
import contextlib
import gzip
import hashlib
import importlib
import importlib.machinery
import json
import os
import platform
import shutil
import stat
import struct
import sys
import tarfile
from collections.abc import Iterator
from typing import Any

COMPILED = "compiled"
"""The compiler's folder in that of the attempt. The service makes it where a job uses the cache."""
OWN, COURSE = "compile-cache.own", "compile-cache.course"
"""What an earlier job of the owner has compiled, and what the course has."""
NEW, REPORT = "compile-cache.new", "compile-cache.json"
DRAFTS = ".compile-cache."
"""How the names of unfinished files begin."""
LIMIT = 64 << 20
"""The most bytes of one cache."""
UNPACKED = 4 * LIMIT
HEADER_BYTES = 4096
_COMPILER, _BACKEND = "torch._dynamo", "torch._inductor.compile_fx"
_FOLDER_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"
_REASON = 200
_PIECE = 1 << 20
_DRAFT = ".part"


class CompileCache:
    """The cache of one process of a job.

    Attributes:
        folder: of the attempt.
        limit: the most bytes of what is saved.
        fallback: ``CompileFallback``; None for none.
    """

    carrel_compile_cache = True

    def __init__(self, folder: str, limit: int = LIMIT, fallback: Any = None) -> None:
        self.folder = folder
        self.limit = limit
        self.fallback = fallback
        self._loaded: list[dict[str, Any]] = []
        self._known: set[str] = set()
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
        if _BACKEND not in sys.modules or not self._uses_folder():
            return ""
        saved = {"graphs": 0, "bytes": 0}
        used: set[str] = set()
        try:
            used = _used_graphs()
            files = _files(self._compiled)
            if not files.keys() <= self._known:
                # What the course has compiled stays the course's: it may be deleted there.
                for each in self._loaded:
                    if each["origin"]["course"]:
                        files = {name: files[name] for name in files.keys() - each["names"]}
                saved = self._save(files)
        except Exception as error:
            self._problems.append(f"What it compiled is not kept: {_text(error)}.")
        report = {
            "loaded": [
                {"graphs": len(each["graphs"]), "used": len(each["graphs"] & used)} | each["origin"]
                for each in self._loaded
            ],
            "saved": saved,
            "problems": self._problems,
        }
        with contextlib.suppress(OSError):
            self._write(REPORT, json.dumps(report).encode())
        return ""

    @property
    def _compiled(self) -> str:
        return os.path.join(self.folder, COMPILED)

    def _uses_folder(self) -> bool:
        """Whether the user has chosen no folder of their own for the compiler."""
        return os.environ.get(_FOLDER_VARIABLE) == self._compiled

    def _use_folder(self) -> None:
        # Its default is below the folder for temporary files, which others may share.
        os.environ.setdefault(_FOLDER_VARIABLE, self._compiled)

    def _load_all(self) -> None:
        if not self._uses_folder():
            return
        for name, whose in ((OWN, "your job"), (COURSE, "the course's job")):
            with contextlib.suppress(FileNotFoundError):
                problem = self._load(name, whose)
                if problem:
                    self._problems.append(problem)
        if self._loaded and self.fallback is not None:
            graphs = set().union(*(each["graphs"] for each in self._loaded))
            self.fallback(self._compiled, self._known, graphs, self._drop).begin()

    def _drop(self, error: Exception, name: str) -> None:
        """Forget what was loaded, as the fallback has deleted it: an error named one file of it."""
        at_fault = [each for each in self._loaded if name in each["names"]] or self._loaded
        self._loaded = []
        line = str(error).partition("\n")[0].replace(f"{self._compiled}{os.sep}", "")
        self._problems.append(
            f"What {at_fault[0]['whose']} compiled cannot be used here, so that this job compiled "
            f"it again: {type(error).__name__}: {line[:_REASON]}."
        )

    def _load(self, name: str, whose: str) -> str:
        """Load a cache; return why it is not used as a sentence, or nothing."""
        try:
            with open_cache(os.path.join(self.folder, name)) as (header, content):
                origin = f"{whose} {header['request']}"
                if header["machine"] != machine():
                    return (
                        f"What {origin} compiled is not used: "
                        "its Python, its PyTorch or its processor was another one."
                    )
                names = unpack(content, self._compiled)
        except FileNotFoundError:
            raise
        except Exception as error:
            return f"What {whose} compiled is not used: {_text(error)}."
        self._known |= names
        self._loaded.append(
            {
                "graphs": _graphs(names),
                "names": names,
                "whose": origin,
                "origin": {"request": header["request"], "course": name == COURSE},
            }
        )
        return ""

    def _save(self, files: dict[str, os.stat_result]) -> dict[str, int]:
        """Save the newest files up to the limit: those of this job, then those that it loaded."""
        chosen, size = [], 0
        for name in sorted(files, key=lambda each: -files[each].st_mtime):
            size += files[name].st_size
            if size <= self.limit:
                chosen.append(name)
        if size > self.limit:
            kept = "kept in part" if chosen else "not kept"
            self._problems.append(
                f"What it compiled is {kept}: it has {size / 2**20:.0f} MiB, "
                f"more than {self.limit / 2**20:.0f} MiB."
            )
        graphs = len(_graphs(set(chosen)))
        packed = self._draft(f"{NEW}.tar")
        try:
            with _created(packed) as file:
                _pack(self._compiled, chosen, file)
            with open(packed, "rb") as file:
                header = new_header(b"", graphs=graphs) | _measured(file)
                if not chosen or header["bytes"] > LIMIT:
                    return {"graphs": 0, "bytes": 0}
                file.seek(0)
                with _created(self._draft(NEW)) as target:
                    target.write(json.dumps(header).encode() + b"\n")
                    shutil.copyfileobj(file, target, _PIECE)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(packed)
        os.replace(self._draft(NEW), os.path.join(self.folder, NEW))
        return {"graphs": graphs, "bytes": header["bytes"]}

    def _write(self, name: str, content: bytes) -> None:
        with _created(self._draft(name)) as file:
            file.write(content)
        os.replace(self._draft(name), os.path.join(self.folder, name))

    def _draft(self, name: str) -> str:
        return os.path.join(self.folder, f".{name}.{os.getpid()}")


@contextlib.contextmanager
def open_cache(path: str) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield the header of a cache, and its file at the start of the archive.

    Raises:
        OSError: it cannot be read.
        ValueError: it is damaged or too large.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is not a file")
        header = _read_header(file)
        start = file.tell()
        found = _measured(file)
        if found["bytes"] > LIMIT:
            raise ValueError(f"it has more than {LIMIT >> 20} MiB")
        if any(found[name] != header[name] for name in ("sha256", "bytes")):
            raise ValueError("it is damaged")
        file.seek(start)
        yield header, file


def read_cache(path: str) -> tuple[dict[str, Any], bytes]:
    """Return the header and the bytes of a cache. Raises OSError, ValueError."""
    with open_cache(path) as (header, file):
        return header, file.read()


def parse_cache(file: Any) -> tuple[dict[str, Any], bytes]:
    """Return the header and the bytes of an open cache. Raises OSError, ValueError."""
    header = _read_header(file)
    content = file.read(LIMIT + 1)
    if len(content) > LIMIT:
        raise ValueError(f"it has more than {LIMIT >> 20} MiB")
    whole = hashlib.sha256(content).hexdigest() == header["sha256"]
    if not whole or len(content) != header["bytes"]:
        raise ValueError("it is damaged")
    return header, content


def _read_header(file: Any) -> dict[str, Any]:
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
    if header["graphs"] < 0:
        raise ValueError("it is damaged")
    return header


def _measured(file: Any) -> dict[str, Any]:
    """Return size and digest of the rest of a file, up to the limit, read in pieces."""
    digest, size = hashlib.sha256(), 0
    while size <= LIMIT and (piece := file.read(_PIECE)):
        digest.update(piece)
        size += len(piece)
    return {"bytes": size, "sha256": digest.hexdigest()}


def _created(path: str) -> Any:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")


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
        from .compile_cache_fallback import CompileFallback  # noqa: PLC0415  # not in a kernel

        cache = CompileCache(folder, fallback=CompileFallback)
        cache.begin()
        atexit.register(cache.finish)
    return True


def install(folder: str) -> None:
    with contextlib.suppress(AttributeError, KeyError):
        kernel = globals()["get_ipython"]().kernel
        fallback = getattr(kernel, "carrel_compile_fallback", None)
        kernel.carrel_compile_cache = CompileCache(folder, fallback=fallback)
        kernel.carrel_compile_cache.begin()


def _files(folder: str) -> dict[str, os.stat_result]:
    """Return the finished files of the compiler, by their names below its folder."""
    found: dict[str, os.stat_result] = {}
    for above, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if each != "locks" and not each.startswith(_DRAFT)]
        for name in names:
            path = os.path.join(above, name)
            about = os.lstat(path)
            draft = name.startswith(".") or name.endswith((".lock", ".tmp"))
            if stat.S_ISREG(about.st_mode) and not draft and _is_whole(path):
                found[os.path.relpath(path, folder)] = about
    return found


def _is_whole(path: str) -> bool:
    """Whether a library or an object file ends where its header says; true for all other files.

    The compiler takes one that exists as finished.
    """
    if not path.endswith((".so", ".o")):
        return True
    with open(path, "rb") as file:
        start = file.read(64)
        size = os.fstat(file.fileno()).st_size
    if not start:
        return False
    if start[:6] != b"\x7fELF\x02\x01":
        return True
    if len(start) < 64:  # noqa: PLR2004  # the header of a library of 64 bits
        return False
    (offset,) = struct.unpack_from("<Q", start, 40)
    each, number = struct.unpack_from("<HH", start, 58)
    return bool(offset + each * number <= size)


def _pack(folder: str, names: list[str], target: Any) -> None:
    with tarfile.open(fileobj=target, mode="w:gz", compresslevel=1) as archive:
        for name in names:
            archive.add(os.path.join(folder, name), name, recursive=False)


def unpack(content: Any, folder: str) -> set[str]:
    """Add the files of an open archive to a folder, all or none; return their names.

    Raises:
        OSError, EOFError, TarError, ValueError: it is damaged, or the files cannot be written.
    """
    # Written beside and renamed: the compiler takes a library that exists as finished.
    draft = os.path.join(folder, f"{_DRAFT}.{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    names: set[str] = set()
    left = UNPACKED
    try:
        with tarfile.open(fileobj=gzip.GzipFile(fileobj=content), mode="r|") as archive:
            for member in archive:
                left -= max(member.size, 0)
                source = archive.extractfile(member) if member.isreg() and left >= 0 else None
                if source is None or set(member.name.split("/")) & {"", ".", ".."}:
                    raise ValueError("it is damaged")
                path = os.path.join(draft, member.name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "xb") as file:
                    shutil.copyfileobj(source, file, _PIECE)
                os.chmod(path, 0o700)
                os.utime(path, (member.mtime, member.mtime))
                names.add(member.name)
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.lexists(path):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                os.rename(os.path.join(draft, name), path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return names


def _graphs(names: set[str]) -> set[str]:
    """Return the keys of the graphs among the files of the compiler."""
    parts = (name.split("/") for name in names)
    return {each[2] for each in parts if each[0] == "fxgraph" and len(each) > 3}  # noqa: PLR2004


def _used_graphs() -> set[str]:
    """Return the keys of the graphs that the process has compiled or loaded."""
    found = importlib.import_module("torch.compiler").save_cache_artifacts()
    return set() if found is None else {*map(str, found[1].artifacts.get("inductor", ()))}


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
