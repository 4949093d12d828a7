"""Add grading runs and their verdicts, and the result of the check before a release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0014"
down_revision = "r0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.add_column("hand_outs", sa.Column("tried", sa.JSON(none_as_null=True), nullable=True))
    op.create_table(
        "grading_runs",
        sa.Column("id", number, nullable=False),
        sa.Column("request", sa.String(), nullable=False),
        sa.Column("course", sa.String(), nullable=False),
        sa.Column("assignment", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.Column("question", sa.String(), nullable=False),
        sa.Column("submissions", sa.JSON(), nullable=False),
        sa.Column("asked_at", sa.Double(), nullable=False),
        sa.Column("asked_by", sa.String(), nullable=False),
        sa.Column("expected", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["course", "assignment"],
            ["assignments.course", "assignments.name"],
            name=op.f("fk_grading_runs_course"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_grading_runs")),
        sa.UniqueConstraint("request", name=op.f("uq_grading_runs_request")),
    )
    op.create_index("grading_of_assignment", "grading_runs", ["course", "assignment"])
    op.create_table(
        "verdicts",
        sa.Column("request", sa.String(), nullable=False),
        sa.Column("submission", number, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("cells", sa.JSON(), nullable=False),
        sa.Column("notes", sa.JSON(), nullable=False),
        sa.Column("why_not", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["request"], ["grading_runs.request"], name=op.f("fk_verdicts_request")
        ),
        sa.ForeignKeyConstraint(
            ["submission"], ["submissions.id"], name=op.f("fk_verdicts_submission")
        ),
        sa.PrimaryKeyConstraint("request", "submission", name=op.f("pk_verdicts")),
    )
