"""The message of ``carrel up`` when everything is ready: as text, or as one line of JSON."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..config.settings import EngineKind, Settings
from ..config.state_folder import DEFAULT_STATE, StateFolder
from ..schemas import DeviceOut


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPerson:
    """An account; with its password only if this start created it."""

    name: str
    role: str
    password: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """The data of the message; ``devices`` is None if the service did not report them."""

    state: StateFolder
    settings: Settings
    people: Sequence[DemoPerson]
    devices: Sequence[DeviceOut] | None

    def as_json(self) -> str:
        """Return url, users, devices and state as one line of JSON."""
        return json.dumps(
            {
                "url": self.settings.url,
                "users": [
                    {"name": one.name, "password": one.password, "role": one.role}
                    for one in self.people
                ],
                "devices": [
                    {"id": one.id, "model": one.model, "simulated": one.simulated}
                    for one in self.devices or ()
                ],
                "state": str(self.state.root),
            }
        )

    def as_text(self) -> str:
        return "\n".join(
            [
                "",
                f"Carrel is ready at {self.settings.url}",
                "",
                *self._people(),
                "",
                *self._devices(),
                f"State and logs: {self.state.root}",
                "",
                *self._next(),
                "",
                "Ctrl-C stops Carrel and leaves sessions and jobs running; "
                f"`{command('down', self.state)}` stops everything.",
                "",
            ]
        )

    def _people(self) -> list[str]:
        if not self.people:
            return ["There are no accounts yet."]
        new = [one for one in self.people if one.password is not None]
        if not new:
            shown = ", ".join(one.name for one in self.people[:10])
            more = ", …" if len(self.people) > 10 else ""  # noqa: PLR2004
            again = command("user passwd", self.state)
            return [
                f"Accounts: {shown}{more}",
                "Passwords were shown when the accounts were created; "
                f"`{again} NAME` sets a new one.",
            ]
        width = max(len(one.name) for one in new)
        return [
            "Sign in as one of these. The passwords are shown only once.",
            *(f"  {one.name:<{width}}  {one.password}  ({one.role})" for one in new),
        ]

    def _devices(self) -> list[str]:
        if self.devices is None:
            return ["Devices: the service did not report them; see its log."]
        if not self.devices:
            return ["Devices: none. Sessions and jobs run on CPU."]
        return [
            "Devices:",
            *(
                f"  {one.node}/{one.index}  {one.model}{' (simulated)' if one.simulated else ''}"
                for one in self.devices
            ),
        ]

    def _shared(self) -> list[str]:
        if self.settings.engine is EngineKind.DOCKER:
            return []
        return [
            "This is a demo: all sessions share this system account and are not isolated from "
            "each other."
        ]

    def _next(self) -> list[str]:
        if self.settings.demo:
            return [
                "First: open the address, sign in as student1 and start a session from the desk "
                "page.",
                f"Or run a job from another terminal, after: {program()} login {self.settings.url}",
                *self._shared(),
            ]
        if not self.people:
            return [
                "First, in another terminal:",
                f"  {command('group add', self.state)} lab --max-devices 2",
                f"  {command('user add', self.state)} ada --admin --group lab",
                "Then open the address and sign in as ada with the printed password.",
            ]
        return ["First: open the address and sign in."]


def command(verb: str, state: StateFolder) -> str:
    """Return a command line for this state folder; the default folder needs no option."""
    if state == StateFolder.at(DEFAULT_STATE):
        return f"{program()} {verb}"
    return f"{program()} {verb} --state {shlex.quote(str(state.root))}"


def program() -> str:
    """Return ``carrel`` as the user can type it: a virtual environment may not be in PATH."""
    own = Path(sys.prefix) / "bin" / "carrel"
    found = shutil.which("carrel")
    if found is not None and Path(found).absolute() == own.absolute():
        return "carrel"
    here = Path.cwd()
    return shlex.quote(str(own.relative_to(here) if own.is_relative_to(here) else own))
