"""A fake program ``docker`` on the test's PATH that records its calls."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from carrel.images.docker_cli import Docker

_PROGRAM = """#!{python} -IS
import json, pathlib, sys
here = pathlib.Path({folder!r})
words = sys.argv[1:]
if words == ["build", "--help"]:
    print("--secret" if (here / "buildkit").exists() else "no such thing")
    sys.exit()
with (here / "asked").open("a") as asked:
    asked.write(json.dumps(words) + "\\n")
answers = json.loads((here / "answers.json").read_text())
for prefix, answer in answers:
    if words[: len(prefix)] == prefix:
        print(answer.get("out", ""))
        print(answer.get("err", ""), file=sys.stderr)
        sys.exit(answer.get("status", 0))
sys.exit("nobody expected " + " ".join(words))
"""


class FakeDocker:
    """What the program says: the first prefix of its words that fits."""

    def __init__(self, folder: Path, *, buildkit: bool = True) -> None:
        self.folder = folder
        folder.mkdir()
        if buildkit:
            (folder / "buildkit").touch()
        self._answers: list[tuple[list[str], dict[str, object]]] = []
        program = folder / "docker"
        program.write_text(_PROGRAM.format(python=sys.executable, folder=str(folder)))
        program.chmod(0o755)
        self._write()

    def answer(self, *prefix: str, out: object = "", err: str = "", status: int = 0) -> None:
        text = out if isinstance(out, str) else json.dumps(out)
        self._answers.insert(0, (list(prefix), {"out": text, "err": err, "status": status}))
        self._write()

    def _write(self) -> None:
        (self.folder / "answers.json").write_text(json.dumps(self._answers))

    @property
    def asked(self) -> list[list[str]]:
        path = self.folder / "asked"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def fake(tmp_path: Path) -> FakeDocker:
    return FakeDocker(tmp_path / "bin")


@pytest.fixture
def docker(fake: FakeDocker) -> Docker:
    return Docker(path=str(fake.folder))
