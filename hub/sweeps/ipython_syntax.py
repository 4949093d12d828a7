"""Separate the Python code of a cell from its magics, without IPython.

A cell that Python parses has no magics. Otherwise the lines that look like one are replaced by
code with the same effect on names, or by ``pass``, so that line numbers stay. A line inside of a
text can look like a magic, too: then the cell counts as using one, which is on the safe side.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

CODE_MAGICS: Final = frozenset({"time", "capture"})
"""Magics that execute their code once, and change nothing else."""
HARMLESS_MAGICS: Final = frozenset(
    {
        "autoreload", "cd", "colors", "config", "env", "html", "javascript", "js", "latex",
        "markdown", "matplotlib", "pdb", "precision", "set_env", "svg", "xmode",
    }
)  # fmt: skip
"""Magics that change only the display or the state of the kernel's own process."""
HARMLESS_EXTENSIONS: Final = frozenset({"autoreload"})
SHELL: Final = "!"
HELP: Final = "?"

_CELL_MAGIC = re.compile(r"%%(\w+)[ \t]*(.*)")
_LINE_MAGIC = re.compile(r"(?P<indent>\s*)%(?P<name>\w+)[ \t]*(?P<rest>.*)")
_SHELL_LINE = re.compile(r"(?P<indent>\s*)!!?(?P<rest>.*)")
_ASSIGNED = re.compile(
    r"(?P<indent>\s*)(?P<names>[\w., \t\[\]*()]+?)\s*=\s*(?P<sign>[%!])(?P<rest>.*)"
)
_HELP_LINE = re.compile(r"(?P<indent>\s*)(?:\?{1,2}\s*[\w.*]+|[\w.*\[\]]+\s*\?{1,2})\s*;?\s*")
_WORD = re.compile(r"[^\W\d]\w*")
_OUTPUT_NAME = re.compile(r"(?:--no-\w+\s+)*([A-Za-z_]\w*)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Magic:
    """A magic, a shell command or a request for help.

    Attributes:
        name: of the magic, ``SHELL`` or ``HELP``.
        text: what follows the name; of a cell magic, the whole cell.
        line: from 1.
        cell: whether it is a cell magic.
    """

    name: str
    text: str
    line: int
    cell: bool = False

    @property
    def shown(self) -> str:
        if self.name == SHELL:
            return f"!{self.text.split(None, 1)[0] if self.text.strip() else ''}"
        return f"{'%%' if self.cell else '%'}{self.name}"

    @property
    def shell(self) -> bool:
        return self.name == SHELL

    @property
    def words(self) -> frozenset[str]:
        """The words of its text, which may be names of variables."""
        return frozenset(_WORD.findall(self.text))

    @property
    def harmless(self) -> bool:
        if self.name in ("load_ext", "reload_ext"):
            return self.text.strip() in HARMLESS_EXTENSIONS
        if self.name == "env":  # without a value it prints the variables
            return "=" in self.text
        if set(self.text.split("\n", 1)[0]) & set("{$"):  # IPython replaces expressions in it
            return False
        return self.name in HARMLESS_MAGICS or self.name == HELP


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonCode:
    """The code of a cell.

    Attributes:
        tree: None if it cannot be parsed.
        magics: those that are not part of the tree.
    """

    tree: ast.Module | None
    magics: tuple[Magic, ...] = ()


def parse_cell(source: str) -> PythonCode:
    """Parse the source of a code cell, magics included."""
    lines = source.split("\n")
    first = next((at for at, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return PythonCode(tree=ast.Module(body=[], type_ignores=[]))
    if found := _CELL_MAGIC.fullmatch(lines[first]):
        return _cell_magic(found[1], found[2], lines, first)
    # IPython removes the indentation of the first line from all lines.
    indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
    if indent:
        lines = [line.removeprefix(indent) for line in lines]
    tree = _tree("\n".join(lines))
    if tree is not None:
        return PythonCode(tree=tree)
    code, magics = _without_magics(lines)
    return PythonCode(tree=_tree("\n".join(code)), magics=tuple(magics))


def _cell_magic(name: str, rest: str, lines: Sequence[str], first: int) -> PythonCode:
    body = ["", *lines[first + 1 :]]
    if name not in CODE_MAGICS:
        text = "\n".join([rest, *lines[first + 1 :]])
        magic = Magic(name=name, text=text, line=first + 1, cell=True)
        return PythonCode(tree=ast.Module(body=[], type_ignores=[]), magics=(magic,))
    inner = parse_cell("\n".join(["" for _ in range(first)] + body))
    output = _OUTPUT_NAME.fullmatch(rest)
    if not rest:
        return inner
    if name != "capture" or output is None or inner.tree is None:
        unread = Magic(name=name, text=rest, line=first + 1, cell=True)
        return PythonCode(tree=inner.tree, magics=(unread, *inner.magics))
    bound = ast.increment_lineno(ast.parse(f"{output[1]} = None"), first)
    return PythonCode(
        tree=ast.Module(body=[*bound.body, *inner.tree.body], type_ignores=[]), magics=inner.magics
    )


def _without_magics(lines: Sequence[str]) -> tuple[list[str], list[Magic]]:
    code: list[str] = []
    magics: list[Magic] = []
    continued = False
    for number, line in enumerate(lines, start=1):
        if continued:
            magics.append(Magic(name=SHELL, text=line, line=number))
            code.append("")
            continued = line.endswith("\\")
            continue
        replaced, magic = _replaced(line, number)
        code.append(replaced)
        if magic is not None:
            magics.append(magic)
            continued = line.endswith("\\")
    return code, magics


def _replaced(line: str, number: int) -> tuple[str, Magic | None]:
    """Return the line as Python, and its magic if that is not part of the code."""
    if found := _HELP_LINE.fullmatch(line):
        return f"{found['indent']}pass", Magic(name=HELP, text=line.strip(), line=number)
    if found := _SHELL_LINE.fullmatch(line):
        return f"{found['indent']}pass", Magic(name=SHELL, text=found["rest"].strip(), line=number)
    if found := _ASSIGNED.fullmatch(line):
        code = f"{found['indent']}{found['names']} = None"
        if found["sign"] == "!":
            return code, Magic(name=SHELL, text=found["rest"].strip(), line=number)
        name, _, rest = found["rest"].partition(" ")
        return code, Magic(name=name, text=rest, line=number)
    if found := _LINE_MAGIC.fullmatch(line):
        if found["name"] in CODE_MAGICS and found["rest"]:
            return f"{found['indent']}{found['rest']}", None
        magic = Magic(name=found["name"], text=found["rest"], line=number)
        return f"{found['indent']}pass", magic
    return line, None


def _tree(code: str) -> ast.Module | None:
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
