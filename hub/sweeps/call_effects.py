"""Effects of calls that depend on their arguments: modes of files, seeds, names, options."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Final

from .code_events import Mention
from .effect_rules import (
    NAMESPACE,
    NETWORK,
    OPENS,
    PURE,
    RANDOM_NUMPY,
    RANDOM_OPTIONS,
    SEED_ARGUMENTS,
    TEXT_WITHOUT_ARGUMENTS,
    TIME,
    UNKNOWN,
    UNPICKLES,
    WRITES,
    Effect,
    EffectKind,
    effect_of_builtin,
    effect_of_method,
)
from .seed_values import is_certain

_STAYS_OPEN: Final = Effect(EffectKind.OPENS)
_GET_ATTRIBUTE = {"getattr": 1, "setattr": 1, "delattr": 1, "hasattr": 1}
_BY_NAME = {"operator.methodcaller": 0, "operator.attrgetter": 0}
_PLACES = ("path_or_buf", "buf", "path", "fname", "file", "name", "excel_writer", "con", "filename")
_DATA_AND_BATCH_SIZE = 2
"""The arguments of a DataLoader before ``shuffle``."""
_CLOCK_TEXTS = ("now", "today")


def effect_of_builtin_call(mention: Mention, certain: frozenset[str]) -> Effect:
    """Return the effect of a name of Python or IPython."""
    name, call = mention.root, mention.call
    if name in ("vars", "dir"):
        return PURE if call is not None and (call.args or call.keywords) else NAMESPACE
    if name in _GET_ATTRIBUTE:
        return _named_attribute(call, _GET_ATTRIBUTE[name], mention, certain)
    return refined_effect(effect_of_builtin(name), name, mention, certain)


def _named_attribute(
    call: ast.Call | None, position: int, mention: Mention, certain: frozenset[str]
) -> Effect:
    """Return the effect of an attribute whose name is an argument."""
    match call.args[position : position + 1] if call is not None else []:
        case [ast.Constant(value=str(name))]:
            return refined_effect(
                effect_of_method(name, called=True), name, replace(mention, call=None), certain
            )
        case _:
            return UNKNOWN


def refined_effect(effect: Effect, path: str, mention: Mention, certain: frozenset[str]) -> Effect:
    """Return the effect of a name with the arguments of its call.

    Args:
        path: the dotted name, or that of a method.
        certain: the names that are never None.
    """
    call = mention.call
    if path in _BY_NAME:
        return _named_attribute(call, _BY_NAME[path], mention, certain)
    match effect.kind:
        case EffectKind.OPENS:
            return WRITES if call is None else opened_file(call, mention, mode=1)
        case EffectKind.SEED if call is None or not _has_seed(call, certain):
            return Effect(EffectKind.RANDOM)
        case EffectKind.OWN_SEED:
            return (
                PURE if call is not None and _has_seed(call, certain) else Effect(EffectKind.RANDOM)
            )
        case EffectKind.RANDOM if effect.origin and call is not None and _seeded(call, certain):
            return PURE
        case EffectKind.RANDOM if path.endswith("resample") and _has_text(call):
            return PURE  # of a table, by time
        case EffectKind.WRITES if _returns_text(path, call):
            return PURE
        case EffectKind.PURE if call is not None:
            return _by_arguments(path, call, mention, certain)
    return effect


def opened_file(call: ast.Call, mention: Mention, *, mode: int) -> Effect:
    """Return the effect of opening a file; ``mode`` is the position of that argument."""
    given = next((each.value for each in call.keywords if each.arg == "mode"), None)
    if given is None and len(call.args) > mode:
        given = call.args[mode]
    if any(isinstance(each, ast.Starred) for each in call.args) or _unpacks(call):
        return WRITES
    match given:
        case None:
            pass
        case ast.Constant(value=str(text)) if text.strip("btU")[:1] == "r" and "+" not in text:
            pass
        case _:
            return WRITES
    return PURE if mention.closed else OPENS


def _has_seed(call: ast.Call, certain: frozenset[str]) -> bool:
    given = [*call.args, *(each.value for each in call.keywords)]
    return bool(given) and is_certain(given[0], certain)


def _seeded(call: ast.Call, certain: frozenset[str]) -> bool:
    return any(
        each.arg in SEED_ARGUMENTS and is_certain(each.value, certain) for each in call.keywords
    )


def _returns_text(path: str, call: ast.Call | None) -> bool:
    if call is None or path.rpartition(".")[2] not in TEXT_WITHOUT_ARGUMENTS:
        return False
    return not call.args and not any(
        each.arg is None or each.arg in _PLACES for each in call.keywords
    )


def _by_arguments(path: str, call: ast.Call, mention: Mention, certain: frozenset[str]) -> Effect:
    root = path.partition(".")[0]
    given = {
        each.arg
        for each in call.keywords
        if not (isinstance(each.value, ast.Constant) and each.value.value in (False, None))
    }
    if "download" in given or (root == "torchvision" and given & {"weights", "pretrained"}):
        return NETWORK
    if path == "logging.basicConfig" and given & {"filename", "handlers"}:
        return WRITES
    if root in ("pandas", "numpy") and any(_is_clock(each) for each in call.args):
        return TIME
    if root == "pandas" and given & {"chunksize", "iterator"}:
        return _STAYS_OPEN
    if path == "numpy.load":
        return _loaded_array(call, mention, given)
    if path == "torch.utils.data.DataLoader" and len(call.args) > _DATA_AND_BATCH_SIZE:
        given.add("shuffle")
    options = given & RANDOM_OPTIONS or _unpacks(call)
    if root in ("sklearn", "torch") and options and not _seeded(call, certain):
        return Effect(EffectKind.RANDOM, "torch") if root == "torch" else RANDOM_NUMPY
    return PURE


def _loaded_array(call: ast.Call, mention: Mention, given: set[str | None]) -> Effect:
    if len(call.args) > 1 or given & {"allow_pickle", None}:
        return UNPICKLES
    if "mmap_mode" in given:
        modes = [each.value for each in call.keywords if each.arg == "mmap_mode"]
        read_only = all(
            isinstance(each, ast.Constant) and each.value in ("r", "c") for each in modes
        )
        return PURE if read_only else WRITES
    return PURE if mention.closed or _names_array(call) else _STAYS_OPEN


def _unpacks(call: ast.Call) -> bool:
    """Return whether a call has options from a dictionary, which are not known."""
    return any(each.arg is None for each in call.keywords)


def _names_array(call: ast.Call) -> bool:
    """Return whether the file of numpy.load is certainly no archive, which would stay open."""
    return any(
        isinstance(each, ast.Constant)
        and isinstance(each.value, str)
        and each.value.endswith(".npy")
        for argument in call.args
        for each in ast.walk(argument)
    )


def _has_text(call: ast.Call | None) -> bool:
    match call:
        case ast.Call(args=[ast.Constant(value=str()), *_]):
            return True
        case _:
            return False


def _is_clock(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in _CLOCK_TEXTS
