"""Fill in the templates of OpenPAI: ``<% $parameters.epochs %>``, ``<% $data.uri[0] %>``.

They name values of ``parameters``, ``secrets``, and of the data, script and output of the task
role (openpai-protocol, schemas/v2). A value is inserted as the file writes it, and is not filled in
again. OpenPAI inserts nothing where a value is missing; here that is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from .yaml_source import MalformedJobFile, YamlList, YamlMapping, YamlNode, YamlScalar

_TEMPLATE: Final = re.compile(r"<%(.*?)%>", re.DOTALL)
_REFERENCE: Final = re.compile(r"\$([A-Za-z]+)((?:\.[\w-]+|\[[0-9]{1,4}\])+)")
_STEP: Final = re.compile(r"\.([\w-]+)|\[([0-9]+)\]")
SCOPES: Final = ("parameters", "data", "script", "output")
_ACCEPTED: Final = (
    "<% $parameters.NAME %>, <% $data.uri[0] %>, <% $script.uri %> or <% $output.uri %>."
)


_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


def secret_variable(name: str) -> str:
    """Return how commands of the shell read a secret of this name."""
    return f"${{{name}}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateScope:
    """The values that the commands of one task role may name.

    Attributes:
        role: the task role, for errors.
        values: by the first name of a reference, without ``$``.
    """

    file: str
    role: str
    values: Mapping[str, YamlNode]

    def filled(self, command: YamlScalar) -> str:
        """Return a command with its templates filled in.

        Raises:
            MalformedJobFile: a template is unknown, or has no value.
        """

        def value(match: re.Match[str]) -> str:
            return self._value(match.group(1).strip(), command.line)

        left = _TEMPLATE.sub("", command.text)
        if "<%" in left:
            raise self._error(command.line, "A template has no end", "Close '<%' with '%>'.")
        return _TEMPLATE.sub(value, command.text)

    def _value(self, reference: str, line: int) -> str:
        match = _REFERENCE.fullmatch(reference)
        if match and match.group(1) == "secrets":
            return self._secret(match.group(2).removeprefix("."), line)
        if match is None or match.group(1) not in SCOPES:
            raise self._error(line, f"The template {reference[:80]!r} is not known", _ACCEPTED)
        node: YamlNode | None = self.values.get(match.group(1))
        for key, index in _STEP.findall(match.group(2)):
            if key and isinstance(node, YamlMapping):
                node = node.values.get(key)
            elif index and isinstance(node, YamlList) and int(index) < len(node.items):
                node = node.items[int(index)]
            else:
                node = None
        if not isinstance(node, YamlScalar) or node.is_null:
            raise self._error(line, f"{reference[:80]} has no value", self._known(match.group(1)))
        return node.text

    def _secret(self, name: str, line: int) -> str:
        """Return the variable of the shell that has the value of a secret of the file."""
        node = self.values.get("secrets")
        if not isinstance(node, YamlMapping) or name not in node.values:
            raise self._error(
                line, f"$secrets.{name[:80]} is not in the file", "Name it in secrets."
            )
        if not _VARIABLE.fullmatch(name):
            raise self._error(
                line, f"The name {name[:80]!r} of a secret is not accepted here",
                "Letters, digits and _, no digit first, such as HF_TOKEN.",
            )  # fmt: skip
        return secret_variable(name)

    def _known(self, scope: str) -> str:
        node = self.values.get(scope)
        if isinstance(node, YamlMapping):
            return f"Known: {', '.join(f'${scope}.{name}' for name in node.values)[:300]}."
        if scope == "parameters":
            return "Define it in parameters."
        return f"Name a prerequisite with '{scope}:' in the task role."

    def _error(self, line: int, message: str, accepted: str) -> MalformedJobFile:
        text = f"Task role {self.role}: {message}."
        return MalformedJobFile(self.file, line, text, accepted=accepted)


def escaped(script: str) -> tuple[str, bool]:
    """Return text that is filled in to ``script``, and whether it needs the parameter ``open``.

    The value of the parameter is ``<%``.
    """
    return script.replace("<%", "<% $parameters.open %>"), "<%" in script
