"""The tables of Carrel's database, and the constraints that the database enforces.

Constraints rule out the following states, whatever the code above does:

* a device in two leases that are not released (``one_live_lease_per_device``),
* two such leases of one request, two live sessions of one server,
* two requests of one owner with one idempotency key,
* one interval of a lease charged twice, one report of an attempt stored twice.

Times are seconds since the epoch. Only features that both SQLite and PostgreSQL have are used,
partial unique indexes among them.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

from ....scheduling.model.states import TERMINAL

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

# SQLite generates keys only in a column of its type INTEGER.
Number = BigInteger().with_variant(Integer(), "sqlite")

# Conditions of the partial indexes below, in SQL that both databases accept.
LIVE_SESSION = text("kind = 'session' AND ended_at IS NULL")
_NOT_ENDED = text("ended_at IS NULL")
CHANGED = text(
    "ended_at IS NULL AND (changes > 0 OR moved_for <> '' OR stopped_for <> ''"
    " OR expedited OR not_before IS NOT NULL)"
)
_HAS_ENDED = text("ended_at IS NOT NULL")
_NOT_RELEASED = text("released_at IS NULL")

groups = Table(
    "groups",
    metadata,
    Column("name", String, primary_key=True),
    Column("parent", ForeignKey("groups.name")),
    Column("max_devices", Integer, nullable=False),
    Column("max_devices_per_user", Integer, nullable=False),
    Column("max_seconds", Integer, nullable=False),
    Column("idle_seconds", Integer, nullable=False, server_default="1800"),
    Column("guaranteed", Integer, nullable=False, server_default="0"),
    # NULL means no limit.
    Column("borrowing", Integer),
    Column("lending", Integer),
    Column("weight", Double, nullable=False, server_default="1"),
    Column("models", JSON(none_as_null=True)),
    Column("max_sessions", Integer),
    Column("sessions_borrow", Boolean, nullable=False, server_default=false()),
    Column("budget_seconds", Double),
    Column("budget_period", String),
    Column("programs", Boolean, nullable=False, server_default=false()),
    # A removed group stays in the table, because its requests and ledger lines refer to it.
    Column("removed_at", Double),
)

group_teachers = Table(
    "group_teachers",
    metadata,
    Column("group_name", ForeignKey("groups.name"), primary_key=True),
    Column("person", String, primary_key=True),
    Index("teacher_of_groups", "person"),
)

# Days are stored as ISO dates; their time zone is up to the reader.
terms = Table(
    "terms",
    metadata,
    Column("name", String, primary_key=True),
    Column("first", String, nullable=False),
    Column("last", String, nullable=False),
)

reservations = Table(
    "reservations",
    metadata,
    Column("id", String, primary_key=True),
    Column("group_name", ForeignKey("groups.name"), nullable=False),
    Column("devices", Integer, nullable=False),
    Column("weekdays", String, nullable=False),
    Column("begins", String, nullable=False),
    Column("ends", String, nullable=False),
    Column("zone", String, nullable=False),
    Column("first", String, nullable=False),
    Column("last", String, nullable=False),
    Column("why", Text, nullable=False),
)

# The build of an image that a group has pinned. The image may be missing from every engine.
pins = Table(
    "pins",
    metadata,
    Column("group_name", ForeignKey("groups.name"), primary_key=True),
    Column("image", String, primary_key=True),
    Column("digest", String, nullable=False),
    Column("until", String),
    Column("set_by", String, nullable=False),
    Column("set_at", Double, nullable=False),
)

nodes = Table("nodes", metadata, Column("name", String, primary_key=True))

devices = Table(
    "devices",
    metadata,
    Column("id", String, primary_key=True),
    Column("node", ForeignKey("nodes.name"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("model", String, nullable=False),
    Column("memory_bytes", BigInteger, nullable=False),
    Column("simulated", Boolean, nullable=False),
    Column("driver", String, nullable=False, server_default="nvidia"),
    # Pairs of a path and the numeric id of a group.
    Column("files", JSON, nullable=False, server_default="[]"),
    Column("health", String, nullable=False),
    Column("why", Text, nullable=False),
)

# The target is a device or a node; a mark outlives both, so that there is no foreign key.
marks = Table(
    "marks",
    metadata,
    Column("target", String, primary_key=True),
    Column("kind", String, primary_key=True),
    Column("since", Double, nullable=False),
    Column("why", Text, nullable=False),
    Column("set_by", String, nullable=False),
    Column("until", Double),
)

# The last ones of each device; a device may leave the pool, so that there is no foreign key.
device_validations = Table(
    "device_validations",
    metadata,
    Column("device_id", String, primary_key=True),
    Column("at", Double, primary_key=True),
    Column("passed", Boolean, nullable=False),
    Column("rates", JSON, nullable=False),
    Column("evidence", Text, nullable=False),
)

# Append-only. Targets may have been deleted, so that there are no foreign keys.
changes = Table(
    "changes",
    metadata,
    Column("id", Number, primary_key=True),
    Column("at", Double, nullable=False),
    Column("who", String, nullable=False),
    Column("action", String, nullable=False),
    Column("target", String, nullable=False),
    Column("why", Text, nullable=False),
    Column("before", JSON, nullable=False),
    Column("after", JSON, nullable=False),
    Index("changes_of_target", "target", "id"),
    Index("changes_of_who", "who", "id"),
)

_ENDED = ", ".join(f"'{state}'" for state in sorted(TERMINAL))

requests = Table(
    "requests",
    metadata,
    # The order of submission, independent of the clock.
    Column("number", Number, primary_key=True),
    Column("id", String, nullable=False, unique=True),
    Column("kind", String, nullable=False),
    Column("owner", String, nullable=False),
    Column("group_name", ForeignKey("groups.name"), nullable=False),
    Column("devices", Integer, nullable=False),
    Column("seconds", Integer, nullable=False),
    Column("idempotency_key", String, nullable=False),
    Column("model", String),
    Column("priority", String, nullable=False),
    Column("server_name", String, nullable=False),
    Column("job", JSON(none_as_null=True)),
    Column("labels", JSON, nullable=False),
    Column("state", String, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("target", String),
    Column("cause_code", String),
    Column("cause_message", Text),
    Column("cause_details", Text),
    Column("submitted_at", Double, nullable=False),
    Column("started_at", Double),
    Column("ended_at", Double),
    Column("claim", Boolean, nullable=False, server_default=false()),
    Column("claimed_at", Double),
    Column("idle_warning", JSON(none_as_null=True)),
    Column("kept_at", Double),
    Column("preemptible", Boolean, nullable=False, server_default=false()),
    Column("deadline", Double),
    Column("expected", Double),
    Column("notice", JSON(none_as_null=True)),
    Column("changes", Integer, nullable=False, server_default="0"),
    Column("moved_for", String, nullable=False, server_default=text("''")),
    Column("stopped_for", String, nullable=False, server_default=text("''")),
    Column("image", String, nullable=False, server_default=text("''")),
    Column("expedited", Boolean, nullable=False, server_default=false()),
    Column("not_before", Double),
    # Roles and arrangement of a job of several members, without its commands.
    Column("gang", JSON(none_as_null=True)),
    UniqueConstraint("owner", "idempotency_key"),
    CheckConstraint("devices >= 0", name="devices"),
    CheckConstraint(f"(ended_at IS NOT NULL) = (state IN ({_ENDED}))", name="ended"),
    Index(
        "one_live_session_per_server",
        "owner",
        "server_name",
        unique=True,
        sqlite_where=LIVE_SESSION,
        postgresql_where=LIVE_SESSION,
    ),
    # Keeps reads of the queue fast however many requests have ended. Deliberately there is no
    # index over all states or over groups: for several of them a database would sort all matching
    # requests, and a scan from the newest one is faster.
    Index(
        "requests_not_ended",
        "state",
        "number",
        sqlite_where=_NOT_ENDED,
        postgresql_where=_NOT_ENDED,
    ),
    # Nearly empty: the cache of the queue reads it to detect changes.
    Index("requests_changed", "number", sqlite_where=CHANGED, postgresql_where=CHANGED),
    Index("requests_of_owner", "owner", "number"),
    # Live requests have an index of their own.
    Index("requests_by_end", "ended_at", sqlite_where=_HAS_ENDED, postgresql_where=_HAS_ENDED),
    # Every desk page lists both kinds; without this index, a user with a thousand jobs and no
    # session would make it scan all of them.
    Index("requests_of_owner_and_kind", "owner", "kind", "number"),
)

# A copy of ``requests.labels`` with an index.
labels = Table(
    "request_labels",
    metadata,
    Column("number", ForeignKey("requests.number"), primary_key=True),
    Column("name", String, primary_key=True),
    Column("value", String, nullable=False),
    Index("requests_of_label", "name", "value", "number"),
)

leases = Table(
    "leases",
    metadata,
    Column("id", String, primary_key=True),
    Column("request_id", ForeignKey("requests.id"), nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("node", String, nullable=False),
    Column("state", String, nullable=False),
    Column("granted_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
    Column("charged_until", Double, nullable=False),
    Column("released_at", Double),
    UniqueConstraint("request_id", "epoch"),
    CheckConstraint("(released_at IS NOT NULL) = (state = 'released')", name="released"),
    # For utilization over the last hours.
    Index("leases_by_grant", "granted_at"),
    Index("leases_by_release", "released_at"),
    Index(
        "one_live_lease_per_request",
        "request_id",
        unique=True,
        sqlite_where=_NOT_RELEASED,
        postgresql_where=_NOT_RELEASED,
    ),
)

# The history of a device outlives the device, so that there is no foreign key to it.
lease_devices = Table(
    "lease_devices",
    metadata,
    Column("lease_id", ForeignKey("leases.id"), primary_key=True),
    Column("device_id", String, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("released_at", Double),
    Index(
        "one_live_lease_per_device",
        "device_id",
        unique=True,
        sqlite_where=_NOT_RELEASED,
        postgresql_where=_NOT_RELEASED,
    ),
)

attempts = Table(
    "attempts",
    metadata,
    Column("lease_id", ForeignKey("leases.id"), primary_key=True),
    Column("token_hash", String, unique=True),
    Column("launched_at", Double),
    Column("pid", BigInteger),
    Column("process_started_at", Double),
    Column("saved_at", Double),
    Column("members", JSON(none_as_null=True)),
    # What may be wrong with the attempt of a job.
    Column("signs", JSON(none_as_null=True)),
)

# The use of CPU, memory and devices over time: lists of points, and figures of the whole attempt.
utilization = Table(
    "utilization",
    metadata,
    Column("lease_id", ForeignKey("leases.id"), primary_key=True),
    # Seconds since the grant of the lease.
    Column("begins", Double, nullable=False),
    # Between two points.
    Column("seconds", Double, nullable=False),
    Column("points", JSON, nullable=False),
    Column("mean_cores", Double),
    Column("peak_memory_bytes", BigInteger),
    Column("mean_device_percent", Double),
    Column("peak_device_bytes", BigInteger),
)

ledger = Table(
    "ledger",
    metadata,
    Column("id", Number, primary_key=True),
    Column("lease_id", ForeignKey("leases.id"), nullable=False),
    Column("request_id", ForeignKey("requests.id"), nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("owner", String, nullable=False),
    Column("group_name", ForeignKey("groups.name"), nullable=False),
    Column("devices", Integer, nullable=False),
    Column("starts_at", Double, nullable=False),
    Column("ends_at", Double, nullable=False),
    Column("device_seconds", Double, nullable=False),
    # A credit cancels the charges of a lease; a lease has at most one.
    Column("kind", String, nullable=False, server_default="charge"),
    UniqueConstraint("lease_id", "starts_at", "kind"),
    CheckConstraint("ends_at > starts_at", name="interval"),
    CheckConstraint("(device_seconds > 0) = (kind = 'charge')", name="kind"),
    # Covers sums of one owner by group, day or request.
    Index(
        "ledger_of_owner",
        *("owner", "ends_at", "starts_at", "group_name", "request_id", "device_seconds"),
    ),
    Index("ledger_of_request", "request_id", "device_seconds"),
    # Covers sums of all owners over a period.
    Index("ledger_of_time", "ends_at", "starts_at", "owner", "group_name", "device_seconds"),
)

# The offset between the service clock and the monotonic clock, for the next start; one row.
service_clock = Table(
    "service_clock",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("boot", String, nullable=False),
    Column("seconds", Double, nullable=False),
    CheckConstraint("id = 1", name="one"),
)

# What the service starts by cron: jobs, or rehearsals of ``course``; ``job`` is its JSON text.
schedules = Table(
    "schedules",
    metadata,
    Column("number", Number, primary_key=True),
    Column("id", String, nullable=False, unique=True),
    Column("owner", String, nullable=False),
    Column("group_name", String, nullable=False),
    Column("what", Text, nullable=False),
    Column("devices", Integer, nullable=False),
    Column("cron", String, nullable=False),
    Column("zone", String, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("idempotency_key", String, nullable=False),
    Column("course", String, nullable=False, server_default=text("''")),
    Column("state", String, nullable=False),
    Column("paused_why", Text, nullable=False),
    Column("paused_at", Double),
    Column("next_at", Double),
    Column("last_due", Double),
    Column("last_request", String, nullable=False),
    Column("last_error", Text, nullable=False),
    Column("missed", Integer, nullable=False),
    Column("refusals", Integer, nullable=False),
    Column("job", Text, nullable=False),
    UniqueConstraint("owner", "idempotency_key"),
    Index("schedules_due", "next_at"),
)

announcements = Table(
    "announcements",
    metadata,
    Column("id", String, primary_key=True),
    Column("text", Text, nullable=False),
    Column("level", String, nullable=False),
    Column("starts_at", Double, nullable=False),
    Column("ends_at", Double, nullable=False),
    Column("author", String, nullable=False),
)

closed_announcements = Table(
    "closed_announcements",
    metadata,
    Column("announcement", ForeignKey("announcements.id"), primary_key=True),
    Column("person", String, primary_key=True),
)

# A token belongs to one program, of which only the hash is stored.
programs = Table(
    "programs",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("owner", String, nullable=False),
    Column("token_hash", String, nullable=False, unique=True),
    Column("device_seconds", Double, nullable=False),
    Column("approve_above", Double),
    Column("reads_owner", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("revoked_at", Double),
    Column("revoked_by", String, nullable=False),
    Index("programs_of_owner", "owner", "name"),
)

program_jobs = Table(
    "program_jobs",
    metadata,
    Column("request_id", ForeignKey("requests.id"), primary_key=True),
    Column("program", ForeignKey("programs.id"), nullable=False),
    Column("needs_approval", Boolean, nullable=False),
    Column("approved_at", Double),
    Index("jobs_of_program", "program"),
)

# The number of healthy devices from a time on; one row per change.
capacity = Table(
    "capacity",
    metadata,
    Column("id", Number, primary_key=True),
    Column("at", Double, nullable=False),
    Column("healthy", Integer, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("id", Number, primary_key=True),
    Column("request_id", ForeignKey("requests.id"), nullable=False),
    Column("epoch", Integer, nullable=False),
    # Set for reports of an attempt; both are NULL for a change of state.
    Column("lease_id", ForeignKey("leases.id")),
    Column("seq", Integer),
    Column("at", Double, nullable=False),
    Column("kind", String, nullable=False),
    Column("data", JSON, nullable=False),
    UniqueConstraint("lease_id", "seq"),
    Index("events_of_request", "request_id", "id"),
)
