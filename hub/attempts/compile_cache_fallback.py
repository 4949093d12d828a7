"""Let PyTorch compile again where code that was loaded from a compile cache cannot be used.

Runs inside the job, as ``compile_cache_side`` does and before it: it needs only the standard
library. Where PyTorch loads a compiled graph or a library, an error that names a file of the cache
drops the whole cache, and PyTorch repeats that step once, without it. All other errors, and those
of the repetition, are raised as they are.

PyTorch precompiles C++ headers before it looks whether a library is there: for loaded libraries, it
does not. A PyTorch without these functions works without the fallback.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

_CODE, _PROCESSOR = "torch._inductor.codecache", "torch._inductor.cpu_vec_isa"


class CompileFallback:
    """The files of one compiler's folder that come from a cache.

    Attributes:
        folder: of the compiler.
        names: of the files, below the folder.
        graphs: keys of the compiled graphs among them. Both are emptied when the files are dropped.
        tell: called with the error and the name of its file, empty for none, when they are dropped.
    """

    def __init__(
        self,
        folder: str,
        names: set[str],
        graphs: set[str],
        tell: Callable[[Exception, str], None],
    ) -> None:
        self.folder = folder
        self.names = names
        self.graphs = graphs
        self.tell = tell
        self._lock = threading.RLock()
        self._dropped = False
        self._may_skip_headers = False
        self._kinds: set[Any] = set()
        self._thread = threading.local()

    def begin(self) -> None:
        """Wrap the functions of PyTorch that load compiled code."""
        code = sys.modules.get(_CODE)
        with contextlib.suppress(AttributeError, KeyError):
            self._wrap_graphs(vars(code)["FxGraphCache"])
        with contextlib.suppress(AttributeError, KeyError, TypeError):
            self._wrap_libraries(vars(code)["CppCodeCache"])
        with contextlib.suppress(AttributeError, KeyError, TypeError):
            self._wrap_headers(code)
        with contextlib.suppress(AttributeError, KeyError, TypeError):
            self._wrap_processor(vars(sys.modules.get(_PROCESSOR))["VecISA"])

    def _wrap_graphs(self, graphs: Any) -> None:
        load = graphs.load_with_key

        def load_with_key(key: str, *args: Any, **kwargs: Any) -> Any:
            loaded = key in self.graphs

            def act() -> Any:
                self._thread.graph = loaded and not self._dropped
                try:
                    return load(key, *args, **kwargs)
                finally:
                    self._thread.graph = False

            # Without its files, PyTorch finds no graph, and compiles it.
            return self._twice(act, act, loaded=loaded)

        graphs.load_with_key = staticmethod(load_with_key)

    def _wrap_libraries(self, libraries: Any) -> None:
        load = vars(libraries)["load_async"].__func__

        def load_async(kind: Any, *args: Any, **kwargs: Any) -> Any:
            with self._lock:
                self._kinds.add(kind)
            dropped = self._dropped
            prepare = partial(load, kind, *args, **kwargs)
            library = self._library_there(load, kind, args, kwargs)
            library = library or self._twice(prepare, prepare)

            def again() -> Any:
                return prepare()()

            return partial(self._twice, library, again, dropped=dropped)

        libraries.load_async = classmethod(load_async)

    def _library_there(
        self, load: Callable[..., Any], kind: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Prepare a library that was loaded; None if it is not there.

        PyTorch would precompile its headers first, which takes most of the time of a first step.
        """
        if not self.names or not self._may_skip_headers or len(args) > 2:  # noqa: PLR2004
            return None  # The third argument is ``submit_fn``.
        before = set(kind.cache)
        self._thread.without_headers = True
        try:
            library = load(kind, *args, **{**kwargs, "submit_fn": None})
        except Exception:  # it is raised again where nothing is left out
            return None
        finally:
            self._thread.without_headers = False
        new = set(kind.cache) - before
        if all(f"{key[1:3]}{os.sep}{key}.main.so" in self.names for key in new):
            return library
        for key in new:  # It would be compiled without them.
            kind.cache.pop(key, None)
        return None

    def _wrap_headers(self, code: Any) -> None:
        precompile = vars(code)["_precompile_header"]

        def precompile_header(*args: Any, **kwargs: Any) -> Any:
            without = getattr(self._thread, "without_headers", False)
            return None if without else precompile(*args, **kwargs)

        setattr(code, "_precompile_header", precompile_header)  # noqa: B010  # it is private
        self._may_skip_headers = True

    def _wrap_processor(self, instructions: Any) -> None:
        check, probe = instructions.check_build, vars(instructions)["_probe_load"]
        failed: list[str] = []

        def probe_load(isa: Any, path: str) -> bool:
            name = os.path.relpath(path, self.folder)
            found = bool(probe(isa, path))
            if not found and name in self.names:
                self._delete([name])
                self.names.discard(name)
                failed.append(name)
            return found

        def check_build(isa: Any, *args: Any) -> bool:
            failed.clear()
            # Slower code would be compiled, without a word, if only the loaded library is at fault.
            return bool(check(isa, *args)) or (bool(failed) and bool(check(isa, *args)))

        instructions.check_build = check_build
        setattr(instructions, "_probe_load", probe_load)  # noqa: B010  # it is private

    def _twice(
        self,
        act: Callable[[], Any],
        again: Callable[[], Any],
        *,
        loaded: bool = False,
        dropped: bool | None = None,
    ) -> Any:
        """Act; if a loaded file is at fault, drop them all, and act again.

        Args:
            loaded: whether all errors are those of a loaded file.
            dropped: whether they had been dropped when the action was prepared.
        """
        before = self._dropped if dropped is None else dropped
        try:
            return act()
        except Exception as error:
            # The library of a loaded graph: the graph is compiled again as a whole.
            inner = getattr(self._thread, "graph", False)
            if inner or not self._drop(error, before=before, loaded=loaded):
                raise
        with self._lock:
            kinds = tuple(self._kinds)
        for kind in kinds:  # What has failed is known to PyTorch as loaded.
            kind.cache_clear()
            kind.cache.clear()
        return again()

    def _drop(self, error: Exception, *, before: bool, loaded: bool) -> bool:
        """Delete the loaded files if the error is due to them; return whether they are gone."""
        with self._lock:
            if self._dropped:
                return not before  # By another thread, or for an earlier file.
            name = self._named(error)
            if not name and not loaded:
                return False
            self._dropped = True
            self._delete(self.names)
            self.names.clear()
            self.graphs.clear()
            self.tell(error, name)
            return True

    def _delete(self, names: Iterable[str]) -> None:
        for name in names:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self.folder, name))

    def _named(self, error: BaseException | None) -> str:
        """Return the loaded file that an error, or a cause of it, names; empty for none."""
        seen: list[BaseException] = []
        while error is not None and all(error is not each for each in seen):
            seen.append(error)
            parts = f"{getattr(error, 'path', '')}\n{error}".split(f"{self.folder}{os.sep}")[1:]
            for part in parts:
                for name in self.names:
                    if part.startswith(name):
                        return name
            error = error.__cause__ or error.__context__
        return ""


def install() -> None:
    with contextlib.suppress(AttributeError, KeyError):
        globals()["get_ipython"]().kernel.carrel_compile_fallback = CompileFallback
