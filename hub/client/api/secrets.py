"""Calls for secrets."""

from __future__ import annotations

from ...schemas.secrets.bodies import SecretOut, SecretsOut
from ..transport.calls import Call
from ..transport.connection import Connection, segment


class SecretCalls(Connection):
    """The caller's secrets and those of the caller's groups; values can only be set."""

    async def set_secret(self, name: str, value: str, *, group: str = "") -> SecretOut:
        """Set a secret of the caller, or of a group that the caller teaches."""
        body = {"value": value, "group": group}
        call = Call(method="PUT", path=f"secrets/{segment(name)}", json=body)
        return await self._read_call(call, SecretOut)

    async def secrets(self) -> list[SecretOut]:
        """List the secrets that the caller may use."""
        return (await self._get("secrets", SecretsOut)).secrets

    async def remove_secret(self, name: str, *, group: str = "") -> None:
        query = {"group": group} if group else {}
        call = Call(method="DELETE", path=f"secrets/{segment(name)}", query=query)
        await self._transport.send(call)
