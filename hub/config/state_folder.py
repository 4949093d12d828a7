"""The paths inside the state folder of an installation."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ..files.filenames import safe_name

DEFAULT_STATE = "~/.local/share/carrel"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFolder:
    """The paths inside a state folder."""

    root: Path

    @classmethod
    def at(cls, path: str | Path) -> Self:
        return cls(root=Path(path).expanduser().resolve())

    @property
    def settings(self) -> Path:
        return self.root / "settings.json"

    @property
    def installation(self) -> str:
        """Six hexadecimal digits that identify this installation among others on the host."""
        return hashlib.sha256(os.fsencode(self.root)).hexdigest()[:6]

    @property
    def site_file(self) -> Path:
        """The optional configuration of the site, written by its administrator."""
        return self.root / "carrel.toml"

    @property
    def secrets(self) -> Path:
        return self.root / "secrets.json"

    @property
    def signing_key(self) -> Path:
        """The private key with which the service signs receipts and heads of logs."""
        return self.root / "signing-key.pem"

    @property
    def log_head(self) -> Path:
        """The size and root of the head of the log that was signed last."""
        return self.root / "log-head.json"

    @property
    def encryption_keys(self) -> Path:
        """The keys of what is encrypted in the database: values of secrets, for example."""
        return self.root / "encryption.keys"

    @property
    def run_time_model(self) -> Path:
        """The newest model of run times, which the service fits again each day."""
        return self.root / "run-time-model.json"

    @property
    def learned_orders(self) -> Path:
        """Weights of learned queue orders, one file each; put there by the administrator."""
        return self.root / "learned-orders"

    @property
    def reports(self) -> Path:
        """Reports of past months, which the service writes where that is set."""
        return self.root / "reports"

    @property
    def jupyterhub_config(self) -> Path:
        """The optional JupyterHub configuration of the site, written by its administrator."""
        return self.root / "jupyterhub_config.py"

    @property
    def hub(self) -> Path:
        return self.root / "hub"

    @property
    def accounts(self) -> Path:
        return self.hub / "accounts.db"

    @property
    def hub_database(self) -> Path:
        return self.hub / "jupyterhub.sqlite"

    @property
    def database(self) -> Path:
        return self.root / "carrel.db"

    @property
    def homes(self) -> Path:
        return self.root / "homes"

    @property
    def disks(self) -> Path:
        return self.root / "disks"

    @property
    def courses(self) -> Path:
        return self.root / "courses"

    def course(self, name: str) -> Path:
        """The folder of a course, with nbgrader's folders and gradebook."""
        return self.courses / safe_name(name)

    def course_data(self, group: str) -> Path:
        """The data folder that all members of a course can read; it may be missing."""
        return self.course(group) / "data"

    @property
    def blobs(self) -> Path:
        """The blob store of released and submitted files; no course can have this name."""
        return self.courses / ".blobs"

    @property
    def prefixes(self) -> Path:
        """Variables of given cells that jobs begin with; all of it can be computed again."""
        return self.root / "prefixes"

    @property
    def compile_caches(self) -> Path:
        """What users' jobs have compiled with PyTorch; all of it can be compiled again."""
        return self.root / "compile-caches"

    @property
    def outputs(self) -> Path:
        return self.root / "outputs"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def run(self) -> Path:
        return self.root / "run"

    def create(self) -> None:
        """Create the folders; only the owner can read the root."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        for folder in (self.hub, self.homes, self.outputs, self.logs, self.run):
            folder.mkdir(exist_ok=True, mode=0o700)
