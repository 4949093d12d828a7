"""Add courses: members, assignments, releases, submissions, extensions and outages."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0012"
down_revision = "r0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "outages",
        sa.Column("id", number, nullable=False),
        sa.Column("course", sa.String(), nullable=False),
        sa.Column("starts_at", sa.Double(), nullable=False),
        sa.Column("ends_at", sa.Double(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("recorded_at", sa.Double(), nullable=False),
        sa.Column("recorded_by", sa.String(), nullable=False),
        sa.CheckConstraint("ends_at > starts_at", name=op.f("ck_outages_span")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outages")),
    )
    op.create_table(
        "courses",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("image", sa.String(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("archived_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["name"], ["groups.name"], name=op.f("fk_courses_name")),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_courses")),
    )
    op.create_table(
        "assignments",
        sa.Column("course", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("due", sa.Double(), nullable=True),
        sa.Column("zone", sa.String(), nullable=False),
        sa.Column("late", sa.JSON(), nullable=False),
        sa.Column("devices", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("hidden", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["course"], ["courses.name"], name=op.f("fk_assignments_course")),
        sa.PrimaryKeyConstraint("course", "name", name=op.f("pk_assignments")),
    )
    op.create_table(
        "course_members",
        sa.Column("course", sa.String(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("full_name", sa.Text(), nullable=False),
        sa.Column("section", sa.String(), nullable=False),
        sa.Column("left_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["course"], ["courses.name"], name=op.f("fk_course_members_course")
        ),
        sa.PrimaryKeyConstraint("course", "person", name=op.f("pk_course_members")),
    )
    op.create_index("courses_of_person", "course_members", ["person"], unique=False)
    op.create_table(
        "course_choices",
        sa.Column("course", sa.String(), nullable=False),
        sa.Column("assignment", sa.String(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["course", "assignment"],
            ["assignments.course", "assignments.name"],
            name=op.f("fk_course_choices_course"),
        ),
        sa.PrimaryKeyConstraint("course", "assignment", "person", name=op.f("pk_course_choices")),
    )
    op.create_table(
        "course_fetches",
        sa.Column("course", sa.String(), nullable=False),
        sa.Column("assignment", sa.String(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["course", "assignment"],
            ["assignments.course", "assignments.name"],
            name=op.f("fk_course_fetches_course"),
        ),
        sa.PrimaryKeyConstraint("course", "assignment", "person", name=op.f("pk_course_fetches")),
    )
    op.create_table(
        "extensions",
        sa.Column("id", number, nullable=False),
        sa.Column("course", sa.String(), nullable=False),
        sa.Column("assignment", sa.String(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.Column("section", sa.String(), nullable=False),
        sa.Column("seconds", sa.Integer(), nullable=False),
        sa.Column("given_at", sa.Double(), nullable=False),
        sa.Column("given_by", sa.String(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.CheckConstraint("(person = '') != (section = '')", name=op.f("ck_extensions_whose")),
        sa.ForeignKeyConstraint(
            ["course", "assignment"],
            ["assignments.course", "assignments.name"],
            name=op.f("fk_extensions_course"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_extensions")),
    )
    op.create_index(
        "extensions_of_assignment", "extensions", ["course", "assignment"], unique=False
    )
    op.create_table(
        "hand_outs",
        sa.Column("course", sa.String(), nullable=False),
        sa.Column("assignment", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("files", sa.JSON(), nullable=False),
        sa.Column("source", sa.JSON(), nullable=False),
        sa.Column("released_at", sa.Double(), nullable=False),
        sa.Column("released_by", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["course", "assignment"],
            ["assignments.course", "assignments.name"],
            name=op.f("fk_hand_outs_course"),
        ),
        sa.PrimaryKeyConstraint("course", "assignment", "version", name=op.f("pk_hand_outs")),
    )
    op.create_table(
        "submissions",
        sa.Column("id", number, nullable=False),
        sa.Column("course", sa.String(), nullable=False),
        sa.Column("assignment", sa.String(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("files", sa.JSON(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.CheckConstraint("number > 0", name=op.f("ck_submissions_number")),
        sa.ForeignKeyConstraint(
            ["course", "assignment"],
            ["assignments.course", "assignments.name"],
            name=op.f("fk_submissions_course"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_submissions")),
        sa.UniqueConstraint(
            "course",
            "assignment",
            "person",
            "number",
            name=op.f("uq_submissions_course_assignment_person_number"),
        ),
    )
