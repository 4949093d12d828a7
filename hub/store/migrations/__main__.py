"""Draft the next step from the difference between the tables and the history."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from ..sql.database import migrations


def main(message: str) -> None:
    """Apply the history to an empty database and write down what is missing from it."""
    with TemporaryDirectory() as folder:
        engine = create_engine(f"sqlite:///{Path(folder) / 'empty.db'}")
        with engine.connect() as connection:
            config = migrations(connection)
            command.upgrade(config, "head")
            steps = list(ScriptDirectory.from_config(config).walk_revisions())
            command.revision(config, message, autogenerate=True, rev_id=f"r{len(steps) + 1:04}")
        engine.dispose()


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or sys.exit('usage: … "what it changes"'))
