"""Run cells with IPython in this process, and send their outputs as plain nbformat outputs.

Two features of a kernel are missing: ``input()``, and a front end for widgets.
"""

from __future__ import annotations

import base64
import builtins
import io
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn, TypeAlias, cast

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from traitlets import Type
from traitlets.config import Config

from . import iteration_guard
from .iteration_guard import IterationGuard
from .messages import Json

Output: TypeAlias = "dict[str, Json]"
Sink: TypeAlias = "Callable[[Output], None]"

_FLUSH_BYTES: Final = 1 << 14
_FLUSH_SECONDS: Final = 0.05


class Show:
    """Sends outputs of this process; a process that the student's code forked uses the pipe."""

    def __init__(self) -> None:
        self.sink: Sink = lambda output: None
        self.owner = os.getpid()
        self.errors = 0

    def __call__(self, output: Output) -> None:
        if os.getpid() == self.owner:
            self.sink(output)


class OutputStream(io.TextIOBase):
    """``sys.stdout`` or ``sys.stderr``, sent in pieces."""

    def __init__(self, name: str, show: Show, number: int) -> None:
        super().__init__()
        self._name, self._show, self._number = name, show, number
        self._lock = threading.RLock()
        self._pending: list[str] = []
        self._size = 0
        self._sent_at = 0.0

    encoding = "utf-8"
    errors = "replace"

    @property
    def name(self) -> str:
        return f"<{self._name}>"

    def fileno(self) -> int:
        return self._number

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if os.getpid() != self._show.owner:
            os.write(self._number, text.encode("utf-8", "replace"))
            return len(text)
        with self._lock:
            self._pending.append(text)
            self._size += len(text)
            late = time.monotonic() - self._sent_at > _FLUSH_SECONDS
            if late or self._size > _FLUSH_BYTES:
                self.flush()
        return len(text)

    def flush(self) -> None:
        with self._lock:
            pending, self._pending, self._size = "".join(self._pending), [], 0
            self._sent_at = time.monotonic()
            if pending:
                self._show({"output_type": "stream", "name": self._name, "text": pending})


class _Hook(DisplayHook):  # type: ignore[misc,unused-ignore]
    """The last expression of a cell."""

    show: Show

    def write_output_prompt(self) -> None:
        """Notebooks show the number beside the output."""

    def write_format_data(
        self, format_dict: Mapping[str, object], md_dict: Mapping[str, object] | None = None
    ) -> None:
        flush()
        self.show(
            {
                "output_type": "execute_result",
                "execution_count": self.prompt_count,
                "data": _plain(format_dict),
                "metadata": _plain(md_dict or {}),
            }
        )

    def finish_displayhook(self) -> None:
        self._is_active = False


class _Publisher(DisplayPublisher):  # type: ignore[misc,unused-ignore]
    """``display`` and figures."""

    show: Show

    def publish(  # type: ignore[override,unused-ignore]
        self,
        data: Mapping[str, object],
        metadata: Mapping[str, object] | None = None,
        *,
        transient: Mapping[str, object] | None = None,
        update: bool = False,
        **_more: object,
    ) -> None:
        flush()
        self.show(
            {
                "output_type": "update_display_data" if update else "display_data",
                "data": _plain(data),
                "metadata": _plain(metadata or {}),
                "display_id": str((transient or {}).get("display_id", "")),
            }
        )

    def clear_output(self, wait: bool = False) -> None:
        flush()
        self.show({"output_type": "clear_output", "wait": bool(wait)})


class SandboxShell(InteractiveShell):  # type: ignore[misc,unused-ignore]
    """The shell of a kernel, created before the fork."""

    displayhook_class = Type(_Hook)
    display_pub_class = Type(_Publisher)

    show: Show
    leaving = False

    def run(
        self, source: str, *, counted: bool = True, guard: IterationGuard | None = None
    ) -> ExecutionResult:
        with warnings.catch_warnings():
            """Resets the registry, so that each cell shows its warnings again, as in a kernel."""
        if guard is not None:
            self.user_ns[iteration_guard.NAME] = iteration_guard.guard
            self.ast_transformers.append(guard)
        try:
            found = self.run_cell(source, store_history=counted)  # type: ignore[no-untyped-call,unused-ignore]
        finally:
            if guard is not None and guard in self.ast_transformers:
                self.ast_transformers.remove(guard)
        return cast("ExecutionResult", found)

    def _showtraceback(self, etype: type[BaseException], evalue: object, stb: list[str]) -> None:
        flush()
        self.show.errors += 1
        self.show(error(etype.__name__, str(evalue), [str(line) for line in stb]))

    def ask_exit(self) -> None:
        """``exit`` and ``quit`` end the kernel in the cell, as in a notebook."""
        self.leaving = True

    def enable_gui(self, gui: str | None = None) -> None:
        """Do nothing: figures are shown inline."""

    def init_virtualenv(self) -> None:
        """Do nothing: the environment is the running one."""


def error(name: str, value: str, traceback: list[str]) -> Output:
    return {"output_type": "error", "ename": name, "evalue": value, "traceback": list(traceback)}


def make_shell() -> SandboxShell:
    """Create the shell; redirect standard output, and disable ``input()``."""
    config = Config()
    config.HistoryManager.enabled = False
    config.Completer.use_jedi = False
    shell = SandboxShell.instance(config=config)
    shell.show = Show()
    cast("_Hook", shell.displayhook).show = shell.show
    cast("_Publisher", shell.display_pub).show = shell.show
    sys.stdout = OutputStream("stdout", shell.show, 1)
    sys.stderr = OutputStream("stderr", shell.show, 2)
    builtins.input = _no_input
    sys.path.insert(0, "")
    return shell


def flush() -> None:
    """Send printed text before the next output. Student code may have replaced the streams."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, OutputStream):
            stream.flush()


def _no_input(prompt: object = "", /) -> NoReturn:
    raise RuntimeError("input() is not available: this notebook runs unattended.")


def _plain(data: Mapping[str, Any]) -> dict[str, Json]:
    return {str(name): _plain_value(value) for name, value in data.items()}


def _plain_value(value: object) -> Json:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return _plain(value)
    if isinstance(value, list | tuple):
        return [_plain_value(each) for each in value]
    if value is None or isinstance(value, str | int | float):
        return value
    return str(value)
