"""What code does with global names, as a list of events in the order in which it does it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Access(StrEnum):
    """What happens to a name itself."""

    LOAD = "load"
    STORE = "store"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A name, or attributes of it, in the code.

    Attributes:
        root: the global name; empty for a local variable or the result of an expression.
        path: the attributes after it.
        module: of a local import, the module that the root stands for.
        call: the call of what is named.
        definite: the call runs whenever its block does.
        closed: a file that it opens is closed in the same statement.
        changed: the object of the root may be changed in place.
        alone: it is the whole statement, which IPython may take for a magic.
        inert: its code is certain not to run here, as in an annotation.
        in_text: a word of a text, in which names of the notebook are looked up.
    """

    root: str
    line: int
    path: tuple[str, ...] = ()
    access: Access = Access.LOAD
    module: str = ""
    call: ast.Call | None = None
    definite: bool = False
    closed: bool = False
    changed: bool = False
    alone: bool = False
    inert: bool = False
    in_text: bool = False

    @property
    def shown(self) -> str:
        return ".".join(filter(None, [self.module or self.root, *self.path]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedName:
    """A global name that an import binds.

    Attributes:
        module: the dotted name that it stands for.
        whole: it is bound by ``import``, so that it is a module.
    """

    name: str
    module: str
    line: int
    whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StarImport:
    """An import of all names of a module."""

    module: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferredCode:
    """Code that runs later: of a function, the methods of a class, or a lambda expression.

    Attributes:
        name: the global name that is bound to it; empty for an expression.
        events: of all its code.
        decorators: of the function, the class and its methods.
        bases: of the class.
        hooked: creating it may run its code in a way that is not known.
        methods: names of the methods of a class.
        lazy: calling it does not run its code at once, or not as written.
    """

    name: str
    line: int
    events: tuple[Event, ...]
    decorators: tuple[Mention, ...] = ()
    bases: tuple[Mention, ...] = ()
    hooked: bool = False
    methods: frozenset[str] = frozenset()
    lazy: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TextMention:
    """The words of a text that a call gets, which might look up names.

    Attributes:
        root: the global name that is called; empty for a method.
    """

    words: frozenset[str]
    call: str
    root: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameLookup:
    """A call that looks up names of a computed text in the variables of its caller."""

    call: str
    root: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialText:
    """A text with a meaning outside of the notebook: an address, or a variable of the job."""

    text: str
    line: int
    address: bool


Event: TypeAlias = (
    "Mention | ImportedName | StarImport | DeferredCode | TextMention | FrameLookup | SpecialText"
)
