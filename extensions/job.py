"""Jobs from Python: ``carrel.submit``, ``carrel.run``, ``carrel.jobs`` and the ``Job``.

A session needs no configuration; on other computers ``carrel login`` signs in. Programs with their
own event loop use ``carrel.hub.client.AsyncClient``, on which this builds.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import JsonValue

from ..hub.client import (
    Client,
    Credentials,
    current_credentials,
    job_builder,
    pipeline_file,
    roles_file,
    session_home,
)
from ..hub.client.job_watch import follow_all
from ..hub.client.pipeline import submit_pipeline
from ..hub.client.work_archive import safe_target
from ..hub.comparison.schemas import (
    ABSOLUTE,
    RELATIVE,
    ComparisonIn,
    ComparisonOut,
    Part,
    RunIn,
    ToleranceIn,
)
from ..hub.errors import InvalidInput
from ..hub.provenance.canonical_json import parse_object
from ..hub.provenance.crate import read_receipt
from ..hub.provenance.receipt import JobReceiptOut
from ..hub.records.dependencies import ResultReference
from ..hub.schemas import (
    CauseOut,
    EventOut,
    FileOut,
    GangMemberOut,
    ProgressOut,
    RequestOut,
    UtilizationOut,
    parsers,
)
from ..hub.schemas.resume import ResumeIn
from ..hub.schemas.sweeps import SharingOut
from .job_text import facts, row, status_line
from .trial_frame import trial_frame, trial_rows

if TYPE_CHECKING:
    import pandas
    from nbformat import NotebookNode


def submit(
    notebook: str | Path,
    parameters: Mapping[str, JsonValue | JobResult] | None = None,
    *,
    devices: int = 0,
    model: str | None = None,
    time: str | int = "1h",
    group: str | None = None,
    memory: str | int | None = None,
    retries: int | None = None,
    priority: Literal["opportunistic", "normal", "urgent"] = "normal",
    preemptible: bool = True,
    deadline: float | None = None,
    after: Iterable[str | Job] = (),
    labels: Mapping[str, str] | None = None,
    kernel: str = "",
    image: str = "",
    internet: bool = True,
    output: str = "",
    inputs: Iterable[str | Path] = (),
    upload: bool = False,
    workdir: str | None = None,
    secrets: Iterable[str] = (),
    continuation: str = "",
    sweep: Mapping[str, object] | None = None,
    site: str | None = None,
) -> Job:
    """Run a notebook or a Python script as a job; it continues when this kernel ends.

    >>> job = carrel.submit("train.ipynb", {"lr": 0.05}, devices=1, time="30m")
    >>> job.wait().state
    'succeeded'

    Args:
        notebook: path of the file (.ipynb or .py), which is sent as it is saved now.
        parameters: values for its cell that is tagged ``parameters``; ``job.result("best.lr")``
            is a value of a job in ``after``, once that has ended.
        devices: whole devices (GPUs); 0 for a job on CPU.
        model: only devices of this model, as `carrel pool` lists it; None for any.
        time: time limit, as ``"30m"``, ``"2h"`` or in seconds.
        group: the group to charge (optional if you are in one group).
        memory: limit over all its processes, as ``"8GiB"`` or in bytes.
        retries: how often it is tried again after a transient error or a lost process; None: 0 and
            3 times; 0: it never runs twice.
        priority: ``"opportunistic"`` runs last and is preempted first; ``"urgent"`` is for teachers
            and administrators.
        preemptible: whether it may be preempted for another group's guaranteed quota; it is queued
            again.
        deadline: when it should have ended, in seconds since the epoch.
        after: jobs, or their ids, that must have succeeded before it starts; ``"ID:any"`` for one
            that must have ended. Until then it holds nothing.
        labels: names and values of your own, to find it by.
        kernel: the kernel to use instead of the notebook's own.
        image: the image to run in, ``"torch"`` or ``"torch@sha256:…"``; `carrel images` lists them.
        internet: False lets it reach only this site's service, if jobs run in containers.
        output: file name of the executed notebook.
        inputs: files that are copied into the job's working folder.
        upload: upload the notebook's folder, without what ``.carrelignore`` lists.
        workdir: working folder of the job, below your home there.
        secrets: names of secrets that it uses, as ``"HF_TOKEN"`` for the file
            ``$CARREL_SECRETS/HF_TOKEN`` or ``"HF_TOKEN:env"`` for the environment variable.
        continuation: name of a state that this session has saved; *Continue as a job* uses it.
        sweep: the trials of a sweep, as ``carrel.sweep`` passes them on.
        site: another site than the default one.

    Raises:
        carrel.hub.errors.CarrelError: one of its classes, with a message that says why.
    """
    path, given = Path(notebook).expanduser(), parameters or {}
    results = {name: str(value) for name, value in given.items() if isinstance(value, JobResult)}
    what: dict[str, object] = {
        "notebook": parsers.notebook(path),
        "parameters": {
            name: value for name, value in given.items() if not isinstance(value, JobResult)
        },
        "kernel": kernel,
        "image": image,
        "internet": internet,
        "output": output,
    }
    if results:
        what["results"] = results
    if continuation:
        what["continuation"] = continuation
    if sweep is not None:
        what["sweep"] = dict(sweep)
    place = _working_folder(path.parent, inputs, site, upload=upload, workdir=workdir, needed=False)
    limits = _limits(devices, model, span=time, memory=memory, retries=retries, labels=labels)
    limits |= _secrets(secrets)
    limits |= {"priority": priority, "preemptible": preemptible, "deadline": deadline}
    limits["after"] = [each if isinstance(each, str) else each.id for each in after]
    return _send(what | limits | dict(place.fields), group, site)


def run(
    command: Sequence[str],
    *,
    devices: int = 0,
    model: str | None = None,
    time: str | int = "1h",
    group: str | None = None,
    memory: str | int | None = None,
    retries: int | None = None,
    priority: Literal["opportunistic", "normal", "urgent"] = "normal",
    preemptible: bool = True,
    deadline: float | None = None,
    after: Iterable[str | Job] = (),
    labels: Mapping[str, str] | None = None,
    image: str = "",
    internet: bool = True,
    inputs: Iterable[str | Path] = (),
    upload: bool = False,
    workdir: str | None = None,
    secrets: Iterable[str] = (),
    nodes: int | None = None,
    roles: str | Path | None = None,
    site: str | None = None,
) -> Job:
    """Run a program with its arguments as a job, without a shell, in the current folder.

    The other arguments are those of ``submit``.

    >>> job = carrel.run(["python", "train.py", "--lr", "0.1"], devices=1)
    >>> job = carrel.run(["torchrun", "train.py"], nodes=2, devices=4)

    Args:
        nodes: run the command this many times together, each with ``devices`` devices; the members
            find each other by RANK, MASTER_ADDR and other variables, which torchrun also reads.
        roles: a TOML file with roles, as for `carrel run --roles`, instead of a command.
    """
    if isinstance(command, str):
        raise InvalidInput(
            "A command must be a list of a program and its arguments.",
            accepted='For a shell command use carrel.run(["bash", "-c", COMMAND]).',
        )
    place = _working_folder(Path(), inputs, site, upload=upload, workdir=workdir, needed=True)
    limits = _limits(devices, model, span=time, memory=memory, retries=retries, labels=labels)
    limits |= _secrets(secrets)
    limits |= {"priority": priority, "preemptible": preemptible, "deadline": deadline}
    limits["after"] = [each if isinstance(each, str) else each.id for each in after]
    what: dict[str, object] = {
        "command": [str(word) for word in command],
        "image": image,
        "internet": internet,
    }
    if roles is not None:
        if command or nodes is not None or devices or image:
            raise InvalidInput(
                "The roles in the file have their commands, members, devices and images.",
                accepted="carrel.run([], roles=FILE), or a command without roles.",
            )
        what = {"internet": internet} | roles_file.read(Path(roles))
    fields = what | limits | dict(place.fields)
    return _send(fields if nodes is None else roles_file.of_nodes(nodes, fields), group, site)


def pipeline(
    file: str | Path, *, group: str | None = None, site: str | None = None
) -> dict[str, Job]:
    """Submit the jobs of a TOML file, of which some wait for others, as `carrel pipeline` does.

    >>> study = carrel.pipeline("study.toml")
    >>> study["report"].wait().state
    'succeeded'

    Returns:
        the jobs by their names in the file, each after those that it waits for.

    Raises:
        carrel.hub.errors.CarrelError: the file is wrong, or a job was refused; none is left then.
    """
    found = pipeline_file.read(Path(file).expanduser())
    client = client_of(site)
    charged = group or job_builder.only_group(client, "group=")
    made = submit_pipeline(client, found, group=charged, home=session_home(site))
    return {name: Job(client, request) for name, request in made.items()}


def jobs(
    *,
    states: Iterable[str] = (),
    labels: Mapping[str, str] | None = None,
    limit: int | None = 100,
    site: str | None = None,
) -> JobList:
    """Return your jobs, newest first, in any of these states and with all of these labels.

    >>> for job in carrel.jobs(labels={"sweep": "7"}, states=["running"]):
    ...     job.cancel()
    """
    client = client_of(site)
    found = client.requests(kind="job", states=states, labels=labels, limit=limit)
    return JobList(Job(client, request) for request in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFile:
    """A file that a job has written to ``$CARREL_OUTPUT_DIR``."""

    name: str
    size_bytes: int
    request_id: str
    client: Client = field(repr=False, compare=False)

    def read(self) -> bytes:
        """Return the whole content."""
        return b"".join(self.client.file(self.request_id, self.name))

    def save(self, folder: str | Path = ".") -> Path:
        """Save it below a folder under its own name; an older file there is replaced.

        Raises:
            InvalidInput: the name leads outside the folder.
        """
        path = safe_target(Path(folder), self.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            for part in self.client.file(self.request_id, self.name):
                file.write(part)
        return path


@dataclass(frozen=True, slots=True)
class JobResult:
    """A value that a job will have given when it has ended, as a parameter of a later job."""

    job_id: str
    value: str

    def __str__(self) -> str:
        return f"{self.job_id}.{self.value}"


class Job:
    """A job of yours; its attributes are fetched from the service until it has ended."""

    def __init__(self, client: Client, request: RequestOut) -> None:
        """Use ``carrel.submit``, ``carrel.jobs`` or ``Job.find`` to get a job."""
        self.client = client
        self._request = request

    @classmethod
    def find(cls, job_id: str, *, site: str | None = None) -> Self:
        """Return the job with this id (``j-…``).

        Raises:
            NotFound: there is none, or you may not see it.
        """
        client = client_of(site)
        return cls(client, client.request(job_id))

    @property
    def id(self) -> str:
        return self._request.id

    @property
    def request(self) -> RequestOut:
        """Everything that the service knows about it now."""
        if not self._request.ended:
            self._request = self.client.request(self.id)
        return self._request

    @property
    def state(self) -> str:
        """``queued``, ``running``, ``succeeded``, ``failed``, …"""
        return self.request.state

    @property
    def ended(self) -> bool:
        return self.request.ended

    @property
    def cause(self) -> CauseOut | None:
        """Why it ended (``code``, ``message``, ``details``); None until it has ended."""
        return self.request.cause

    @property
    def progress(self) -> ProgressOut | None:
        return self.request.progress

    @property
    def utilization(self) -> UtilizationOut | None:
        """What its newest attempt has used so far: peak memory, mean CPU and device use.

        None before it was measured. ``client.utilization(job.id)`` returns the values over time.
        """
        return self.request.utilization

    @property
    def members(self) -> list[GangMemberOut]:
        """Its members by rank, with state, node and devices; empty for a job of one member."""
        return self.request.lease.members if self.request.lease else []

    def wait(self, timeout: float | None = None) -> Self:
        """Return when the job has ended; ``state`` and ``cause`` tell how.

        Raises:
            TimeoutError: it has not ended after ``timeout`` seconds.
        """
        for change in follow_all(self.client, [self.id], timeout):
            if isinstance(change.item, RequestOut):
                self._request = change.item
        if not self._request.ended:
            raise TimeoutError(f"{self.id} has not ended within {timeout} seconds.")
        return self

    def events(self, after: int = 0) -> Iterator[EventOut]:
        """Yield its events from the beginning, then new ones, until it has ended.

        ``after`` is the id of the last known event.
        """
        for item in self.client.follow(self.id, after):
            if isinstance(item, RequestOut):
                self._request = item
            else:
                yield item

    def log(self, member: int = 0) -> str:
        """Return its output so far, or that of one of several members, by rank."""
        parts = self.client.whole_log(self.id, member=member)
        return b"".join(parts).decode("utf-8", "replace")

    def output(self) -> NotebookNode:
        """Return the executed notebook, as far as it is while the job runs.

        Raises:
            NotFound: there is none yet, or the job is a command.
        """
        import nbformat  # noqa: PLC0415  # comes with Jupyter; not needed elsewhere

        found = self.client.output(self.id)
        node: NotebookNode = nbformat.reads(  # type: ignore[no-untyped-call]
            found.content.decode("utf-8-sig"), as_version=4
        )
        return node

    def receipt(self) -> JobReceiptOut:
        """Return the receipt of the ended job: what ran, on what, when, and at what cost.

        ``carrel receipt`` writes it to a file, with its signature.

        Raises:
            Conflict: the job has not ended.
        """
        return read_receipt(parse_object(self.client.receipt(self.id), "The receipt"))

    def files(self) -> list[JobFile]:
        """Return the files that it has written to ``$CARREL_OUTPUT_DIR``."""
        return [self._file(each) for each in self.client.files(self.id).files]

    def result(self, value: str) -> JobResult:
        """Return a value of this job as a parameter of a later one; the service fills it in.

        >>> rate = study.result("best.lr")
        >>> carrel.submit("test.ipynb", {"lr": rate}, after=[study])

        Args:
            value: ``"report.NAME"`` for the last value that it has reported as NAME (of a sweep,
                by its best trial), ``"best.NAME"`` for a parameter of the best trial of a sweep,
                ``"trial"`` for its number, or ``"id"``.

        Raises:
            InvalidInput: the value is none of these.
        """
        return JobResult(self.id, ResultReference.of(self.id, value).value)

    def reports(self, *, trial: int = 0, points: int = 500) -> dict[str, dict[int, float | None]]:
        """Return what the job, or a trial of a sweep, has reported by ``carrel.report``.

        >>> pandas.DataFrame(job.reports()).plot()

        Returns:
            by name the values by step, thinned out to ``points``; None for what is no number.
        """
        return {
            each.name: dict(zip(each.steps, each.values, strict=True))
            for each in self.client.reports(self.id, trial=trial, points=points).reports
        }

    def trials(self) -> list[dict[str, Any]]:
        """Return the trials of a sweep, one dictionary each; ``frame`` returns a table.

        The keys are ``trial``, the parameters, ``state``, ``seconds``, the reported values, and
        ``message``.

        Raises:
            NotFound: the job is no sweep.
        """
        return trial_rows(self.client.trials(self.id))

    def frame(self) -> pandas.DataFrame:
        """Return the trials of a sweep as a table, one line each, by number.

        The columns are the parameters, ``state``, ``seconds``, the reported values, and
        ``message``; ``carrel.SweepView(job)`` shows them live.

        Raises:
            NotFound: the job is no sweep.
            ModuleNotFoundError: pandas is not installed.
        """
        return trial_frame(self.client.trials(self.id))

    def sharing(self) -> SharingOut:
        """Return what the trials of a sweep share; ``print`` shows it as ``--explain`` does.

        Raises:
            NotFound: the job is no sweep.
        """
        return self.client.sharing(self.id)

    def cancel(self) -> Self:
        """Cancel the job; what it has computed so far is kept. Returns at once."""
        self._request = self.client.cancel(self.id)
        return self

    def halt(self) -> Self:
        """Let the job save its work, and stop it; ``resume`` goes on from there. Returns at once.

        Raises:
            Conflict: this job does not run.
        """
        self._request = self.client.halt(self.id)
        return self

    def resume(self, *, from_cell: int | None = None, notebook: str | Path | None = None) -> Job:
        """Submit a job that goes on after the last cell whose variables were saved.

        Args:
            from_cell: number of the first code cell to execute.
            notebook: path of an edited notebook. If a cell before the first one to execute was
                changed, all cells are executed, unless ``from_cell`` is given.

        Raises:
            Conflict: this job has not ended, or has succeeded.
        """
        content = None if notebook is None else parsers.notebook(Path(notebook)).content
        how = ResumeIn(from_cell=from_cell, notebook=content)
        made = self.client.resume(self.id, how)
        assert made.request is not None
        return Job(self.client, made.request)

    def diff(
        self,
        other: str | Path | Job,
        *,
        relative: float = RELATIVE,
        absolute: float = ABSOLUTE,
        ignore: Sequence[Part] = (),
    ) -> ComparisonOut:
        """Compare this job with another one, or with an executed notebook: see ``diff``."""
        wanted = ComparisonIn(
            a=_compared(self),
            b=_compared(other),
            tolerance=ToleranceIn(relative=relative, absolute=absolute),
            ignore=list(ignore),
        )
        return self.client.compare(wanted)

    def _file(self, file: FileOut) -> JobFile:
        return JobFile(name=file.name, size_bytes=file.size, request_id=self.id, client=self.client)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and (self.client.site, self.id) == (
            other.client.site,
            other.id,
        )

    def __hash__(self) -> int:
        return hash((self.client.site, self.id))

    def __repr__(self) -> str:
        return f"<Job {self.id}: {status_line(self._request)}>"

    def _repr_html_(self) -> str:
        request = self.request
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
            for name, text in facts(request)
            if text
        )
        return f"<table>{rows}</table>"


def diff(
    a: str | Path | Job,
    b: str | Path | Job,
    *,
    relative: float = RELATIVE,
    absolute: float = ABSOLUTE,
    ignore: Sequence[Part] = (),
    site: str | None = None,
) -> ComparisonOut:
    """Compare two runs: sources by lines, numbers under a tolerance, images by pixels.

    >>> carrel.diff("j-7k2m4qpz", "j-9x3w5rtn", relative=1e-3).equal
    True

    Args:
        a: a job, its id, or the path of an executed notebook (a ``Path``, or text that ends with
            ``.ipynb``).
        b: the run to compare it with.
        relative: numbers are equal if they differ by at most this part of the larger one.
        absolute: or by at most this number.
        ignore: parts whose differences do not count: ``"sources"``, ``"outputs"``,
            ``"parameters"``, ``"environment"``.
        site: another site than the default one.

    Raises:
        Conflict: a job has not ended.
        NotFound: a job does not exist, or you may not see it.
    """
    wanted = ComparisonIn(
        a=_compared(a),
        b=_compared(b),
        tolerance=ToleranceIn(relative=relative, absolute=absolute),
        ignore=list(ignore),
    )
    return client_of(site).compare(wanted)


def _compared(run: str | Path | Job) -> RunIn:
    if isinstance(run, Job):
        return RunIn(request=run.id)
    if isinstance(run, str) and not run.endswith(".ipynb"):
        return RunIn(request=run)
    found = parsers.notebook(Path(run).expanduser())
    return RunIn(notebook=found.content, name=found.name)


class JobList(list[Job]):
    """A list of jobs, shown as a table in a notebook."""

    def _repr_html_(self) -> str:
        if not self:
            return "<p>No jobs.</p>"
        head = "".join(f"<th>{name}</th>" for name in ("Job", "State", "What", "Labels"))
        rows = "".join(
            "<tr>"
            + "".join(
                f"<td style='text-align:left'>{html.escape(text)}</td>"
                for text in row(job._request)
            )
            + "</tr>"
            for job in self
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def client_of(site: str | None = None) -> Client:
    """Return the client that all jobs of this program share; a new sign-in creates a new one."""
    return _client(current_credentials(site))


@cache
def _client(credentials: Credentials) -> Client:
    return Client(credentials.url, credentials.token)


def _working_folder(
    here: Path,
    inputs: Iterable[str | Path],
    site: str | None,
    *,
    upload: bool,
    workdir: str | None,
    needed: bool,
) -> job_builder.WorkingFolder:
    return job_builder.working_folder(
        here,
        home=session_home(site),
        upload=upload,
        inputs=[Path(each).expanduser() for each in inputs],
        workdir=workdir,
        needed=needed,
    )


def _limits(
    devices: int,
    model: str | None,
    *,
    span: str | int,
    memory: str | int | None,
    retries: int | None,
    labels: Mapping[str, str] | None,
) -> dict[str, object]:
    found: dict[str, object] = {
        "devices": devices,
        "seconds": parsers.seconds(span) if isinstance(span, str) else span,
        "labels": {str(key): str(value) for key, value in (labels or {}).items()},
    }
    if model is not None:
        found["model"] = model
    if memory is not None:
        found["memory_bytes"] = parsers.memory_bytes(memory) if isinstance(memory, str) else memory
    if retries is not None:
        found["retries"] = retries
    return found


def _secrets(names: Iterable[str]) -> dict[str, object]:
    """Return the field; none without secrets, which an older service does not know."""
    found = [names] if isinstance(names, str) else list(names)
    return {"secrets": found} if found else {}


def _send(fields: dict[str, object], group: str | None, site: str | None) -> Job:
    client = client_of(site)
    fields["group"] = group or job_builder.only_group(client, "group=")
    return Job(client, client.submit(job_builder.job(fields, maker="py")))
