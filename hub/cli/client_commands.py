"""The commands for all users, by name.

They import only ``hub.client`` and the parts of courses that need no more, so that they work
with the client package alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import click

from .admin.audit import audit_command
from .admin.images import images_command
from .admin.pool import pool_command
from .courses.courses import course_command
from .jobs.diff import diff_command
from .jobs.gallery import gallery_command
from .jobs.halt import halt_command
from .jobs.job_files import export_command, import_command
from .jobs.output import output_command
from .jobs.pipeline import pipeline_command
from .jobs.requests import cancel_command, logs_command, ps_command, queue_command, show_command
from .jobs.resume import resume_command
from .jobs.schedules import schedule_command
from .jobs.submit import run_command, submit_command, wait_command
from .jobs.sweep import sweep_command, trials_command
from .jobs.why import change_command, why_command
from .login import login_command, logout_command
from .notify import notify_command
from .programs.mcp import mcp_command
from .programs.token import approve_command, token_command
from .receipts.receipt import receipt_command
from .receipts.rerun import rerun_command
from .receipts.site_key import site_key_command
from .receipts.verify import verify_command
from .secrets import secret_command
from .sessions.quote import quote_command
from .sessions.sessions import session_command
from .usage import history_command, usage_command

COMMANDS: Mapping[str, click.Command] = MappingProxyType(
    {
        "login": login_command,
        "logout": logout_command,
        "submit": submit_command,
        "run": run_command,
        "ps": ps_command,
        "show": show_command,
        "why": why_command,
        "change": change_command,
        "logs": logs_command,
        "cancel": cancel_command,
        "halt": halt_command,
        "resume": resume_command,
        "output": output_command,
        "diff": diff_command,
        "wait": wait_command,
        "schedule": schedule_command,
        "secret": secret_command,
        "gallery": gallery_command,
        "import": import_command,
        "export": export_command,
        "pipeline": pipeline_command,
        "sweep": sweep_command,
        "trials": trials_command,
        "session": session_command,
        "quote": quote_command,
        "queue": queue_command,
        "pool": pool_command,
        "audit": audit_command,
        "images": images_command,
        "course": course_command,
        "notify": notify_command,
        "token": token_command,
        "approve": approve_command,
        "mcp": mcp_command,
        "usage": usage_command,
        "history": history_command,
        "receipt": receipt_command,
        "rerun": rerun_command,
        "verify": verify_command,
        "site-key": site_key_command,
    }
)
