"""Load pickles of pipelines that are the user's own files.

Loading a pickle executes what it says, so that files of other users are refused.
"""

from __future__ import annotations

import grp
import os
import pickle
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ....hub.errors import Forbidden, InvalidInput, NotFound

SUFFIXES: Final = (".joblib", ".pickle", ".pkl")


def pipelines_in(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield the names and pipelines of a folder, each loaded when it is asked for.

    Raises:
        NotFound: there is no such folder.
        InvalidInput, Forbidden: as ``load_pickle``.
    """
    if not folder.is_dir():
        raise NotFound(f"There is no folder {folder}.", accepted="A folder with pickles.")
    files = sorted(each for each in folder.iterdir() if each.suffix in SUFFIXES)
    names = [each.stem for each in files]
    if not files:
        raise InvalidInput(
            f"{folder} has no pickles.", accepted=f"Files named {', '.join(SUFFIXES)}."
        )
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise InvalidInput(f"{folder} has two pickles named {twice}.", accepted="One of a name.")
    for file in files:
        yield file.stem, load_pickle(file)


def load_pickle(path: Path) -> Any:
    """Return what a pickle of the user's own holds.

    Raises:
        NotFound: there is no such file.
        Forbidden: it or its folder belongs to another user, or others may write to it.
        InvalidInput: it is no pickle, or needs what is missing here.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise NotFound(f"{path} cannot be read: {error.strerror}.") from error
    with file:
        _check_owner(path, os.fstat(file.fileno()), path.resolve().parent.stat())
        try:
            if path.suffix == ".joblib":
                import joblib  # noqa: PLC0415 # comes with scikit-learn

                return joblib.load(file)
            return pickle.load(file)  # noqa: S301 # the user's own file, in the user's process
        except Exception as error:  # unpickling raises errors of many kinds
            line = next(iter(str(error).split("\n")), "")
            reason = f"{type(error).__name__}: {line}".rstrip(": .")
            raise InvalidInput(
                f"{path} cannot be loaded: {reason}.",
                accepted="A pickle of a fitted pipeline, with its modules installed here.",
            ) from error


def _check_owner(path: Path, file: os.stat_result, folder: os.stat_result) -> None:
    if any(about.st_uid not in (os.geteuid(), 0) for about in (file, folder)):
        raise Forbidden(
            f"{path} is not loaded: it or its folder belongs to another user, and loading a pickle "
            "executes what it says.",
            accepted="A pickle of your own in your home.",
        )
    by_group = file.st_mode & stat.S_IWGRP and not _is_private(file.st_gid)
    if file.st_mode & stat.S_IWOTH or by_group:
        raise Forbidden(
            f"{path} is not loaded: other users may write to it, and loading a pickle executes "
            "what it says.",
            accepted=f"A file that only you can write, after: chmod go-w {path}",
        )
    # In a folder with the sticky bit others cannot replace the user's files.
    if folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX:
        raise Forbidden(
            f"{path} is not loaded: all users may write to its folder, and loading a pickle "
            "executes what it says.",
            accepted=f"A folder that only you can write, after: chmod o-w {path.parent}",
        )


def _is_private(group: int) -> bool:
    """Whether a group is the user's own: it has the user's name, and no other members."""
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
        found = grp.getgrgid(group)
    except KeyError:
        return False
    return found.gr_name == user and set(found.gr_mem) <= {user}
