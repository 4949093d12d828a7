"""Probe a notebook: run it with a few settings in processes of their own, and advise on them.

The notebook of a probe job (``carrel advise``) calls ``probe_notebook``. Its runs work in a
copy of the working folder, so that what they write there is dropped.
"""

from __future__ import annotations

import ast
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from ...hub.errors import InvalidInput
from ...hub.insight.probes.advice import ProbeAdvice, ProbeGoal, advise_on, setting_text
from ...hub.insight.probes.search import next_candidate
from ...hub.insight.probes.settings import (
    DIMENSIONS,
    ProbeMeasurement,
    ProbeSetting,
    ProbeSpace,
)
from ...hub.messages import units
from ..runtime.checkpoint import (
    NOTICE_VARIABLE,
    REQUEST_VARIABLE,
    RESUMES_VARIABLE,
    SAVED_VARIABLE,
)
from ..runtime.progress import progress
from . import thread_count
from .advise import LONGEST, SHARE, Advice, checked_budget
from .gain_check import check_gain
from .memory_meter import process_limit, status_bytes
from .notebook_cells import NotebookRun

LARGEST_BATCH: Final = 1 << 20
RESULT: Final = "advice.json"
"""The file of the advice in ``$CARREL_OUTPUT_DIR``."""
OUTPUT_VARIABLE: Final = "CARREL_OUTPUT_DIR"
BATCH_NAMES: Final = ("batch_size", "batch", "batchsize", "minibatch", "minibatch_size")
_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    "precision": ("precision", "dtype"),
    "compiled": ("compile", "compiled"),
    "devices": ("devices", "num_devices", "gpus"),
    "threads": ("threads", "num_threads"),
    "workers": ("workers", "num_workers"),
}
_THREADS_BY_HAND: Final = (
    "The number of threads is no parameter of this notebook: set OMP_NUM_THREADS in its first cell "
    "(import os; os.environ['OMP_NUM_THREADS'] = '1'), before NumPy or PyTorch is imported."
)
_THREAD_VARIABLES: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_OF_THE_JOB: Final = frozenset(
    {REQUEST_VARIABLE, RESUMES_VARIABLE, SAVED_VARIABLE, NOTICE_VARIABLE}
)
"""Without these a run neither resumes from a checkpoint nor registers one."""
_LINE: Final = 78
_MOST_COPIED: Final = 256 << 20
_MOST_FILES: Final = 5_000
_SHOWN: Final = 5
_PAUSE: Final = 0.05
_GRACE: Final = 3.0


def probe_notebook(  # values of the command line
    source: str,
    parameters: Mapping[str, Any],
    *,
    batch_parameter: str = "",
    budget: float = LONGEST,
    whole_budget: bool = False,
    deadline: float = 0,
    memory: int = 0,
    largest: int = LARGEST_BATCH,
) -> Advice:
    """Run a notebook with several settings, and advise on them.

    The advice is also written to ``$CARREL_OUTPUT_DIR/advice.json``.

    Args:
        source: the text of the notebook.
        parameters: values of its parameters, beside those of its own.
        batch_parameter: the parameter that is the batch; by default one of ``BATCH_NAMES``.
        budget: seconds of the probe.
        whole_budget: use all of it, also if that is more than 5 % of the predicted run.
        deadline: seconds in which the run should end; 0 for none.
        memory: bytes that its process may use; 0 for what the machine and its control group leave.
            On a device its own memory is the limit.
        largest: no larger batch is tried or advised, such as the size of the data.

    Raises:
        InvalidInput: the budget, the deadline or the batch is no such number; the notebook has no
            such parameter, or has failed, or neither ends nor reports progress, with its present
            settings; or the working folder is too large to copy.
    """
    with _without_traceback():
        checked_budget(budget)
        if not (math.isfinite(deadline) and deadline >= 0):
            raise InvalidInput(
                f"The deadline {deadline} is not possible.", accepted="Seconds; 0 for none."
            )
        notebook = _Notebook.read(source, parameters)
        names = notebook.names(batch_parameter)
        space = _space(notebook, names, memory, largest)
        notes: list[str] = []
        with tempfile.TemporaryDirectory(prefix="carrel-probe-") as folder:
            runner = _NotebookRunner(notebook=notebook, names=names, folder=Path(folder))
            runner.copy_folder()
            space, measured = _measure(
                space, runner, budget, whole_budget=whole_budget, notes=notes
            )
            notes += runner.written()
        goal = ProbeGoal(unit="run", work=1, deadline_seconds=deadline)
        advice = advise_on(space, measured, goal, notes)
        if not names.get("threads") and advice.fastest.setting.threads != space.start.threads:
            advice = replace(advice, sentences=(*advice.sentences, _THREADS_BY_HAND))
        _keep(advice, names)
        return Advice(advice, measured)


@contextmanager
def _without_traceback() -> Iterator[None]:
    """Let IPython show a refusal without a traceback of our code."""
    try:
        yield
    except InvalidInput as error:
        lines = textwrap.wrap(str(error), _LINE)
        error._render_traceback_ = lambda: lines  # type: ignore[attr-defined]  # of IPython
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class _Notebook:
    """The code of a notebook.

    Attributes:
        cells: sources of its code cells.
        place: number of the first cell after the ``parameters`` cell.
        defaults: the literal values that the ``parameters`` cell assigns.
        given: values that replace them.
    """

    cells: Sequence[str]
    place: int
    defaults: Mapping[str, Any]
    given: Mapping[str, Any]

    @classmethod
    def read(cls, source: str, given: Mapping[str, Any]) -> _Notebook:
        document = json.loads(source)
        metadata = document.get("metadata", {})
        language = metadata.get("language_info", {}).get("name") or metadata.get(
            "kernelspec", {}
        ).get("language", "python")
        if language != "python":
            raise InvalidInput(
                f"A probe runs notebooks in Python only, not in {language}.",
                accepted="carrel advise with a notebook in Python.",
            )
        cells: list[str] = []
        place, defaults = 0, {}
        for cell in document["cells"]:
            if cell["cell_type"] != "code":
                continue
            cells.append("".join(cell["source"]))
            if "parameters" in cell.get("metadata", {}).get("tags", []) and not place:
                place, defaults = len(cells), _assigned(cells[-1])
        return cls(cells=cells, place=place, defaults=defaults, given=given)

    def names(self, batch_parameter: str) -> dict[str, str]:
        """Return the parameter of each dimension that the notebook has."""
        known = {**self.defaults, **self.given}
        if batch_parameter and not isinstance(known.get(batch_parameter), int):
            raise InvalidInput(
                f"The notebook has no parameter {batch_parameter} with a whole number.",
                accepted=f"Its parameters: {', '.join(known) or 'none'}.",
            )
        batch = batch_parameter or next(
            (name for name in BATCH_NAMES if type(known.get(name)) is int), ""
        )
        kinds = {"precision": str, "compiled": bool}
        found = {
            dimension: name
            for dimension, choices in _PARAMETERS.items()
            for name in choices
            if type(known.get(name)) is kinds.get(dimension, int)
        }
        return found | ({"batch": batch} if batch else {})

    def value(self, name: str) -> Any:
        return self.given.get(name, self.defaults.get(name))

    def sources(self, values: Mapping[str, Any]) -> list[str]:
        """Return the cells, with the given parameters assigned where papermill would."""
        lines = [f"{name} = {value!r}" for name, value in {**self.given, **values}.items()]
        return [*self.cells[: self.place], "\n".join(lines), *self.cells[self.place :]]


def _assigned(source: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with suppress(SyntaxError):
        for node in ast.parse(source).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            if isinstance(node, ast.AnnAssign):
                targets = [node.target]
            value = getattr(node, "value", None)
            for target in targets:
                if isinstance(target, ast.Name) and value is not None:
                    with suppress(ValueError, TypeError, SyntaxError, MemoryError):
                        found[target.id] = ast.literal_eval(value)
    return found


def _space(notebook: _Notebook, names: Mapping[str, str], memory: int, largest: int) -> ProbeSpace:
    choices: dict[str, tuple[Any, ...]] = {}
    held = len([name for name in os.environ.get("CARREL_DEVICES", "").split(",") if name.strip()])
    usual: dict[str, tuple[Any, ...]] = {
        "precision": ("float32", "bfloat16"),
        "compiled": (False, True),
        "devices": tuple(1 << power for power in range(held.bit_length()) if 1 << power <= held),
        "threads": tuple(sorted({1, thread_count.processors()})),
        "workers": (0, 2, thread_count.processors()),
    }
    for name in DIMENSIONS:
        if name in names:
            choices[name] = tuple(dict.fromkeys((notebook.value(names[name]), *usual[name])))
    if "threads" not in choices and not held:
        choices["threads"] = tuple(reversed(usual["threads"]))
    start: dict[str, Any] = {name: values[0] for name, values in choices.items()}
    if "batch" in names:
        start["batch"] = notebook.value(names["batch"])
        if not 1 <= start["batch"] <= largest:
            raise InvalidInput(
                f"The parameter {names['batch']} is {start['batch']}: no run has such a batch.",
                accepted=f"A batch of 1 to {largest:,}.",
            )
    varied: dict[str, Any] = {name: values for name, values in choices.items() if len(values) > 1}
    limit = process_limit() - status_bytes("self", "VmRSS")
    return ProbeSpace(
        start=ProbeSetting(**start),
        largest=largest,
        memory_limit=min(memory, limit) if memory and limit > 0 else max(memory, limit),
        whole_runs=True,
        **varied,
    )


@dataclass(slots=True, kw_only=True)
class _NotebookRunner:
    """Runs the notebook with a setting in a process of its own, in a copy of the folder.

    Attributes:
        memory_kind, memory_limit: those of the first run.
        has_progress: whether the first run has called ``carrel.progress``.
    """

    notebook: _Notebook
    names: Mapping[str, str]
    folder: Path
    before: set[str] = field(default_factory=set)
    memory_kind: str = ""
    memory_limit: int = 0
    has_progress: bool = False

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def copy_folder(self) -> None:
        """Copy the working folder; of a home, without its hidden entries.

        Raises:
            InvalidInput: it is too large to copy.
        """
        here = Path.cwd()
        hidden = {name for name in os.listdir(here) if name.startswith(".")}
        left_out = hidden if here == Path.home().resolve() else set()
        size = count = 0
        for folder, folders, files in os.walk(here):
            for names in (folders, files) if folder == str(here) else ():
                names[:] = [name for name in names if name not in left_out]
            count += len(folders) + len(files)
            for name in files:
                with suppress(OSError):
                    size += os.lstat(Path(folder, name)).st_size
            if size > _MOST_COPIED or count > _MOST_FILES:
                raise InvalidInput(
                    f"The working folder {here} is too large: a probe runs the notebook in a copy.",
                    accepted=f"A working folder of at most {units.size(_MOST_COPIED)} and "
                    f"{_MOST_FILES:,} files. Move the notebook into one of its own; larger data "
                    "may lie elsewhere, also behind a symbolic link in it.",
                )
        shutil.copytree(
            here,
            self.work,
            symlinks=True,
            ignore=lambda folder, _: left_out if folder == str(here) else set(),
        )
        self._correct_links(here)
        self.before = self._entries()

    def _correct_links(self, here: Path) -> None:
        """Let links within the copied folder lead into the copy, and others to where they led."""
        for folder, folders, files in os.walk(self.work):
            for link in (Path(folder, name) for name in (*folders, *files)):
                if not link.is_symlink():
                    continue
                with suppress(OSError, RuntimeError):  # links in a circle
                    target = (here / link.relative_to(self.work)).resolve()
                    copied = self.work / os.path.relpath(target, here)
                    inside = target.is_relative_to(here) and copied.exists()
                    link.unlink()
                    link.symlink_to(copied if inside else target)

    def written(self) -> Iterator[str]:
        new = sorted(self._entries() - self.before)
        if new:
            more = f" and {len(new) - _SHOWN} more" if len(new) > _SHOWN else ""
            yield (
                f"The runs of the probe wrote {', '.join(new[:_SHOWN])}{more}, into a copy of the "
                "working folder that is now deleted."
            )

    def _entries(self) -> set[str]:
        return {path.name for path in self.work.iterdir() if path.name != "__pycache__"}

    def measure(self, setting: ProbeSetting, seconds: float) -> ProbeMeasurement:
        start = time.monotonic()
        run, killed = self._run(setting, seconds)
        whole = run.whole_seconds()
        if not self.memory_kind:
            self.memory_kind, self.memory_limit = run.memory_kind, run.memory_limit
            self.has_progress = bool(run.marks)
        problem = units.complete_sentence(run.problem) if run.problem else ""
        if not problem and run.ended and self.has_progress and not run.marks:
            problem = (
                "it ended without a call of carrel.progress, and may have trained nothing: the "
                "batch can be larger than the data."
            )
        if not problem and not whole:
            within = units.duration(max(1.0, seconds))
            problem = (
                f"its process was ended by signal {killed}."
                if killed
                else f"it neither ended nor called carrel.progress(i, n) several times in {within}."
            )
        return ProbeMeasurement(
            setting=setting,
            rate=0.0 if problem else 1 / whole,
            memory_bytes=run.memory_bytes if run.memory_kind == self.memory_kind else 0,
            seconds=time.monotonic() - start,
            unit_seconds=run.unit_seconds(),
            problem=problem,
            out_of_memory=run.out_of_memory or killed == signal.SIGKILL,
        )

    def _run(self, setting: ProbeSetting, seconds: float) -> tuple[NotebookRun, int]:
        """Return what was seen, and the signal that ended the process if it was not ours."""
        order, result = self.folder / "order.json", self.folder / "result.json"
        sources = self.notebook.sources(_parameters(setting, self.names))
        order.write_text(json.dumps(sources), encoding="utf-8")
        result.unlink(missing_ok=True)
        outputs = self.folder / "outputs"
        shutil.rmtree(outputs, ignore_errors=True)
        outputs.mkdir()
        environment = {
            **{name: value for name, value in os.environ.items() if name not in _OF_THE_JOB},
            "MPLBACKEND": "agg",
            OUTPUT_VARIABLE: str(outputs),
            "CARREL_PROGRESS": "",
            "CARREL_REPORTS": "",
            "CARREL_TRIAL_REPORTS": "",
        }
        if setting.threads is not None:
            environment |= dict.fromkeys(_THREAD_VARIABLES, str(setting.threads))
        module = "carrel.extensions.advice.notebook_cells"
        process = subprocess.Popen(  # our own module
            [sys.executable, "-P", "-m", module, str(order), str(result)],
            cwd=self.work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        stopped = False
        peak = 0
        end = time.monotonic() + seconds
        try:
            while process.poll() is None:
                peak = max(peak, status_bytes(str(process.pid), "VmHWM"))
                if time.monotonic() > end + (_GRACE if stopped else 0):
                    os.killpg(process.pid, signal.SIGKILL if stopped else signal.SIGTERM)
                    if stopped:
                        process.wait()
                        break
                    stopped = True
                time.sleep(_PAUSE)
        finally:
            with suppress(ProcessLookupError):  # also what it has started
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        found = NotebookRun(memory_bytes=peak)
        with suppress(OSError, ValueError, TypeError):
            found = NotebookRun(**json.loads(result.read_text(encoding="utf-8")))
            found.marks = [(at, done) for at, done in found.marks]
        return found, 0 if stopped else max(0, -(process.returncode or 0))


def _measure(
    space: ProbeSpace,
    runner: _NotebookRunner,
    budget: float,
    *,
    whole_budget: bool,
    notes: list[str],
) -> tuple[ProbeSpace, list[ProbeMeasurement]]:
    """Return the space, with the limit of the memory that the runs use, and what was measured."""
    measured: list[ProbeMeasurement] = []
    start, allowed = time.monotonic(), budget
    while True:
        left = allowed - (time.monotonic() - start)
        candidate = next_candidate(space, measured, left)
        if candidate is None:
            return space, measured
        text = f"seconds of the probe, which measures {setting_text(candidate.setting)}"
        progress(round(time.monotonic() - start), round(allowed), text)
        found = runner.measure(candidate.setting, left)
        measured.append(found)

        def seconds_left(end: float = start + allowed) -> float:
            return end - time.monotonic()

        def again(
            setting: ProbeSetting, seconds_left: Callable[[], float] = seconds_left
        ) -> ProbeMeasurement:
            return runner.measure(setting, seconds_left())

        doubt = check_gain(measured, again, seconds_left)
        notes += [doubt] if doubt else []
        if len(measured) > 1:
            continue
        if found.problem:
            raise InvalidInput(
                f"The notebook failed with {setting_text(found.setting)}: {found.problem}",
                accepted="A notebook that runs, and calls carrel.progress(i, n) in its training "
                "loop if it takes long.",
            )
        if runner.memory_kind == "device":
            space = replace(space, memory_limit=runner.memory_limit)
        share = SHARE / found.rate
        if not whole_budget and share < budget:
            allowed = share
            if share < 2 * found.seconds:
                notes.append(
                    f"The probe ended after 5 % of the predicted run ({units.duration(share)}); "
                    "more is measured with a budget, as in: carrel advise --budget 2m."
                )


def _parameters(setting: ProbeSetting, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of the notebook's parameters with a setting."""
    return {
        name: setting.batch if dimension == "batch" else setting.choice(dimension)
        for dimension, name in names.items()
    }


def _keep(found: ProbeAdvice, names: Mapping[str, str]) -> None:
    """Write the advice for a job, with the parameters of its fastest run."""
    folder = os.environ.get(OUTPUT_VARIABLE)
    if folder:
        kept = found.as_json() | {
            "parameters": _parameters(found.fastest.setting, names),
            "run_seconds": 1 / found.fastest.rate,
        }
        text = json.dumps(kept, indent=2) + "\n"
        (Path(folder) / RESULT).write_text(text, encoding="utf-8")
