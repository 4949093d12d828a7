"""The papermill engine of Carrel: executes the cells of a notebook, with two guarantees.

The saved notebook is always complete, and only completed cells are marked as completed. (After the
kernel has died, papermill's own loop marks all cells as completed.)
"""

from __future__ import annotations

import ast
import asyncio
import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from queue import Empty
from types import ModuleType
from typing import Any

from jupyter_core.utils import run_sync
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from nbformat.v4 import output_from_msg
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, NotebookExecutionManager, papermill_engines
from papermill.execute import remove_error_markers
from papermill.log import logger

from ....hub.attempts import compile_cache_fallback, compile_cache_side, snapshot_side
from ....hub.attempts.kernel_code import installation
from ....hub.attempts.notebook_format import code_cell_hashes, code_cell_numbers
from ....hub.attempts.snapshots import WRITING
from ....hub.messages.units import count
from ....hub.records.json_value import Json
from ....hub.records.requests import CauseCode
from ..attempt.memory_errors import memory_shortage
from ..attempt.outcome_messages import AttemptOutcome, plain
from ..attempt.output_masker import Masker
from ..attempt.outputs import CellOutputs, bounded_bundle
from ..attempt.progress import step_of_bar
from ..attempt.text import left_out, storable, utf8_size
from ..kernels import kernel_side
from ..kernels.start import START_TIMEOUT_SECONDS, KernelStart
from . import class_prefix
from .output_file import NotebookFile
from .resume import ResumePoint, adopt_continuation, resume_point
from .state import NotebookState

ENGINE = "carrel-runner"
"""``carrel`` is the engine that submits a job, in extensions/papermill."""
AUTOSAVE_SECONDS = 5
_WRITING_SECONDS, _STOPPING_SECONDS, _LOOK_SECONDS = 10.0, 0.5, 0.01


class Stopped(Exception):
    """The attempt was stopped between two cells."""


class Halted(Exception):
    """A user halted the job; its work is saved."""


class NotebookManager(NotebookExecutionManager):  # type: ignore[misc]  # papermill has no types
    """Papermill's record of an execution, with correct statuses, atomic saves and events."""

    nb: NotebookNode

    def __init__(self, nb: NotebookNode, attempt: NotebookState) -> None:
        super().__init__(nb, progress_bar=False, autosave_cell_every=AUTOSAVE_SECONDS)
        self.attempt = attempt
        self.numbers = code_cell_numbers(nb.cells)
        self.current: int | None = None
        self.done = 0
        self.outputs = CellOutputs(attempt.order.limits, attempt.reporter.cut)
        self.file = NotebookFile(attempt.output, nb)
        self._cell_started = self.now()
        self._pending_end: tuple[str, Mapping[str, Json]] | None = None
        """The event of the last cell's end, if it is not reported yet."""

    def place(self, index: int | None) -> str:
        """Name a cell as users count them: ``cell 3``."""
        if index is None:
            return ""
        number = self.numbers.get(index)
        return "the injected parameters" if number is None else f"cell {number}"

    def save(self, **_: object) -> None:
        self.outputs.settle()
        if self.current is not None:
            self.file.changed.add(self.current)
        self.file.save()
        self.last_save_time = self.now()

    def settle(self) -> None:
        """Save, then report how the last cell ended, so that a reported cell is always saved."""
        self.save()
        if self._pending_end is not None:
            self.attempt.report(*self._pending_end)
            self._pending_end = None

    def notebook_start(self, **_: object) -> None:
        order = self.attempt.order
        # Papermill would store its arguments here, which are paths of the server.
        self.nb.metadata.papermill["input_path"] = order.job.notebook_name
        self.nb.metadata.papermill["output_path"] = order.job.output_name
        self.nb.metadata["carrel"] = {
            "request": order.request_id,
            "epoch": order.epoch,
            "outcome": "running",
            "message": "",
            "cells": len(self.numbers),
            "done": 0,
            "started_at": _now(),
            "ended_at": None,
            "devices": list(order.devices),
            "device_ids": list(order.device_ids),
            **({"image": order.image} if order.image else {}),
        }
        super().notebook_start()
        hashes: list[Json] = [*code_cell_hashes(self.nb.cells)]
        self.attempt.report("cells", {"cells": len(self.numbers), "hashes": hashes})

    def cell_start(self, cell: NotebookNode, cell_index: int, **_: object) -> None:
        """Mark the cell as running; the save also keeps the cell before it."""
        self.current, self._cell_started = cell_index, self.now()
        self.outputs.start_cell()
        cell.metadata.papermill.update(
            start_time=self._cell_started.isoformat(), status=self.RUNNING, exception=False
        )
        self.file.changed.add(cell_index)
        self.settle()
        number = self.numbers.get(cell_index)
        self.attempt.reporter.cell(cell_index, number)
        if number is not None:
            self.attempt.report("cell_started", {"index": cell_index, "number": number})

    def cell_exception(
        self, cell: NotebookNode, cell_index: int, exception: CellExecutionError, **_: object
    ) -> None:
        cause, mask = _cause(exception, cell), self.attempt.masker.text
        self.attempt.failure = (
            cell_index,
            CellExecutionError(mask(cause.traceback), mask(cause.ename), mask(cause.evalue)),
        )
        if memory_shortage(str(cause.ename), str(cause.evalue)) is not None:
            # While the kernel still has it: the variables of the cell live on with its traceback.
            self.attempt.used_at_failure = self.attempt.measured_memory()
        super().cell_exception(cell, cell_index)

    def cell_complete(self, cell: NotebookNode, cell_index: int, **_: object) -> None:
        """Record how the cell ended; the next ``settle`` saves and reports it."""
        attempt, number, end = self.attempt, self.numbers.get(cell_index), self.now()
        seconds = (end - self._cell_started).total_seconds()
        cell.metadata.papermill.update(end_time=end.isoformat(), duration=seconds)
        where: dict[str, Json] = {"index": cell_index, "number": number}
        if attempt.failure is not None:
            self._pending_end = ("cell_failed", {**where, **_failure(attempt.failure[1])})
        else:
            cell.metadata.papermill["status"] = self.COMPLETED
            self.current = None
            if number is not None:
                self.done += 1
                self.nb.metadata.carrel["done"] = self.done
                self._pending_end = ("cell_finished", {**where, "seconds": seconds})
        self.file.changed.add(cell_index)
        self.outputs.end(cell.outputs)
        attempt.report_step()
        attempt.reporter.settle()

    def cell_resumed(
        self, cell: NotebookNode, index: int, before: NotebookNode | None, origin: str = ""
    ) -> None:
        """Take over what an earlier attempt has shown, without executing the cell.

        Args:
            origin: the assignment from whose prefix it comes; empty for an earlier attempt.
        """
        if before is not None and before.source == cell.source:
            cell.outputs = before.get("outputs", [])
            cell.execution_count = before.get("execution_count")
            times = ("start_time", "end_time", "duration")
            old = before.metadata.get("papermill", {})
            cell.metadata.papermill.update({name: old[name] for name in times if name in old})
        cell.metadata.papermill["status"] = self.COMPLETED
        cell.metadata.papermill["exception"] = False
        cell.metadata["carrel"] = {"prefix": origin} if origin else {"resumed": True}
        if index in self.numbers:
            self.done += 1
        self.nb.metadata.carrel["done"] = self.done
        self.file.changed.add(index)

    def skip_text(self, cell: NotebookNode, index: int) -> None:
        """Mark a text cell as completed, without a save of its own."""
        cell.metadata.papermill["status"] = self.COMPLETED
        cell.metadata.papermill["exception"] = False
        self.file.changed.add(index)

    def conclude(self, outcome: AttemptOutcome) -> None:
        """Write the outcome and the final status of all cells into the notebook."""
        # Papermill marks an error with extra cells, which would shift every index.
        remove_error_markers(self.nb)
        self.end_time = self.now()
        succeeded = outcome.code is CauseCode.SUCCEEDED
        papermill = self.nb.metadata.papermill
        papermill["end_time"] = self.end_time.isoformat()
        papermill["duration"] = (self.end_time - self.start_time).total_seconds()
        papermill["exception"] = None if succeeded else True
        for cell in self.nb.cells:
            if cell.metadata.papermill["status"] == self.RUNNING:
                cell.metadata.papermill["status"] = self.FAILED
                cell.metadata.papermill["exception"] = True
        self.nb.metadata.carrel.update(
            {"outcome": str(outcome.code), "message": outcome.message, "ended_at": _now()}
        )
        self.outputs.settle()
        self.file.finish()


class NotebookClient(PapermillNotebookClient, KernelStart):  # type: ignore[misc]  # papermill has no types
    """Communicates with the kernel; stores and reports its messages within the limits."""

    nb_man: NotebookManager
    clear_before_next_output: bool
    prefix: class_prefix.WithoutPrefix

    def handle_raw_output(self, text: str) -> None:
        self.nb_man.attempt.log.write(text)

    @property
    def may_start_again(self) -> bool:
        attempt = self.nb_man.attempt
        return not (attempt.stopping.is_set() or attempt.killed_by_system)

    def start_new_kernel(self, **kwargs: object) -> None:
        super().start_new_kernel(**kwargs)
        self.nb_man.attempt.process = self.process

    def papermill_execute_cells(self) -> None:
        attempt = self.nb_man.attempt
        attempt.ready = True
        self._bound_kernel()
        if self._uses_compile_cache:
            self.install(compile_cache_fallback)
            self.install(compile_cache_side, str(attempt.folder))
        try:
            start = self._resume()
            self.prefix = class_prefix.of(self) if start == 0 else class_prefix.WithoutPrefix()
            self._execute_from(start)
        finally:
            self._await_snapshot()
        self.nb_man.settle()
        attempt.cells_ended = True
        if self._uses_compile_cache and not attempt.stopping.is_set():
            run_sync(self.evaluate)("get_ipython().kernel.carrel_compile_cache.finish()")

    @property
    def _uses_compile_cache(self) -> bool:
        folder = self.nb_man.attempt.folder / compile_cache_side.COMPILED
        return bool(getattr(self.km, "ipykernel", False)) and folder.is_dir()

    def _execute_from(self, start: int) -> None:
        attempt, last = self.nb_man.attempt, None
        for index, cell in enumerate(self.nb.cells):
            if index == self.prefix.first and start <= index:
                start = self.prefix.restore()
            if index < start:
                continue
            if attempt.stopping.is_set():
                self.nb_man.settle()
                raise Stopped
            if cell.cell_type != "code":
                self.nb_man.skip_text(cell, index)
                continue
            if attempt.is_halted():
                self.nb_man.settle()
                if last is not None:
                    self._save_variables_now(last)
                raise Halted
            self.prefix.before(index)
            self.nb_man.cell_start(cell, cell_index=index)
            try:
                self.execute_cell(cell, index)
            except CellExecutionError as error:
                self.nb_man.cell_exception(cell, cell_index=index, exception=error)
            # Any other exception leaves the cell ``running``: ``conclude`` marks it.
            self.nb_man.cell_complete(cell, cell_index=index)
            if attempt.failure is not None:
                break
            self.prefix.after(index, cell)
            self._save_variables(cell, index)
            last = index

    # -- resuming -------------------------------------------------------------------------

    def _resume(self) -> int:
        """Load what an earlier attempt has saved; return the index of the first cell to execute."""
        attempt, manager = self.nb_man.attempt, self.nb_man
        self.install(snapshot_side, str(attempt.folder))
        point: ResumePoint | str = adopt_continuation(attempt.order, attempt.folder)
        point = point or resume_point(
            attempt.folder, self.nb, manager.numbers, attempt.order.job.from_cell
        )
        if not isinstance(point, str):
            problem = run_sync(self._load)(str(point.pickle))
            point = f"the saved variables cannot be loaded: {problem}" if problem else point
        if isinstance(point, str):
            if point:
                attempt.log.write(f"carrel: the job starts from its first cell: {point}\n")
            return 0
        for index in range(point.start):
            cell = self.nb.cells[index]
            if cell.cell_type != "code":
                manager.skip_text(cell, index)
                continue
            known = index < len(point.before.cells)
            found = point.before.cells[index] if known else None
            manager.cell_resumed(cell, index, found)
        attempt.log.write(
            f"carrel: the job goes on after {count(manager.done, 'cell')} of an earlier execution\n"
        )
        for name, reason in point.left_out.items():
            attempt.log.write(f"carrel: {name} could not be saved: {reason}\n")
        left_out: dict[str, Json] = dict(point.left_out)
        attempt.report("resumed", {"cells": manager.done, "left_out": left_out})
        manager.settle()
        return point.start

    async def _load(self, pickle: str) -> str:
        """Load a snapshot in the kernel; return the problem, or nothing."""
        answer = await self.evaluate(f"get_ipython().kernel.carrel_snapshots.load({pickle!r})")
        if answer.get("status") != "ok":
            return str(answer.get("evalue", "the kernel cannot load it"))
        return text_of_value(answer)

    async def evaluate(self, expression: str) -> dict[str, Any]:
        """Return the kernel's answer to an expression: with its value, or the error."""
        assert self.kc is not None
        request = self.kc.execute(
            "", silent=True, allow_stdin=False, user_expressions={"value": expression}
        )
        reply = await self._async_poll_shell(request)
        answer: dict[str, Any] = reply["content"].get("user_expressions", {}).get("value", {})
        return answer

    @staticmethod
    def value_of(answer: Mapping[str, Any]) -> str:
        """Return the value of an evaluated expression, as text."""
        return text_of_value(answer)

    async def _async_poll_shell(self, request: str) -> dict[str, Any]:
        assert self.kc is not None
        while True:
            try:
                reply: dict[str, Any] = await self.kc._async_get_shell_msg(timeout=1)
            except Empty:
                await self._async_check_alive()
                continue
            if reply["parent_header"].get("msg_id") == request:
                return reply

    def _await_snapshot(self) -> None:
        """Wait for the snapshot that is being written: its process ends with the kernel."""
        attempt = self.nb_man.attempt
        failed = attempt.failure is not None or attempt.stopping.is_set()
        seconds = _STOPPING_SECONDS if attempt.stopping.is_set() else _WRITING_SECONDS
        ends = time.monotonic() + seconds
        while failed and (attempt.folder / WRITING).exists() and time.monotonic() < ends:
            time.sleep(_LOOK_SECONDS)

    def _save_variables(self, cell: NotebookNode, index: int) -> None:
        """Let the kernel save its variables, without waiting for it."""
        seconds = float(cell.metadata.papermill.get("duration") or 0.0)
        self._take_snapshot(index, seconds, now=self.nb_man.attempt.has_notice())

    def _save_variables_now(self, index: int) -> None:
        """Let the kernel save its variables, and wait until it has."""
        if request := self._take_snapshot(index, 0.0, now=True):
            run_sync(self._async_poll_shell)(request)

    def _take_snapshot(self, index: int, seconds: float, *, now: bool) -> str:
        """Request a snapshot; return the id of the request, or nothing for other kernels."""
        if not getattr(self.km, "ipykernel", False):
            return ""
        assert self.kc is not None
        number = self.nb_man.numbers.get(index, 0)
        call = f"get_ipython().kernel.carrel_snapshots.take({index}, {number}, {seconds}, {now})"
        return str(self.kc.execute(call, silent=True, store_history=False, allow_stdin=False))

    def _bound_kernel(self) -> None:
        """Install message limits in a Python kernel."""
        limits = self.nb_man.attempt.order.limits
        self.install(kernel_side, limits.message, limits.item)

    def install(self, module: ModuleType, *arguments: object) -> None:
        """Execute a module in the kernel and call its ``install``, without waiting for a reply."""
        if not getattr(self.km, "ipykernel", False):
            return
        code = installation(module, *arguments)
        assert self.kc is not None
        self.kc.execute(code, silent=True, store_history=False, allow_stdin=False)

    # -- messages -------------------------------------------------------------------------

    def process_message(
        self, msg: dict[str, Any], cell: NotebookNode, cell_index: int
    ) -> NotebookNode | None:
        manager = self.nb_man
        content = msg["content"] = masked(msg["content"], manager.attempt.masker)
        manager.attempt.loop = asyncio.get_running_loop()
        if cut := content.get("carrel_cut"):
            manager.attempt.reporter.cut("output", int(cut))
        if isinstance(content.get("data"), dict) and not msg["msg_type"].startswith("comm"):
            limit = manager.attempt.order.limits.item
            content["data"] = bounded_bundle(content["data"], lambda _: limit)
        output = super(PapermillNotebookClient, self).process_message(msg, cell, cell_index)
        manager.autosave_cell()
        return output

    def output(
        self,
        outs: list[NotebookNode],
        msg: dict[str, Any],
        display_id: str | None,
        cell_index: int,
    ) -> NotebookNode | None:
        manager, attempt = self.nb_man, self.nb_man.attempt
        content = msg["content"]
        if self.output_hook_stack[msg["parent_header"].get("msg_id")]:
            # An Output widget stores it in a list that only grows.
            if at := content.get("carrel_at"):
                gap = left_out(content["carrel_cut"])
                content["text"] = content["text"][:at] + gap + content["text"][at:]
            if manager.outputs.spend(utf8_size(json.dumps(content, default=str))):
                super().output(outs, msg, display_id, cell_index)
            return None
        if self.clear_before_next_output:
            outs[:] = []
            self.clear_display_id_mapping(cell_index)
            self.clear_before_next_output = False
        if msg["msg_type"] == "stream":
            name, text = str(content["name"]), str(content["text"])
            if at := content.get("carrel_at"):
                self._print(outs, name, text[:at])
                self._print(outs, name, text[at:], int(content["carrel_cut"]))
            else:
                self._print(outs, name, text)
            return None
        try:
            output: NotebookNode = output_from_msg(msg)  # type: ignore[no-untyped-call]
        except ValueError:
            return None  # the message has no output
        if manager.outputs.accept(outs, output):
            if display_id:
                cells = self._display_id_map.setdefault(display_id, {})
                cells.setdefault(cell_index, []).append(len(outs))
            outs.append(output)
        attempt.reporter.output(output)
        attempt.log.write(text_for_log(output))
        return output

    def _print(self, outs: list[NotebookNode], name: str, text: str, missing: int = 0) -> None:
        attempt = self.nb_man.attempt
        self.nb_man.outputs.print(outs, name, text, missing)
        attempt.reporter.print(name, text, missing)
        attempt.log.write(text, missing)
        if name == "stderr" and (step := step_of_bar(text)) is not None:
            attempt.reporter.step(step)

    def _update_display_id(self, display_id: str, msg: dict[str, Any]) -> None:
        places = self._display_id_map.get(display_id, {})
        copies = sum(map(len, places.values()))
        size = utf8_size(json.dumps(msg["content"].get("data", {}), default=str))
        if self.nb_man.outputs.replace(display_id, size * copies):
            super()._update_display_id(display_id, msg)
            self.nb_man.file.changed.update(places)

    def handle_comm_msg(
        self, outs: list[NotebookNode], msg: dict[str, Any], cell_index: int
    ) -> None:
        content = msg["content"]
        size = utf8_size(json.dumps(content.get("data"), default=str))
        size += sum(len(buffer) for buffer in msg.get("buffers") or ())
        if self.nb_man.outputs.replace(f"comm {content['comm_id']}", size):
            super().handle_comm_msg(outs, msg, cell_index)


def masked(content: dict[str, Any], masker: Masker) -> dict[str, Any]:
    """Mask the content of a message, of which a part in the middle may have been left out."""
    at = content.get("carrel_at")
    found: dict[str, Any] = masker.json(content)  # type: ignore[assignment]  # JSON
    if at and found is not content:
        before = masker.text(content["text"][:at])
        found |= {"text": before + masker.text(content["text"][at:]), "carrel_at": len(before)}
    return found


def text_of_value(answer: Mapping[str, Any]) -> str:
    """Return the value of an expression, as text."""
    return str(ast.literal_eval(answer["data"]["text/plain"]))


def text_for_log(output: NotebookNode) -> str:
    """Return what the log shows of an output other than a stream."""
    if output.output_type == "error":
        return plain("\n".join(output.traceback)) + "\n"
    text = "".join(output.get("data", {}).get("text/plain", ""))
    return f"{text}\n" if text else ""


def _cause(raised: CellExecutionError, cell: NotebookNode) -> CellExecutionError:
    """Return the error in the cell's outputs if the kernel's reply has none.

    IPython replies "NoneType: None" if the ``_repr_html_`` of a result raises.
    """
    if (raised.ename, raised.evalue) != ("NoneType", "None"):
        return raised
    shown = [output for output in cell.outputs if output.output_type == "error"]
    if not shown:
        return raised
    last = shown[-1]
    return CellExecutionError("\n".join(last.traceback), str(last.ename), str(last.evalue))


def _failure(raised: CellExecutionError) -> Mapping[str, Json]:
    return {
        "ename": storable(str(raised.ename))[:200],
        "evalue": storable(str(raised.evalue))[:2000],
        "traceback": plain(str(raised.traceback))[-20_000:],
    }


class CarrelEngine(NBClientEngine):  # type: ignore[misc]  # papermill has no types
    """The engine that executes the cells in the runner."""

    @classmethod
    def execute_notebook(
        cls, nb: NotebookNode, kernel_name: str, *, attempt: NotebookState, **_: object
    ) -> NotebookNode:
        manager = NotebookManager(nb, attempt)
        manager.notebook_start()
        attempt.manager = manager
        attempt.client = NotebookClient(
            manager,
            kernel_name=kernel_name,
            startup_timeout=START_TIMEOUT_SECONDS,
            timeout=None,
            log=logger,
            # A kernel with too much output may drop the message that a cell has ended.
            raise_on_iopub_timeout=False,
        )
        attempt.client.fork_server = attempt.fork_server
        attempt.client.execute()
        return manager.nb


def register() -> None:
    """Register the engine with papermill."""
    papermill_engines.register(ENGINE, CarrelEngine)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
