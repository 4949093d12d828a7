"""Open a database: check its location and apply pending migrations.

All migrations run in this process and in one transaction. If two processes open a database at the
same time, the second waits and then finds nothing to migrate.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from threading import Lock

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DatabaseError

from ...errors import Refused
from ...scheduling.quota.accounting import HALF_LIFE
from .store import SqlStore
from .tables.courses import courses
from .tables.notifications import notification_channels
from .tables.shadow_order import shadow_runs
from .transactions import BUSY_TIMEOUT, PATIENCE, Transactions

MIGRATIONS = Path(__file__).parents[1] / "migrations"
MOUNTS = Path("/proc/self/mountinfo")
# Alembic keeps the running migration in a global variable.
_MIGRATION_LOCK = Lock()

NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "fuse.sshfs", "glusterfs", "fuse.glusterfs"}
)
"""File systems whose locks and shared memory are not reliable enough for SQLite's WAL mode."""


def open_store(
    url_or_path: str | Path,
    *,
    mountinfo: str | None = None,
    patience: float = PATIENCE,
    busy_timeout: float = BUSY_TIMEOUT,
    half_life: float = HALF_LIFE,
) -> SqlStore:
    """Open a database, or create it, and bring its tables up to date.

    Args:
        url_or_path: a file for SQLite, or a database URL.
        mountinfo: text in the format of ``/proc/self/mountinfo``; by default that file is read.
        patience: seconds for which a locked database is retried.
        busy_timeout: seconds that SQLite waits for a lock in one statement.
        half_life: seconds after which past usage counts half.

    Raises:
        Refused: the file is on a network file system, is not a database of Carrel, or was written
            by a newer version.
        Unavailable: the database stayed locked.
    """
    url = _url(url_or_path)
    if url.get_backend_name() == "sqlite" and url.database:
        path = Path(url.database).resolve()
        if mountinfo is None:
            mountinfo = MOUNTS.read_text() if MOUNTS.exists() else ""
        refuse_network_file_system(path, mountinfo)
        _create_private(path)
    transactions = Transactions(url, patience=patience, busy_timeout=busy_timeout)
    try:
        transactions.write(migrate)
    except DatabaseError as error:
        transactions.close()
        if "not a database" in str(error.orig):
            raise Refused(
                f"The file {url.database} is not a database.",
                accepted="Use a database that Carrel created, or a file that does not exist yet.",
            ) from error
        if "malformed" in str(error.orig):
            raise Refused(
                f"The database {url.database} is damaged.",
                accepted="Restore the newest backup: carrel restore BACKUP --replace.",
            ) from error
        raise
    except BaseException:
        transactions.close()
        raise
    return SqlStore(transactions, half_life=half_life)


def _url(url_or_path: str | Path) -> URL:
    if isinstance(url_or_path, str) and "://" in url_or_path:
        return make_url(url_or_path)
    return URL.create("sqlite", database=str(Path(url_or_path).expanduser().absolute()))


def _create_private(path: Path) -> None:
    """Create the file readable by its owner only; SQLite gives its other files the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise Refused(
            f"The database {path} cannot be opened: {error.strerror}.",
            accepted="Use a file in a folder that exists and is writable.",
        ) from error


def refuse_network_file_system(path: Path, mountinfo: str) -> None:
    """Check the file system of a database file.

    Raises:
        Refused: it is one of ``NETWORK_FILE_SYSTEMS``.
    """
    kind, mounted_at = "", Path("/")
    for line in mountinfo.split("\n"):
        # 36 35 98:0 /root /mount/point options [optional fields] - type source options
        mount, _, system = line.partition(" - ")
        fields = mount.split(" ")
        if len(fields) < 5 or not system:  # noqa: PLR2004  # proc(5): field 5
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), fields[4]))
        # If two file systems are mounted at the same point, the later one hides the other.
        if path.is_relative_to(point) and point.is_relative_to(mounted_at):
            kind, mounted_at = system.split()[0], point
    if kind in NETWORK_FILE_SYSTEMS:
        raise Refused(
            f"The database {path} is on a network file system ({kind}, mounted at"
            f" {mounted_at}), where SQLite can lose or corrupt data.",
            accepted="Put the state folder on a local disk.",
        )


def migrate(connection: Connection) -> None:
    """Bring the tables up to date inside the caller's transaction."""
    config = migrations(connection)
    scripts = ScriptDirectory.from_config(config)
    head = scripts.get_current_head()
    (found,) = MigrationContext.configure(connection).get_current_heads() or (None,)
    if found == head:
        return
    if found is None:
        _refuse_foreign_tables(connection)
    elif found not in known_revisions():
        raise Refused(
            f"The database was written by a newer Carrel (schema {found}); this version supports"
            f" schemas up to {head}.",
            accepted="Install the newer Carrel, or use another state folder.",
        )
    with _MIGRATION_LOCK:
        command.upgrade(config, "head")


def known_revisions() -> frozenset[str]:
    """Return the schema revisions that this Carrel can open."""
    return frozenset(script.revision for script in ScriptDirectory(MIGRATIONS).walk_revisions())


def newest_revision() -> str | None:
    """Return the schema revision to which this Carrel upgrades a database that it opens."""
    return ScriptDirectory(MIGRATIONS).get_current_head()


def migrations(connection: Connection) -> Config:
    """Return the configuration of Alembic, without a file; ``env.py`` reads its attributes."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    # The imports of these tables add them to the metadata of the core tables.
    assert courses.metadata is notification_channels.metadata is shadow_runs.metadata
    config.attributes.update(connection=connection, metadata=courses.metadata)
    return config


def _refuse_foreign_tables(connection: Connection) -> None:
    tables = sorted(inspect(connection).get_table_names())
    if tables:
        raise Refused(
            f"The database contains tables that Carrel did not create: {', '.join(tables)}.",
            accepted="Use a database that only Carrel uses.",
        )
