"""The tables of the embedded accounts, in a database of their own."""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData()

accounts = sa.Table(
    "accounts",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("admin", sa.Boolean, nullable=False),
    sa.Column("salt", sa.LargeBinary, nullable=False),
    sa.Column("key", sa.LargeBinary, nullable=False),
    sa.Column("scrypt_n", sa.Integer, nullable=False),
    sa.Column("scrypt_r", sa.Integer, nullable=False),
    sa.Column("scrypt_p", sa.Integer, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("password_at", sa.Float, nullable=False),
)

attempts = sa.Table(
    "sign_in_attempts",
    metadata,
    sa.Column("key", sa.String(400), primary_key=True),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("last_at", sa.Float, nullable=False),
    sa.Column("wait_until", sa.Float, nullable=False),
)

password_resets = sa.Table(
    "password_resets",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("reset_at", sa.Float, nullable=False),
)
"""Users whose earlier sign-ins JupyterHub has yet to end."""

# One-time links by which users set their password; only hashes of their codes are stored.
password_links = sa.Table(
    "password_links",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("code_hash", sa.String(64), nullable=False, unique=True),
    sa.Column("expires_at", sa.Float, nullable=False),
)
