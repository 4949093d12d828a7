"""What the demo adds once the hub answers: sample group, members, sample notebooks, a course."""

from __future__ import annotations

import logging
import threading

from ..courses.sample import copy_course_into, copy_into
from ..courses.services import CourseDesk
from .accounts.demo import DEMO_GROUP, demo_accounts
from .demo_course import prepare_course
from .errors import CarrelError, NotFound
from .runtime.context import Commands
from .scheduling.model.snapshot import Group

log = logging.getLogger(__name__)

_RETRY_SECONDS = 0.5
_MAX_DEVICES = 4
_MAX_DEVICES_PER_USER = 2


def prepare_demo(desk: CourseDesk, stopping: threading.Event) -> None:
    """Make the sample group, its members and its course, once; later changes to them stay."""
    while not stopping.is_set():
        try:
            if not _has_group(desk.commands):
                _prepare(desk.commands)
            prepare_course(desk)
        except CarrelError as error:
            log.info("demo: %s", error)
            stopping.wait(_RETRY_SECONDS)
        else:
            desk.commands.pulse.beat()
            return


def _has_group(commands: Commands) -> bool:
    try:
        commands.store.group(DEMO_GROUP)
    except NotFound:
        return False
    return True


def _prepare(commands: Commands) -> None:
    accounts = demo_accounts()
    for account in accounts:
        # The role of administrator comes from the account at sign-in: the hub lets no service
        # give it.
        commands.hub.add_user(account.name, admin=False)
        home = commands.files.home(account.name)
        copy_into(home)
        if account.role == "teacher":
            copy_course_into(home)
    commands.hub.add_to_group(DEMO_GROUP, tuple(account.name for account in accounts))
    # The group comes last: its presence says that everything before it is done.
    commands.store.put_group(
        Group(
            name=DEMO_GROUP,
            max_devices=_MAX_DEVICES,
            max_devices_per_user=_MAX_DEVICES_PER_USER,
        )
    )
    teachers = [account.name for account in accounts if account.role == "teacher"]
    commands.store.set_teachers(DEMO_GROUP, teachers)
