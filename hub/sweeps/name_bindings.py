"""What the names of a notebook stand for, and which effects a mention of one has.

All meanings that a name has had in the notebook so far count, because the order in which cells
define it and functions use it need not be the order of the text.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from .call_effects import effect_of_builtin_call, opened_file, refined_effect
from .code_events import Access, DeferredCode, ImportedName, Mention
from .effect_rules import (
    FRAME_READERS,
    OTHER_GENERATORS,
    PATH_METHODS,
    PURE,
    SAFE_BASES,
    SAFE_DECORATORS,
    SUBMODULES,
    WRITES,
    Effect,
    EffectKind,
    effect_of_method,
    effect_of_path,
)

_PASSED_ON: Final = Effect(EffectKind.UNKNOWN, "module")
_PROPERTY_PARTS = ("setter", "getter", "deleter")
_RUN_FOR_BASES = frozenset({"__init_subclass__", "__class_getitem__", "__mro_entries__"})
"""Methods of a class that run when another one is derived from it."""


@dataclass(slots=True)
class NameBindings:
    """The meanings of the global names, up to the current place.

    Attributes:
        imports: the modules, or names of modules, that a name was imported as; the value says
            whether it is a module as a whole.
        code: the functions and classes that a name was defined as.
        assigned: names that were bound otherwise.
        stars: modules whose names were all imported.
        certain: names that are never None, in the whole notebook.
    """

    imports: dict[str, dict[str, bool]] = field(default_factory=dict)
    code: dict[str, list[DeferredCode]] = field(default_factory=dict)
    assigned: set[str] = field(default_factory=set)
    stars: list[str] = field(default_factory=list)
    certain: frozenset[str] = frozenset()

    def add_import(self, event: ImportedName) -> bool:
        """Add an import; return whether it gives the name a new meaning."""
        known = self.imports.setdefault(event.name, {})
        new = event.module not in known
        known[event.module] = known.get(event.module, False) or event.whole
        return new

    def is_bound(self, name: str) -> bool:
        return name in self.imports or name in self.code or name in self.assigned

    def is_unknown(self, name: str) -> bool:
        """Return whether neither the notebook nor Python defines a name."""
        return not (self.is_bound(name) or _is_builtin(name) or self.stars)

    def only_code(self, name: str) -> list[DeferredCode]:
        """Return the definitions of a name that has no other meaning."""
        if name in self.imports or name in self.assigned:
            return []
        return self.code.get(name, [])

    def only_imported(self) -> frozenset[str]:
        """Return the names that have been imported, and are bound in no other way."""
        return frozenset(self.imports) - self.assigned - frozenset(self.code)

    def is_only_imported(self, mention: Mention) -> bool:
        """Return whether a mention stands for one name of a module, and for nothing else."""
        if not mention.root:
            return bool(mention.module)
        other = mention.root in self.code or mention.root in self.assigned
        return not other and len(self.imports.get(mention.root, ())) == 1

    def effects(self, mention: Mention) -> Iterator[Effect]:
        """Yield the effects of a mention, apart from those of the notebook's own code."""
        if mention.inert or mention.access is not Access.LOAD:
            return
        for path, whole in self._paths(mention):
            yield from self._of_path(path, whole=whole, mention=mention)
        if self._is_object(mention):
            for attribute in mention.path:
                yield from self._of_attribute(attribute, mention)
        elif mention.root and not mention.in_text and not self.is_bound(mention.root):
            yield effect_of_builtin_call(mention, self.certain)
            for attribute in mention.path:
                yield from self._of_attribute(attribute, mention)

    def _paths(self, mention: Mention) -> Iterator[tuple[str, bool]]:
        """Yield the dotted names of modules that a mention may stand for."""
        attributes = ".".join(("", *mention.path))
        if mention.module:
            yield mention.module + attributes, "." not in mention.module
        for module, whole in self.imports.get(mention.root, {}).items():
            yield module + attributes, whole
        if mention.root and not self.is_bound(mention.root) and not _is_builtin(mention.root):
            for module in self.stars:
                yield f"{module}.{mention.root}{attributes}", False

    def _is_object(self, mention: Mention) -> bool:
        """Return whether the root may be an object, and not only a module or a builtin."""
        if not mention.root:
            return not mention.module
        return mention.root in self.assigned or mention.root in self.code

    def _of_path(self, path: str, *, whole: bool, mention: Mention) -> Iterator[Effect]:
        if not mention.path and (whole or path in SUBMODULES):
            if not mention.in_text:
                yield _PASSED_ON
            return
        effect = effect_of_path(path)
        if effect == PURE and mention.path:
            effect = effect_of_method(mention.path[-1], called=mention.call is not None)
        yield refined_effect(effect, path, mention, self.certain)

    def _of_attribute(self, name: str, mention: Mention) -> Iterator[Effect]:
        last = name == mention.path[-1]
        effect = effect_of_method(name, called=last and mention.call is not None)
        if last and name == "open" and mention.call is not None:
            yield opened_file(mention.call, mention, mode=0)
        elif last and name in PATH_METHODS and mention.call is not None:
            one = len(mention.call.args) == 1 and not mention.call.keywords
            literal = one and isinstance(mention.call.args[0], ast.Dict | ast.List | ast.Tuple)
            if one and not literal and self.has_imported("pathlib"):
                yield WRITES
        elif last and mention.call is not None and self._draws(name):
            yield refined_effect(Effect(EffectKind.RANDOM, "own"), name, mention, self.certain)
        elif effect != PURE:
            own = mention if last else replace(mention, call=None)
            yield refined_effect(effect, name, own, self.certain)

    def _draws(self, method: str) -> bool:
        """Return whether a method draws numbers in a library that the notebook imports."""
        return any(
            method in methods.split() and self.has_imported(library)
            for library, methods in OTHER_GENERATORS.items()
        )

    def has_imported(self, library: str) -> bool:
        """Return whether any name stands for a library, or for something of it."""
        return any(
            module.partition(".")[0] == library for each in self.imports.values() for module in each
        )

    def runs_at_definition(self, code: DeferredCode) -> bool:
        """Return whether the definition itself may run the code that it defines."""
        return (
            code.hooked
            or any(not self._is_safe(each, SAFE_DECORATORS) for each in code.decorators)
            or any(not self._is_safe_base(each, seen=frozenset({code.name})) for each in code.bases)
        )

    def _is_safe(self, mention: Mention, safe: frozenset[str]) -> bool:
        if mention.path and mention.path[-1] in _PROPERTY_PARTS:
            return True
        paths = [path for path, _ in self._paths(mention)]
        if mention.root and not mention.path and not self.is_bound(mention.root):
            paths.append(mention.root)
        bound = mention.root in self.assigned or mention.root in self.code
        return bool(paths) and not bound and all(path in safe for path in paths)

    def _is_safe_base(self, base: Mention, *, seen: frozenset[str]) -> bool:
        own = self.only_code(base.root) if not base.path else []
        if own:
            return base.root in seen or all(
                not code.methods & _RUN_FOR_BASES
                and not code.hooked
                and all(self._is_safe_base(b, seen=seen | {base.root}) for b in code.bases)
                for code in own
            )
        if not base.path and base.root and not self.is_bound(base.root):
            return isinstance(getattr(builtins, base.root, None), type)
        return self._is_safe(base, SAFE_BASES)


def _is_builtin(name: str) -> bool:
    return hasattr(builtins, name)


def looks_up_text(call: str) -> bool:
    """Return whether a call with this name may look up names of a text.

    Functions of Python itself do not; others might, as ``DataFrame.query`` does.
    """
    return call in FRAME_READERS or not hasattr(builtins, call)
