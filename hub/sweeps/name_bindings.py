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

from .code_events import Access, DeferredCode, ImportedName, Mention
from .effect_rules import (
    FRAME_READERS,
    METHODS,
    NAMESPACE,
    NETWORK,
    OPENS,
    PATH_METHODS,
    PURE,
    RANDOM_NUMPY,
    RANDOM_OPTIONS,
    SAFE_BASES,
    SAFE_DECORATORS,
    SEED_ARGUMENTS,
    SUBMODULES,
    TEXT_WITHOUT_ARGUMENTS,
    UNKNOWN,
    UNPICKLES,
    WRITES,
    Effect,
    EffectKind,
    effect_of_builtin,
    effect_of_path,
)

_STAYS_OPEN: Final = Effect(EffectKind.OPENS)
_PASSED_ON: Final = Effect(EffectKind.UNKNOWN, "module")
_GET_ATTRIBUTE = {"getattr": 1, "setattr": 1, "delattr": 1, "hasattr": 1}
_BY_NAME = {"operator.methodcaller": 0, "operator.attrgetter": 0}
_PROPERTY_PARTS = ("setter", "getter", "deleter")
_PLACES = ("path_or_buf", "buf", "path", "fname", "file", "name", "excel_writer", "con", "filename")
_TEXT_MODES = frozenset("rbtU")


@dataclass(slots=True)
class NameBindings:
    """The meanings of the global names, up to the current place.

    Attributes:
        imports: the modules, or names of modules, that a name was imported as; the value says
            whether it is a module as a whole.
        code: the functions and classes that a name was defined as.
        assigned: names that were bound otherwise.
        stars: modules whose names were all imported.
    """

    imports: dict[str, dict[str, bool]] = field(default_factory=dict)
    code: dict[str, list[DeferredCode]] = field(default_factory=dict)
    assigned: set[str] = field(default_factory=set)
    stars: list[str] = field(default_factory=list)

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
            yield _of_builtin(mention)
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
            effect = METHODS.get(mention.path[-1], PURE)
        yield _refined(effect, path, mention)

    def _of_attribute(self, name: str, mention: Mention) -> Iterator[Effect]:
        effect = METHODS.get(name, PURE)
        last = name == mention.path[-1]
        if last and name == "open" and mention.call is not None:
            yield _opened(mention.call, mention, mode=0)
        elif last and name in PATH_METHODS and mention.call is not None:
            one = len(mention.call.args) == 1 and not mention.call.keywords
            literal = one and isinstance(mention.call.args[0], ast.Dict | ast.List | ast.Tuple)
            if one and not literal and self._has_paths():
                yield WRITES
        elif effect != PURE:
            yield _refined(effect, name, mention if last else replace(mention, call=None))

    def _has_paths(self) -> bool:
        return any(
            module.partition(".")[0] == "pathlib"
            for each in self.imports.values()
            for module in each
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
                "__init_subclass__" not in code.methods
                and not code.hooked
                and all(self._is_safe_base(b, seen=seen | {base.root}) for b in code.bases)
                for code in own
            )
        if not base.path and base.root and not self.is_bound(base.root):
            return isinstance(getattr(builtins, base.root, None), type)
        return self._is_safe(base, SAFE_BASES)


def _is_builtin(name: str) -> bool:
    return hasattr(builtins, name)


def _of_builtin(mention: Mention) -> Effect:
    name, call = mention.root, mention.call
    if name in ("vars", "dir"):
        return PURE if call is not None and (call.args or call.keywords) else NAMESPACE
    if name in _GET_ATTRIBUTE:
        return _named_attribute(call, _GET_ATTRIBUTE[name], mention)
    return _refined(effect_of_builtin(name), name, mention)


def _named_attribute(call: ast.Call | None, position: int, mention: Mention) -> Effect:
    """Return the effect of an attribute whose name is an argument."""
    match call.args[position : position + 1] if call is not None else []:
        case [ast.Constant(value=str(name))]:
            return _refined(METHODS.get(name, PURE), name, replace(mention, call=None))
        case _:
            return UNKNOWN


def _refined(effect: Effect, path: str, mention: Mention) -> Effect:
    """Return the effect of a call with its arguments."""
    call = mention.call
    if path in _BY_NAME:
        return _named_attribute(call, _BY_NAME[path], mention)
    match effect.kind:
        case EffectKind.OPENS:
            return WRITES if call is None else _opened(call, mention, mode=1)
        case EffectKind.SEED if call is None or not _has_seed(call):
            return Effect(EffectKind.RANDOM)
        case EffectKind.OWN_SEED:
            return PURE if call is not None and _has_seed(call) else Effect(EffectKind.RANDOM)
        case EffectKind.RANDOM if effect.library and call is not None and _seeded(call):
            return PURE
        case EffectKind.WRITES if _returns_text(path, call):
            return PURE
        case EffectKind.PURE if call is not None:
            return _by_arguments(path, call, mention)
    return effect


def _opened(call: ast.Call, mention: Mention, *, mode: int) -> Effect:
    given = next((each.value for each in call.keywords if each.arg == "mode"), None)
    if given is None and len(call.args) > mode:
        given = call.args[mode]
    match given:
        case None:
            pass
        case ast.Constant(value=str(text)) if set(text) <= _TEXT_MODES:
            pass
        case _:
            return WRITES
    return PURE if mention.closed else OPENS


def _has_seed(call: ast.Call) -> bool:
    given = [*call.args, *(each.value for each in call.keywords)]
    return bool(given) and not any(_is_constant(each, None) for each in given[:1])


def _seeded(call: ast.Call) -> bool:
    return any(
        each.arg in SEED_ARGUMENTS and not _is_constant(each.value, None) for each in call.keywords
    )


def _returns_text(path: str, call: ast.Call | None) -> bool:
    if call is None or path.rpartition(".")[2] not in TEXT_WITHOUT_ARGUMENTS:
        return False
    return not call.args and not any(
        each.arg is None or each.arg in _PLACES for each in call.keywords
    )


def _by_arguments(path: str, call: ast.Call, mention: Mention) -> Effect:
    root = path.partition(".")[0]
    given = {each.arg for each in call.keywords if not _is_constant(each.value, False)}
    if "download" in given:
        return NETWORK
    if path == "logging.basicConfig" and given & {"filename", "handlers"}:
        return WRITES
    if root == "pandas" and given & {"chunksize", "iterator"}:
        return _STAYS_OPEN
    if path == "numpy.load" and "allow_pickle" in given:
        return UNPICKLES
    if path == "numpy.load" and not mention.closed and not _names_array(call):
        return _STAYS_OPEN
    if root in ("sklearn", "torch") and given & RANDOM_OPTIONS and not _seeded(call):
        return Effect(EffectKind.RANDOM, "torch") if root == "torch" else RANDOM_NUMPY
    return PURE


def _names_array(call: ast.Call) -> bool:
    """Return whether the file of numpy.load is certainly no archive, which would stay open."""
    return any(
        isinstance(each, ast.Constant)
        and isinstance(each.value, str)
        and each.value.endswith(".npy")
        for argument in call.args
        for each in ast.walk(argument)
    )


def _is_constant(node: ast.expr, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def looks_up_text(call: str) -> bool:
    """Return whether a call with this name may look up names of a text.

    Functions of Python itself do not; others might, as ``DataFrame.query`` does.
    """
    return call in FRAME_READERS or not hasattr(builtins, call)
