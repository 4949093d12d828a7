"""Fetch the newest files of a branch with git, without a checkout.

git writes one pack of the newest commit into a temporary folder, and the files are read out of it:
no hook and no filter runs, nothing is linked, and no name of the repository reaches the disk here.
Only http and https are spoken, redirects are not followed, and no password is asked for. Size and
time are limited; git and its children are killed after that.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Final

from ...hub.errors import CarrelError, InvalidInput, NotFound, TooLarge, Unavailable
from .fetched_files import MAX_BYTES, MAX_FILES, FetchedFiles, is_usable_path

FETCH_SECONDS: Final = 120.0
_OPTIONS: Final = (
    "protocol.allow=never",
    "protocol.http.allow=always",
    "protocol.https.allow=always",
    "http.followRedirects=false",
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=30",
    "credential.helper=",
    "core.hooksPath=/dev/null",
    "core.bigFileThreshold=16m",
    "fetch.unpackLimit=1",  # always one pack, whose size is limited
    "gc.auto=0",
)
_ENVIRONMENT: Final = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "GIT_LFS_SKIP_SMUDGE": "1",
}
_KEPT: Final = re.compile(r"PATH|LANG|TMPDIR|SSL_CERT_\w+|GIT_SSL_\w+|(?i:\w+_proxy)")
"""Variables that git keeps: where its programs, certificates and proxies are."""
_READING: Final = 'ulimit -f "$0" && exec git "$@"'
"""The shell limits the size of files for git and its children before they start."""
_FETCHING: Final = f"trap '' XFSZ && {_READING}"
"""Without the signal, git says that the file is too large instead of ending without a reason."""
_BLOCK: Final = 512
_MARGIN: Final = 1 << 20
"""For what git writes beside the contents of files."""
_MOST_ERRORS: Final = 1 << 16
_LINK, _SUBMODULE, _PROGRAM = "120000", "160000", "100755"
_FILES: Final = frozenset({"100644", "100664", _PROGRAM})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    mode: str
    object_id: str
    size: int
    path: str


def fetch_repository(
    url: str, branch: str, *, seconds: float = FETCH_SECONDS, most_bytes: int = MAX_BYTES
) -> FetchedFiles:
    """Return the files of the newest commit of a branch or tag; of the default one if empty.

    Raises:
        NotFound: there is no such repository or branch, or it is not public.
        TooLarge: it has more than ``most_bytes`` or ``MAX_FILES``.
        Unavailable: the address does not answer, or not in ``seconds``, or git is not installed.
        InvalidInput: git cannot fetch it for another reason, which the error says.
    """
    with TemporaryDirectory(prefix="carrel-open-") as folder:
        git = _Git(
            folder=Path(folder) / "repository.git", url=url, seconds=seconds, most_bytes=most_bytes
        )
        chosen = ("--branch", branch) if branch else ()
        limits = ("--depth=1", "--single-branch", "--no-tags", "--no-recurse-submodules")
        git.run("clone", "--bare", "--quiet", "--template=", *limits, *chosen, "--", url, git.path)
        commit = git.commit()
        branch = branch or git.default_branch()
        usable, left_out = _sorted_out(git.entries(commit))
        git.check_size(usable)
        contents = git.contents(each.object_id for each in usable)
        return FetchedFiles(
            version=commit,
            branch=branch,
            files={each.path: next(contents) for each in usable},
            executable=frozenset(each.path for each in usable if each.mode == _PROGRAM),
            left_out=left_out,
        )


def _sorted_out(entries: Sequence[_Entry]) -> tuple[list[_Entry], tuple[str, ...]]:
    """Separate plain files from what is left out."""
    usable = [each for each in entries if each.mode in _FILES and is_usable_path(each.path)]
    kept = {each.path for each in usable}
    return usable, tuple(each.path for each in entries if each.path not in kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Git:
    """Runs git in one repository, with limits.

    Attributes:
        seconds: for each command.
        most_bytes: of each file that git writes, and of all files of a commit.
    """

    folder: Path
    url: str
    seconds: float
    most_bytes: int

    @property
    def path(self) -> str:
        return str(self.folder)

    def run(self, *arguments: str, given: bytes = b"") -> bytes:
        """Run a command of git; return its output. Raises as ``fetch_repository``."""
        blocks = str((self.most_bytes + _MARGIN) // _BLOCK)
        limited = ["sh", "-c", _FETCHING if arguments[0] == "clone" else _READING, blocks]
        options = [part for option in _OPTIONS for part in ("-c", option)]
        with TemporaryFile() as wanted, TemporaryFile() as output, TemporaryFile() as errors:
            wanted.write(given)
            wanted.seek(0)
            process = subprocess.Popen(
                [*limited, *options, *arguments],
                stdin=wanted,
                stdout=output,  # a file, whose size is limited too
                stderr=errors,
                env=_environment(self.folder.parent),
                cwd=self.folder.parent,
                start_new_session=True,
            )
            try:
                status = process.wait(self.seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # git and its children
                process.wait()
                raise Unavailable(
                    f"{self.url} was not fetched within {self.seconds:g} seconds.",
                    accepted="Try again later, or link to a smaller repository.",
                ) from None
            if status:
                raise self._error(status, errors)
            output.seek(0)
            return output.read()

    def _error(self, status: int, errors: IO[bytes]) -> CarrelError:
        if status == -signal.SIGXFSZ:
            return _too_large(self.url, self.most_bytes)
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - _MOST_ERRORS))
        return _explained(self.url, errors.read().decode("utf-8", "replace"), self.most_bytes)

    def commit(self) -> str:
        try:
            return self._in("rev-parse", "--verify", "--quiet", "HEAD^{commit}").decode().strip()
        except InvalidInput:
            raise NotFound(f"{self.url} has no commits.") from None

    def default_branch(self) -> str:
        try:
            return self._in("symbolic-ref", "--short", "HEAD").decode().strip()
        except InvalidInput:  # the repository points at a commit
            return "HEAD"

    def entries(self, commit: str) -> list[_Entry]:
        """List the files, links and submodules of a commit."""
        listed = self._in("ls-tree", "-r", "-l", "-z", "--full-tree", commit)
        if listed.count(b"\0") > MAX_FILES:
            raise _too_large(self.url, self.most_bytes)
        found = []
        for line in filter(None, listed.split(b"\0")):
            facts, _, name = line.partition(b"\t")
            mode, _, object_id, size = facts.decode("ascii").split()
            path = name.decode("utf-8", "surrogateescape")
            number = int(size) if size.isdigit() else 0
            found.append(_Entry(mode=mode, object_id=object_id, size=number, path=path))
        return found

    def check_size(self, entries: Sequence[_Entry]) -> None:
        """Raise TooLarge before any file is read."""
        if sum(each.size for each in entries) > self.most_bytes:
            raise _too_large(self.url, self.most_bytes)

    def contents(self, object_ids: Iterable[str]) -> Iterator[bytes]:
        """Yield the contents of files."""
        wanted = "".join(f"{each}\n" for each in object_ids).encode()
        output = self._in("cat-file", "--batch", given=wanted)
        at = 0
        while at < len(output):
            end = output.index(b"\n", at)
            size = int(output[at:end].split()[2])
            yield output[end + 1 : end + 1 + size]
            at = end + 2 + size

    def _in(self, *arguments: str, given: bytes = b"") -> bytes:
        return self.run(f"--git-dir={self.path}", *arguments, given=given)


def _environment(home: Path) -> dict[str, str]:
    """Return the environment of git; an empty home has no passwords in ``.netrc``."""
    kept = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
    return {**kept, **_ENVIRONMENT, "HOME": str(home)}


def _too_large(url: str, most_bytes: int) -> TooLarge:
    return TooLarge(
        f"{url} is too large to be opened.",
        accepted=f"At most {MAX_FILES:,} files of {most_bytes >> 20} MiB in sum: keep data "
        "elsewhere.",
    )


def _explained(url: str, errors: str, most_bytes: int) -> CarrelError:
    """Return the error for what git wrote."""
    if "git: not found" in errors or "git: command not found" in errors:
        return Unavailable(
            "The image of this session has no git, which fetches repositories.",
            accepted="Choose another image, or ask its administrator to build it again.",
        )
    if branch := re.search(r"Remote branch (\S+) not found", errors):
        return NotFound(
            f"{url} has no branch or tag {branch[1]}.", accepted="Correct the branch of the link."
        )
    if "signal 25" in errors or "File too large" in errors:
        return _too_large(url, most_bytes)
    if re.search(r"redirect|error: 30[1278]|HTTP 30[1278]", errors):
        return InvalidInput(
            f"{url} leads to another address, which is not followed.",
            accepted="A link to the address at which the repository is now; at GitLab it ends with "
            ".git.",
        )
    if re.search(r"not found|error: 40[134]|could not read Username|Authentication", errors):
        return NotFound(
            f"There is no public repository at {url}.",
            accepted="Check its address. Private repositories cannot be opened by a link.",
        )
    if re.search(r"[Cc]ould not resolve|[Ff]ailed to connect|timed out|too slow|5\d\d$", errors):
        return Unavailable(
            f"{url} does not answer.",
            accepted="Try again later. If your session has no internet access, use another one.",
        )
    reason = (errors.strip().splitlines() or ["it gave no reason"])[-1][:200]
    return InvalidInput(f"git cannot fetch {url}: {reason}.")
