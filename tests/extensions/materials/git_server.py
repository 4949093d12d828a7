"""A git server over HTTP on the loopback address, and repositories to serve."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

_AUTHOR = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"} | {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "ada"), ("EMAIL", "ada@example.org"))
}


def git(*arguments: str, at: Path, **given: str) -> str:
    """Run git in a folder; return its output."""
    environment = {**os.environ, **_AUTHOR, **given}
    done = subprocess.run(
        ["git", *arguments], cwd=at, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@cache
def _backend() -> str:
    return f"{git('--exec-path', at=Path('/'))}/git-http-backend"


@dataclass(frozen=True)
class GitServer:
    """Serves bare repositories below ``root`` and plain files beside them.

    ``/moved/…`` redirects, and ``/private/…`` asks for a password.
    """

    root: Path
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def commit(
        self,
        name: str,
        files: Mapping[str, str | bytes | None],
        *,
        branch: str = "main",
        links: Mapping[str, str] | None = None,
    ) -> None:
        """Commit files to a branch of a repository; None removes one."""
        work = self.root / "work" / name
        if not work.exists():
            work.mkdir(parents=True)
            git("init", "-q", "-b", "main", at=work)
            served = self.root / f"{name}.git"
            served.parent.mkdir(parents=True, exist_ok=True)
            served.symlink_to(work / ".git")
        if branch != "main":
            git("checkout", "-q", "-b", branch, at=work)
        for path, content in files.items():
            target = work / path
            if content is None:
                target.unlink()
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)
            target.chmod(0o755 if path.endswith(".sh") else 0o644)
        for path, to in (links or {}).items():
            (work / path).symlink_to(to)
        git("add", "-A", at=work)
        git("commit", "-q", "-m", "change", at=work)
        if branch != "main":
            git("checkout", "-q", "main", at=work)


@contextmanager
def git_server(root: Path, port: int = 0) -> Iterator[GitServer]:
    """Run the server until the end of the block, by default on any free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

        def log_message(self, *_: object) -> None:
            pass

        def _answer(self, body: bytes) -> None:
            path = self.path
            if path.startswith("/moved/"):
                self._plain(301, b"", Location=path.removeprefix("/moved"))
            elif path.startswith("/private/"):
                self._plain(401, b"", **{"WWW-Authenticate": 'Basic realm="x"'})
            elif ".git" in path:
                self._git(body)
            elif (file := root / path.lstrip("/")).is_file():
                self._plain(200, file.read_bytes())
            else:
                self._plain(404, b"")

        def _plain(self, status: int, content: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _git(self, body: bytes) -> None:
            parts = urlsplit(self.path)
            done = subprocess.run(
                [_backend()],
                input=body,
                capture_output=True,
                check=False,
                env={
                    **os.environ,
                    **_AUTHOR,
                    "GIT_PROJECT_ROOT": str(root),
                    "GIT_HTTP_EXPORT_ALL": "1",
                    "PATH_INFO": parts.path,
                    "QUERY_STRING": parts.query,
                    "REQUEST_METHOD": self.command,
                    "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                    "CONTENT_LENGTH": str(len(body)),
                    "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                    "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                },
            )
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            status = int(headers.pop("Status", "200").split()[0])
            self._plain(status, content, **headers)

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield GitServer(root=root, port=server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
