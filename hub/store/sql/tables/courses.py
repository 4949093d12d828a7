"""The tables of courses, in the same database as the core tables.

Submissions are never deleted, so that there is no cascade. The name of a course is the name of its
group, and files are identified by the SHA-256 of their content.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from .core import Number, metadata

courses = Table(
    "courses",
    metadata,
    Column("name", ForeignKey("groups.name"), primary_key=True),
    Column("title", Text, nullable=False),
    Column("image", String, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("created_by", String, nullable=False),
    Column("archived_at", Double),
)

course_members = Table(
    "course_members",
    metadata,
    Column("course", ForeignKey("courses.name"), primary_key=True),
    Column("person", String, primary_key=True),
    Column("role", String, nullable=False),
    Column("full_name", Text, nullable=False),
    Column("section", String, nullable=False),
    Column("left_at", Double),
    Index("courses_of_person", "person"),
)

assignments = Table(
    "assignments",
    metadata,
    Column("course", ForeignKey("courses.name"), primary_key=True),
    Column("name", String, primary_key=True),
    Column("due", Double),
    # The zone in which the due date was entered. ``due`` itself is an absolute time, which a later
    # change of the zone's rules does not move.
    Column("zone", String, nullable=False),
    Column("late", JSON, nullable=False),
    Column("devices", Integer, nullable=False),
    Column("seconds", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("hidden", Boolean, nullable=False),
)


def _of_an_assignment() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["course", "assignment"], ["assignments.course", "assignments.name"]
    )


hand_outs = Table(
    "hand_outs",
    metadata,
    Column("course", String, primary_key=True),
    Column("assignment", String, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("files", JSON, nullable=False),
    Column("source", JSON, nullable=False),
    Column("released_at", Double, nullable=False),
    Column("released_by", String, nullable=False),
    Column("tried", JSON(none_as_null=True)),
    _of_an_assignment(),
)

fetches = Table(
    "course_fetches",
    metadata,
    Column("course", String, primary_key=True),
    Column("assignment", String, primary_key=True),
    Column("person", String, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("at", Double, nullable=False),
    _of_an_assignment(),
)

submissions = Table(
    "submissions",
    metadata,
    Column("id", Number, primary_key=True),
    Column("course", String, nullable=False),
    Column("assignment", String, nullable=False),
    Column("person", String, nullable=False),
    Column("number", Integer, nullable=False),
    Column("at", Double, nullable=False),
    Column("files", JSON, nullable=False),
    Column("version", Integer, nullable=False),
    _of_an_assignment(),
    # Also the index for the submissions of a student, newest first.
    UniqueConstraint("course", "assignment", "person", "number"),
    CheckConstraint("number > 0", name="number"),
)

grading_runs = Table(
    "grading_runs",
    metadata,
    Column("id", Number, primary_key=True),
    # Id of its request; the run may outlive the request, so that there is no foreign key.
    Column("request", String, nullable=False, unique=True),
    Column("course", String, nullable=False),
    Column("assignment", String, nullable=False),
    Column("version", Integer, nullable=False),
    Column("person", String, nullable=False),
    Column("question", String, nullable=False),
    Column("submissions", JSON, nullable=False),
    Column("asked_at", Double, nullable=False),
    Column("asked_by", String, nullable=False),
    Column("expected", Double, nullable=False),
    _of_an_assignment(),
    Index("grading_of_assignment", "course", "assignment"),
)

# Written once: an interrupted run continues with the submissions that have no verdict.
verdicts = Table(
    "verdicts",
    metadata,
    Column("request", ForeignKey("grading_runs.request"), primary_key=True),
    Column("submission", ForeignKey("submissions.id"), primary_key=True),
    Column("at", Double, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("cells", JSON, nullable=False),
    Column("notes", JSON, nullable=False),
    Column("why_not", Text, nullable=False),
)

# The current feedback on a submission; a new release replaces it.
feedback = Table(
    "feedback",
    metadata,
    Column("submission", ForeignKey("submissions.id"), primary_key=True),
    Column("files", JSON, nullable=False),
    Column("released_at", Double, nullable=False),
    Column("released_by", String, nullable=False),
)

regrade_requests = Table(
    "regrade_requests",
    metadata,
    Column("id", Number, primary_key=True),
    Column("course", String, nullable=False),
    Column("assignment", String, nullable=False),
    Column("person", String, nullable=False),
    Column("notebook", String, nullable=False),
    Column("cell", String, nullable=False),
    Column("opened_at", Double, nullable=False),
    Column("closed_at", Double),
    Column("closed_by", String, nullable=False),
    _of_an_assignment(),
    Index("regrades_of_course", "course", "assignment"),
)

regrade_messages = Table(
    "regrade_messages",
    metadata,
    Column("id", Number, primary_key=True),
    Column("regrade", ForeignKey("regrade_requests.id"), nullable=False),
    Column("author", String, nullable=False),
    Column("at", Double, nullable=False),
    Column("text", Text, nullable=False),
    Index("messages_of_regrade", "regrade"),
)

choices = Table(
    "course_choices",
    metadata,
    Column("course", String, primary_key=True),
    Column("assignment", String, primary_key=True),
    Column("person", String, primary_key=True),
    Column("number", Integer, nullable=False),
    _of_an_assignment(),
)

extensions = Table(
    "extensions",
    metadata,
    Column("id", Number, primary_key=True),
    Column("course", String, nullable=False),
    Column("assignment", String, nullable=False),
    Column("person", String, nullable=False),
    Column("section", String, nullable=False),
    Column("seconds", Integer, nullable=False),
    Column("given_at", Double, nullable=False),
    Column("given_by", String, nullable=False),
    Column("why", Text, nullable=False),
    _of_an_assignment(),
    CheckConstraint("(person = '') != (section = '')", name="whose"),
    Index("extensions_of_assignment", "course", "assignment"),
)

# An empty course means all courses, so that there is no foreign key.
outages = Table(
    "outages",
    metadata,
    Column("id", Number, primary_key=True),
    Column("course", String, nullable=False),
    Column("starts_at", Double, nullable=False),
    Column("ends_at", Double, nullable=False),
    Column("why", Text, nullable=False),
    Column("recorded_at", Double, nullable=False),
    Column("recorded_by", String, nullable=False),
    CheckConstraint("ends_at > starts_at", name="span"),
)

# Assignments whose jobs may begin with a prefix: a row for each that is switched on.
prefix_switches = Table(
    "prefix_switches",
    metadata,
    Column("course", String, primary_key=True),
    Column("assignment", String, primary_key=True),
    Column("devices", Integer, nullable=False),
    Column("by", String, nullable=False),
    Column("at", Double, nullable=False),
    _of_an_assignment(),
)

prefixes = Table(
    "prefixes",
    metadata,
    # Id of the job that computes it.
    Column("request", String, primary_key=True),
    Column("course", String, nullable=False),
    Column("assignment", String, nullable=False),
    Column("notebook", String, nullable=False),
    Column("key", String, nullable=False),
    Column("planned", Integer, nullable=False),
    Column("digest", String, nullable=False),
    Column("image", String, nullable=False),
    Column("devices", Integer, nullable=False),
    Column("submitted_at", Double, nullable=False),
    Column("models", JSON, nullable=False),
    Column("kept", Boolean, nullable=False),
    Column("first", Integer, nullable=False),
    Column("cells", Integer, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("why_not", Text, nullable=False),
    _of_an_assignment(),
    Index("prefixes_of_assignment", "course", "assignment"),
)

# One row for each attempt that got a copy of a prefix. It may outlive the prefix and the request.
prefix_uses = Table(
    "prefix_uses",
    metadata,
    Column("request", String, primary_key=True),
    Column("epoch", Integer, primary_key=True),
    Column("prefix", String, nullable=False),
    Column("course", String, nullable=False),
    Column("assignment", String, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("devices", Integer, nullable=False),
    Column("offered_at", Double, nullable=False),
    Column("used_at", Double),
    _of_an_assignment(),
    Index("prefix_uses_of_course", "course", "assignment"),
)

# Runs of a course's solutions and hand-outs on a candidate image; they touch no grade.
rehearsals = Table(
    "rehearsals",
    metadata,
    Column("id", String, primary_key=True),
    Column("course", ForeignKey("courses.name"), nullable=False),
    Column("image", String, nullable=False),
    Column("present_image", String, nullable=False),
    Column("assignment", String, nullable=False),
    Column("asked_at", Double, nullable=False),
    Column("asked_by", String, nullable=False),
    Index("rehearsals_of_course", "course", "asked_at"),
)

rehearsal_jobs = Table(
    "rehearsal_jobs",
    metadata,
    Column("request", String, primary_key=True),
    Column("rehearsal", ForeignKey("rehearsals.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("assignment", String, nullable=False),
    Column("version", Integer, nullable=False),
    Column("image", String, nullable=False),
    Column("result", Text, nullable=False),
    Column("why_not", Text, nullable=False),
    Index("jobs_of_rehearsal", "rehearsal"),
)

# A row for each assignment whose students may run the hidden tests.
official_check_rules = Table(
    "official_check_rules",
    metadata,
    Column("course", String, primary_key=True),
    Column("assignment", String, primary_key=True),
    Column("per_day", Integer, nullable=False),
    Column("names_cells", Boolean, nullable=False),
    Column("by", String, nullable=False),
    Column("at", Double, nullable=False),
    _of_an_assignment(),
)

# The log of official checks: a row for each, also for those that count for nothing.
official_checks = Table(
    "official_checks",
    metadata,
    # Id of the request that runs it.
    Column("request", String, primary_key=True),
    Column("course", String, nullable=False),
    Column("assignment", String, nullable=False),
    Column("person", String, nullable=False),
    Column("version", Integer, nullable=False),
    Column("sha256", String, nullable=False),
    Column("tests_sha256", String, nullable=False),
    Column("image", String, nullable=False),
    Column("asked_at", Double, nullable=False),
    # Whether its verdict may name cells, as the rule was when it was asked for.
    Column("names_cells", Boolean, nullable=False),
    # Empty until it has ended.
    Column("outcome", String, nullable=False),
    Column("ended_at", Double),
    Column("points", Double),
    Column("max_points", Double),
    Column("cells", JSON, nullable=False),
    # Signed, as JSON; empty until it has ended.
    Column("receipt", Text, nullable=False),
    _of_an_assignment(),
    Index("official_checks_of_person", "course", "assignment", "person"),
)
leaderboards = Table(
    "leaderboards",
    metadata,
    Column("course", String, primary_key=True),
    Column("assignment", String, primary_key=True),
    Column("metric", String, nullable=False),
    # 0 where nothing can be submitted any more.
    Column("per_day", Integer, nullable=False),
    Column("public_percent", Integer, nullable=False),
    Column("counts", String, nullable=False),
    Column("private_after_due", Boolean, nullable=False),
    # The teacher's files, by SHA-256.
    Column("files", JSON, nullable=False),
    # Decides the public examples and the pseudonyms.
    Column("seed", String, nullable=False),
    Column("by", String, nullable=False),
    Column("at", Double, nullable=False),
    _of_an_assignment(),
)
# Submissions of weights: a row for each, also for those that were refused.
leaderboard_entries = Table(
    "leaderboard_entries",
    metadata,
    Column("id", String, primary_key=True),
    Column("course", String, nullable=False),
    Column("assignment", String, nullable=False),
    Column("person", String, nullable=False),
    # Id of the request that evaluates it, with others; empty while it waits for the next one, and
    # for a file that was refused before.
    Column("request", String, nullable=False),
    Column("sha256", String, nullable=False),
    Column("size", Integer, nullable=False),
    Column("sent_at", Double, nullable=False),
    # Empty until it has ended.
    Column("outcome", String, nullable=False),
    # The verdict; of one that waits, why it is evaluated once more.
    Column("sentence", Text, nullable=False),
    Column("public", Double),
    Column("private", Double),
    _of_an_assignment(),
    Index("leaderboard_entries_of_person", "course", "assignment", "person"),
    Index("leaderboard_entries_by_outcome", "outcome", "course", "assignment"),
)
