"""Rehearsals of courses, and official checks of students with their rules."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0042"
down_revision = "r0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "rehearsals",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("course", sa.String(), nullable=False),
        sa.Column("image", sa.String(), nullable=False),
        sa.Column("present_image", sa.String(), nullable=False),
        sa.Column("assignment", sa.String(), nullable=False),
        sa.Column("asked_at", sa.Double(), nullable=False),
        sa.Column("asked_by", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rehearsals")),
        sa.ForeignKeyConstraint(["course"], ["courses.name"], name=op.f("fk_rehearsals_course")),
    )
    op.create_index("rehearsals_of_course", "rehearsals", ["course", "asked_at"])
    op.create_table(
        "rehearsal_jobs",
        sa.Column("request", sa.String(), nullable=False),
        sa.Column("rehearsal", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("assignment", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("image", sa.String(), nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("why_not", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("request", name=op.f("pk_rehearsal_jobs")),
        sa.ForeignKeyConstraint(
            ["rehearsal"], ["rehearsals.id"], name=op.f("fk_rehearsal_jobs_rehearsal")
        ),
    )
    op.create_index("jobs_of_rehearsal", "rehearsal_jobs", ["rehearsal"])
    op.create_table(
        "official_check_rules",
        sa.Column("course", sa.String(), nullable=False),
        sa.Column("assignment", sa.String(), nullable=False),
        sa.Column("per_day", sa.Integer(), nullable=False),
        sa.Column("names_cells", sa.Boolean(), nullable=False),
        sa.Column("by", sa.String(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("course", "assignment", name=op.f("pk_official_check_rules")),
        _of_an_assignment("official_check_rules"),
    )
    op.create_table(
        "official_checks",
        sa.Column("request", sa.String(), nullable=False),
        sa.Column("course", sa.String(), nullable=False),
        sa.Column("assignment", sa.String(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("tests_sha256", sa.String(), nullable=False),
        sa.Column("image", sa.String(), nullable=False),
        sa.Column("asked_at", sa.Double(), nullable=False),
        sa.Column("names_cells", sa.Boolean(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.Column("points", sa.Double(), nullable=True),
        sa.Column("max_points", sa.Double(), nullable=True),
        sa.Column("cells", sa.JSON(), nullable=False),
        sa.Column("receipt", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("request", name=op.f("pk_official_checks")),
        _of_an_assignment("official_checks"),
    )
    op.create_index(
        "official_checks_of_person", "official_checks", ["course", "assignment", "person"]
    )


def _of_an_assignment(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["course", "assignment"],
        ["assignments.course", "assignments.name"],
        name=op.f(f"fk_{table}_course"),
    )
