"""Generate the next revision from the difference between the tables and the migrations."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from ..sql.database import migrations


def main(message: str) -> None:
    """Migrate an empty database and write a revision with the missing changes."""
    with TemporaryDirectory() as folder:
        engine = create_engine(f"sqlite:///{Path(folder) / 'empty.db'}")
        with engine.connect() as connection:
            config = migrations(connection)
            command.upgrade(config, "head")
            revisions = list(ScriptDirectory.from_config(config).walk_revisions())
            number = len(revisions) + 1
            command.revision(config, message, autogenerate=True, rev_id=f"r{number:04}")
        engine.dispose()


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or sys.exit('usage: … "what it changes"'))
