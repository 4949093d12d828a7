"""Update the module names in the commands of grading and check requests that have not ended."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0017"
down_revision = "r0016"
branch_labels = None
depends_on = None

_MODULES = {
    "carrel.hub.grader": "carrel.courses.grading_runs.worker",
    "carrel.hub.checker": "carrel.courses.grading_runs.check_worker",
}


def upgrade() -> None:
    requests = sa.table(
        "requests",
        sa.column("number", sa.Integer),
        sa.column("kind", sa.String),
        sa.column("job", sa.JSON(none_as_null=True)),
        sa.column("ended_at", sa.Float),
    )
    # Only the service creates requests of this kind: no command of a user is changed.
    unfinished = sa.select(requests.c.number, requests.c.job).where(
        requests.c.kind == "grading", requests.c.ended_at.is_(None), requests.c.job.is_not(None)
    )
    connection = op.get_bind()
    for row in connection.execute(unfinished).all():
        command = [_MODULES.get(part, part) for part in row.job.get("command", ())]
        if command != list(row.job.get("command", ())):
            changed = sa.update(requests).where(requests.c.number == row.number)
            connection.execute(changed.values(job=row.job | {"command": command}))
