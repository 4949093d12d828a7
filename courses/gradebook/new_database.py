"""Create nbgrader's database.

nbgrader runs the command ``alembic`` for the version of a new database, which takes two seconds.
"""

from __future__ import annotations

from alembic.script import ScriptDirectory
from nbgrader.api import Base
from nbgrader.dbutil import ALEMBIC_DIR
from sqlalchemy import create_engine, inspect


def create_database(url: str) -> None:
    """Create all tables with the version of this nbgrader, unless there are some; at once."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            if inspect(connection).get_table_names():
                return
            # SQLite itself would commit each table.
            connection.exec_driver_sql("begin immediate")
            if not inspect(connection).get_table_names():  # another process may have been faster
                Base.metadata.create_all(connection)
                connection.exec_driver_sql(
                    "create table alembic_version (version_num varchar(32) not null)"
                )
                head = ScriptDirectory(ALEMBIC_DIR).get_current_head()
                connection.exec_driver_sql("insert into alembic_version values (?)", (head,))
            connection.exec_driver_sql("commit")
    finally:
        engine.dispose()
