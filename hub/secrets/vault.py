"""Set, list and remove secrets, and hand their values to the attempts that may use them.

A user has secrets; a group has secrets that its teachers and administrators set and its members
use. Values leave the service only to an attempt, at its start, and each such use is in the audit
log. Whether its owner may still use a secret is checked at that moment.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import CarrelError, Forbidden, InvalidInput, NotAMember, NotFound, TooLarge
from ..groups.membership import Membership
from ..interfaces.secrets import SecretKey, StoredSecret
from ..records.audit import AuditAction, AuditEntry
from ..records.identity import Identity
from ..records.requests import RequestRecord
from ..runtime.context import Context
from ..schemas.secrets.bodies import SecretIn, SecretOut, SecretsOut, SecretValuesOut
from .references import SecretUse, check_secret_name, parse_uses

MOST_BYTES = 64 << 10
MOST_SECRETS = 100
"""Secrets of one user or group."""
_ACCEPTED = f"Text of 1 byte to {MOST_BYTES >> 10} KiB without the character NUL."


@dataclass(frozen=True, slots=True)
class SecretVault:
    """The secrets of all users and groups."""

    context: Context

    def put(self, who: Identity, name: str, body: SecretIn) -> SecretOut:
        """Set a secret of the caller, or of a group.

        Raises:
            InvalidInput: the name or the value is not accepted.
            Forbidden: the caller may not set secrets of the group.
        """
        key = self._key(who, check_secret_name(name), body.group)
        value = _checked(body.value)
        c = self.context
        known = c.store.secret(key)
        change = self._entry(AuditAction.SECRET_SET, key, who.name, {"replaced": known is not None})
        stored = StoredSecret(
            key=key,
            token=c.cipher.encrypt(value, purpose=_purpose(key)),
            set_by=who.name,
            set_at=change.at,
        )
        c.store.put_secret(stored, most=MOST_SECRETS, change=change)
        return _out(stored, details=True)

    def all(self, who: Identity) -> SecretsOut:
        """List the secrets of the caller and of the caller's groups, without values."""
        groups = sorted(Membership.of(self.context).names(who))
        found = self.context.store.secrets(owner=who.name, groups=groups)
        taught = self.context.store.taught_by(who.name)
        return SecretsOut(
            secrets=[
                _out(each, details=who.admin or not each.key.group or each.key.group in taught)
                for each in found
            ]
        )

    def settable_groups(self, who: Identity) -> list[str]:
        """Return the groups whose secrets the caller may set."""
        store = self.context.store
        taught = store.taught_by(who.name)
        return [each.name for each in store.groups() if who.admin or each.name in taught]

    def remove(self, who: Identity, name: str, group: str = "") -> None:
        """Remove a secret. Raises NotFound or Forbidden."""
        key = self._key(who, name, group)
        change = self._entry(AuditAction.SECRET_REMOVE, key, who.name, {})
        if not self.context.store.remove_secret(key, change=change):
            raise self._unknown(name, self._usable(who.name, group), group)

    def resolved(self, owner: str, group: str, texts: list[str]) -> tuple[str, ...]:
        """Return the complete form of the secrets of a job or session that is submitted.

        Args:
            group: to which the work is charged.

        Raises:
            InvalidInput: the syntax is wrong.
            NotFound: there is no such secret; the message lists those that exist.
            NotAMember: the owner is not in the group of a secret.
        """
        if not texts:
            return ()
        uses = parse_uses(texts)
        return tuple(str(self._resolved(owner, group, each)) for each in uses)

    def values(self, request: RequestRecord, epoch: int) -> SecretValuesOut:
        """Return the values for an attempt, and record their use.

        Nothing is returned unless all are there; ``missing`` then says which is not, and why.

        Raises:
            Unavailable: JupyterHub does not answer.
        """
        c = self.context
        texts = request.job.secrets if request.job else c.store.session_secrets(request.id)
        uses = parse_uses(texts)
        files: dict[str, str] = {}
        variables: dict[str, str] = {}
        groups = self._groups(request.owner) if any(each.group for each in uses) else []
        for use in uses:
            key = use.key(request.owner)
            stored = c.store.secret(key)
            if use.group and use.group not in groups:
                return SecretValuesOut(
                    missing=f"The secret {use.name} belongs to the group {use.group}, of which "
                    f"{request.owner} is not a member any more."
                )
            if stored is None:
                holder = f"the group {use.group}" if use.group else request.owner
                return SecretValuesOut(
                    missing=f"The secret {use.name} of {holder} has been removed."
                )
            try:
                value = c.cipher.decrypt(stored.token, purpose=_purpose(key)).decode()
            except CarrelError as error:
                return SecretValuesOut(missing=f"The secret {use.name} cannot be read. {error}")
            if use.variable:
                variables[use.variable] = value
            else:
                files[use.name] = value
        for use in uses:
            used_as = f"env={use.variable}" if use.variable else "file"
            after: dict[str, str | int | bool] = {
                "request": request.id,
                "attempt": epoch,
                "as": used_as,
            }
            key = use.key(request.owner)
            entry = self._entry(AuditAction.SECRET_USE, key, request.owner, after)
            c.store.use_secret(key, change=entry)
        return SecretValuesOut(files=files, variables=variables)

    def _resolved(self, owner: str, group: str, use: SecretUse) -> SecretUse:
        store = self.context.store
        if not use.group and store.secret(use.key(owner)) is not None:
            return use
        chosen = use.group or group
        if chosen not in self._groups(owner):
            raise NotAMember(
                f"You are not a member of {chosen[:80]}.",
                accepted="Secrets of a group are for its members.",
                field="secrets",
            )
        found = SecretUse(name=use.name, variable=use.variable, group=chosen)
        if store.secret(found.key(owner)) is None:
            raise self._unknown(use.name, self._usable(owner, chosen), use.group)
        return found

    def _groups(self, owner: str) -> list[str]:
        return [each.name for each in Membership.of(self.context).groups_of(owner)]

    def _usable(self, owner: str, group: str) -> list[str]:
        found = self.context.store.secrets(owner=owner, groups=[group] if group else [])
        return [f"{each.key.name}@{group}" if each.key.group else each.key.name for each in found]

    def _key(self, who: Identity, name: str, group: str) -> SecretKey:
        """Return the key of a secret that the caller may change. Raises Forbidden, NotFound."""
        if not group:
            return SecretKey(name=name, owner=who.name)
        self.context.store.group(group)
        if not who.admin and group not in self.context.store.taught_by(who.name):
            raise Forbidden(
                f"Only teachers of {group} and administrators may change its secrets.",
                accepted="Set a secret of your own: omit the group.",
                field="group",
            )
        return SecretKey(name=name, group=group)

    def _entry(
        self, action: AuditAction, key: SecretKey, who: str, after: dict[str, str | int | bool]
    ) -> AuditEntry:
        return AuditEntry(
            at=self.context.clock(), who=who, action=action, target=key.label, after=after
        )

    def _unknown(self, name: str, known: list[str], group: str) -> NotFound:
        whose = f"The group {group} has" if group else "You have"
        listed = ", ".join(known[:20]) + (", …" if known[20:] else "")
        return NotFound(
            f"{whose} no secret {name[:80]!r}.",
            accepted=f"Secrets that exist: {listed}."
            if known
            else f"Set it with: carrel secret set {name[:80]}"
            + (f" --group {group}" * bool(group)),
            field="secrets",
        )


def _checked(value: object) -> bytes:
    """Return the value as UTF-8. Raises InvalidInput or TooLarge, never with the value."""
    if not isinstance(value, str):
        raise InvalidInput("The value is not text.", accepted=_ACCEPTED, field="value")
    try:
        data = value.encode()
    except UnicodeEncodeError:
        data = b"\0"
    if len(data) > MOST_BYTES:
        raise TooLarge(f"The value has {len(data) >> 10:,} KiB.", accepted=_ACCEPTED, field="value")
    if not data.strip() or b"\0" in data:
        raise InvalidInput(
            "The value is empty." if not data.strip() else "The value is not text.",
            accepted=f"{_ACCEPTED} Encode binary data, for example with base64.",
            field="value",
        )
    return data


def _purpose(key: SecretKey) -> str:
    return f"secret/{key.owner}/{key.group}/{key.name}"


def _out(stored: StoredSecret, *, details: bool) -> SecretOut:
    return SecretOut(
        name=stored.key.name,
        group=stored.key.group,
        set_by=stored.set_by,
        set_at=stored.set_at,
        used_at=stored.used_at,
        used_by=stored.used_by if details else "",
        used_in=stored.used_in if details else "",
    )
