"""Save a job's work before it is stopped, and find it again.

``carrel.notice()`` and ``carrel.saved()``: be told of a stop, and report that the work is saved.
``carrel.checkpoint()`` and ``carrel.resume_path()``: register a checkpoint, and find it in the next
attempt of the job, or in a job that resumes it. The checkpoint itself stays where the job has
written it, below the home; its path is kept in ``~/.local/share/carrel/checkpoints/REQUEST``.

A job may be preempted: it gets a notice with a grace period, and SIGUSR1 if it handles that signal;
then it is stopped and queued again. Outside of a job there is never a notice.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

REQUEST_VARIABLE = "CARREL_REQUEST"
RESUMES_VARIABLE = "CARREL_RESUMES"
"""The ended job that this one resumes."""
NOTICE_VARIABLE = "CARREL_NOTICE"
SAVED_VARIABLE = "CARREL_SAVED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Why and when this job is stopped.

    Attributes:
        message: the message that its owner reads.
        stops_at: when, in seconds since the epoch.
        comes_back: whether it is queued again afterwards.
    """

    message: str
    stops_at: float
    comes_back: bool


def notice() -> Notice | None:
    """Return the notice to this job; None unless it will be stopped.

    >>> for step in range(steps):
    ...     train(step)
    ...     if carrel.notice():
    ...         save_checkpoint()
    ...         carrel.saved()
    """
    path = os.environ.get(NOTICE_VARIABLE)
    if not path:
        return None
    try:
        found = json.loads(Path(path).read_text())
        return Notice(
            message=str(found["message"]),
            stops_at=float(found["stops_at"]),
            comes_back=bool(found["comes_back"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def saved() -> None:
    """Report that the work is saved: a stop from now on loses only later work.

    Jobs that lose the least are preempted first. From a shell: ``touch "$CARREL_SAVED"``.
    """
    path = os.environ.get(SAVED_VARIABLE)
    if path:
        try:
            Path(path).touch(mode=0o600)
        except OSError:
            return


def checkpoint(path: str | os.PathLike[str]) -> None:
    """Register a checkpoint of this job, a file or a folder below the home.

    Call it after the file is complete; a later call replaces it. Outside of a job nothing happens.

    >>> torch.save(state, "model.pt.part")
    >>> os.replace("model.pt.part", "model.pt")
    >>> carrel.checkpoint("model.pt")

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it does not lie below the home, so that a later attempt would not find it.
    """
    request = os.environ.get(REQUEST_VARIABLE)
    if not request:
        return
    found, home = Path(path).resolve(strict=True), Path.home().resolve()
    if not found.is_relative_to(home):
        raise ValueError(f"{found} does not lie below {home}: later attempts would not find it")
    _register(request, found)
    saved()


def resume_path() -> Path | None:
    """Return the checkpoint of an earlier attempt of this job, or of the job that it resumes.

    None without one: then start from the beginning.

    >>> if path := carrel.resume_path():
    ...     model.load_state_dict(torch.load(path))
    """
    request = os.environ.get(REQUEST_VARIABLE)
    if not request:
        return None
    found = _registered(request)
    if found is not None:
        return found
    resumed = os.environ.get(RESUMES_VARIABLE)
    found = _registered(resumed) if resumed else None
    if found is not None:
        _register(request, found)  # for a job that resumes this one
    return found


def job_folder(name: str) -> Path | None:
    """Return a folder for files that later attempts of this job find, and jobs that resume it.

    None outside of a job.

    Args:
        name: of what is kept there, in lower-case letters.
    """
    request = os.environ.get(REQUEST_VARIABLE)
    if not request:
        return None
    resumed = os.environ.get(RESUMES_VARIABLE)
    found = _registered(f"{request}.{name}")
    if found is None and resumed:
        found = _registered(f"{resumed}.{name}")
    if found is None:
        found = Path.home().resolve() / ".local" / "share" / "carrel" / name / request
        found.mkdir(parents=True, exist_ok=True, mode=0o700)
    _register(f"{request}.{name}", found)
    return found


def _folder() -> Path:
    return Path.home() / ".local" / "share" / "carrel" / "checkpoints"


def _register(request: str, path: Path) -> None:
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{request}.part"
    draft.write_text(str(path.relative_to(Path.home().resolve())), encoding="utf-8")
    draft.replace(folder / request)


def _registered(request: str) -> Path | None:
    try:
        path = Path.home().resolve() / (_folder() / request).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    return path if path.exists() else None
