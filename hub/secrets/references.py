"""How a job or session names its secrets: ``NAME``, ``NAME:file`` or ``NAME:env=VARIABLE``.

With ``@GROUP`` at the end it is the secret of a group. Without it, the owner's secret of that name
is used, or else that of the group to which the work is charged; the stored form is complete.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ..errors import InvalidInput
from ..interfaces.secrets import SecretKey

MOST_USES: Final = 32
"""Secrets that one job or session may use."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_REFERENCE: Final = re.compile(r"([^:@]*)(?::(file|env)(?:=([^@]*))?)?(?:@(.*))?", re.DOTALL)
_TAKEN: Final = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "ENV", "BASH_ENV", "IFS", "TMPDIR"}
)
_TAKEN_PREFIXES: Final = ("CARREL", "LD_", "PYTHON", "JUPYTERHUB_", "JPY_")
_TAKEN_SUFFIX: Final = "_VISIBLE_DEVICES"
_SYNTAX: Final = "NAME, NAME:file, NAME:env or NAME:env=VARIABLE, such as HF_TOKEN:env."


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretUse:
    """The use of a secret by a job or session.

    Attributes:
        variable: the environment variable that gets the value; empty for a file.
        group: whose secret it is; empty for the owner's.
    """

    name: str
    variable: str = ""
    group: str = ""

    @classmethod
    def parse(cls, text: str) -> SecretUse:
        """Read the form that users write. Raises InvalidInput."""
        found = _REFERENCE.fullmatch(text)
        if found is None or (found[2] == "file" and found[3] is not None):
            raise InvalidInput(
                f"{text[:80]!r} does not name a secret.", accepted=_SYNTAX, field="secrets"
            )
        name = check_secret_name(found[1], field="secrets")
        variable = ""
        if found[2] == "env":
            variable = name if found[3] is None else check_variable(found[3])
        return cls(name=name, variable=variable, group=found[4] or "")

    def __str__(self) -> str:
        where = f"env={self.variable}" if self.variable else "file"
        return f"{self.name}:{where}" + (f"@{self.group}" if self.group else "")

    def key(self, owner: str) -> SecretKey:
        return SecretKey(name=self.name, owner="" if self.group else owner, group=self.group)


def check_secret_name(name: str, *, field: str = "name") -> str:
    """Raise InvalidInput unless a name can be that of a file and an environment variable."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{name[:80]!r} cannot be the name of a secret.",
            accepted="Letters, digits and _, at most 64, no digit first: such as HF_TOKEN.",
            field=field,
        )
    if is_taken(name):
        raise InvalidInput(
            f"The name {name} belongs to a variable that programs or Carrel itself read.",
            accepted="Another name, such as HF_TOKEN.",
            field=field,
        )
    return name


def check_variable(name: str) -> str:
    """Raise InvalidInput unless a secret may be in this environment variable."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{name[:80]!r} cannot be an environment variable.", accepted=_SYNTAX, field="secrets"
        )
    return check_secret_name(name, field="secrets")


def is_taken(name: str) -> bool:
    """Return whether a variable decides how programs start, or belongs to Carrel."""
    return (
        name in _TAKEN or name.startswith(_TAKEN_PREFIXES) or name.upper().endswith(_TAKEN_SUFFIX)
    )


def parse_uses(texts: list[str] | tuple[str, ...]) -> list[SecretUse]:
    """Read the secrets of a job or session. Raises InvalidInput for two in one place."""
    uses = [SecretUse.parse(text) for text in texts]
    places = [each.variable or f"{each.name} as a file" for each in uses]
    twice = next((place for place in places if places.count(place) > 1), "")
    if twice:
        raise InvalidInput(
            f"Two secrets are to be {twice}.",
            accepted="Give each secret a variable of its own: NAME:env=VARIABLE.",
            field="secrets",
        )
    if len(uses) > MOST_USES:
        raise InvalidInput(
            f"{len(uses)} secrets are too many.", accepted=f"At most {MOST_USES}.", field="secrets"
        )
    return uses
