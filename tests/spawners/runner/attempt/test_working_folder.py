"""What an uploaded folder becomes in a job's working folder."""

from __future__ import annotations

import io
import stat
import tarfile
from pathlib import Path

import pytest

from carrel.hub.attempts.output_limits import OutputLimits
from carrel.spawners.runner.attempt.working_folder import unpack


def archive(path: Path, modes: dict[str, int]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, mode in modes.items():
            entry = tarfile.TarInfo(name)
            entry.mode = mode
            entry.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            tar.addfile(entry, io.BytesIO())
    return path


@pytest.mark.parametrize("filters", [True, False], ids=["with filters", "as in Debian 12"])
def test_files_are_unpacked_without_special_modes_by_every_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filters: bool
) -> None:
    if not filters:
        extract = tarfile.TarFile.extract

        def old(self: tarfile.TarFile, entry: tarfile.TarInfo, path: Path) -> None:
            extract(self, entry, path)

        monkeypatch.delattr(tarfile, "data_filter")
        monkeypatch.setattr(tarfile.TarFile, "extract", old)
    modes = {"data/": 0o777, "data/run.sh": 0o4777, "data/secret": 0o000, "data/a.txt": 0o640}
    unpack(archive(tmp_path / "work.tar.gz", modes), tmp_path / "work", OutputLimits())
    found = {
        str(path.relative_to(tmp_path / "work")): stat.S_IMODE(path.stat().st_mode)
        for path in (tmp_path / "work" / "data").iterdir()
    }
    assert found == {"data/run.sh": 0o755, "data/secret": 0o600, "data/a.txt": 0o640}
