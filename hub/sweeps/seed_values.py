"""Find the names that are certain not to be None, so that they can seed random numbers.

``random.seed(None)`` takes its seed from the machine, and ``seed = None`` is a common default. A
name is certain if every value that the notebook ever binds to it is: in an assignment or a loop, as
a default or an argument of a function, as an attribute, or as a key of a dictionary.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final

from .effect_rules import names
from .syntax_tree import syntax_nodes

_NEVER_NONE: Final = names(
    """
    abs hash int len max min ord range round str sum Generator MT19937 PCG64 PRNGKey Philox
    RandomState Random SFC64 SeedSequence default_rng manual_seed
    """
)
"""Calls that return something else than None."""
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def certain_names(trees: Iterable[ast.AST], optional: frozenset[str]) -> frozenset[str]:
    """Return the names, attributes and keys that are never None.

    Args:
        optional: names that may be None for another reason: parameters that a trial sets to null.
    """
    found = [node for tree in trees for node in syntax_nodes(tree)]
    bindings = _Bindings()
    for node in found:
        if isinstance(node, _FUNCTION):
            bindings.functions.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.ClassDef):
            inits = [each for each in node.body if isinstance(each, _FUNCTION)]
            own = bindings.functions.setdefault(node.name, [])
            own += [each for each in inits if each.name == "__init__"]
    for node in found:
        bindings.add(node)
    certain = set(bindings.values) - bindings.uncertain - optional
    while True:
        kept = {
            name
            for name in certain
            if all(is_certain(value, certain) for value in bindings.values[name])
        }
        if kept == certain:
            return frozenset(certain)
        certain = kept


def is_certain(node: ast.expr, certain: frozenset[str] | set[str]) -> bool:
    """Return whether the value of an expression is never None."""
    match node:
        case ast.Constant(value=value):
            return value is not None
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in certain
        case ast.Subscript(slice=ast.Constant(value=str(key))):
            return key in certain
        case ast.Subscript(value=value) | ast.Starred(value=value):
            return is_certain(value, certain)
        case ast.BinOp() | ast.UnaryOp() | ast.JoinedStr() | ast.Compare():
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _NEVER_NONE
        case ast.IfExp(body=body, orelse=other):
            return is_certain(body, certain) and is_certain(other, certain)
        case ast.BoolOp(op=ast.Or(), values=values):
            return is_certain(values[-1], certain)
        case ast.List(elts=values) | ast.Tuple(elts=values) | ast.Set(elts=values):
            return all(is_certain(value, certain) for value in values)
        case _:
            return False


@dataclass(slots=True)
class _Bindings:
    functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = field(default_factory=dict)
    values: dict[str, list[ast.expr]] = field(default_factory=dict)
    uncertain: set[str] = field(default_factory=set)

    def add(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self.bind(target, value)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self.bind(target, value)
            case ast.NamedExpr(target=target, value=value):
                self.bind(target, value)
            case ast.For() | ast.AsyncFor() | ast.comprehension():
                self.bind(node.target, node.iter)
            case ast.keyword(arg=str(name), value=value):
                self.values.setdefault(name, []).append(value)
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        self.values.setdefault(key.value, []).append(value)
            case ast.arguments():
                self.defaults(node)
            case ast.Call():
                self.called(node)
            case _:
                self.others(node)

    def bind(self, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case ((ast.Name(id=name) | ast.Attribute(attr=name)), _):
                self.values.setdefault(name, []).append(value)
            case ast.Subscript(slice=ast.Constant(value=str(key))), _:
                self.values.setdefault(key, []).append(value)
            case ((ast.Tuple(elts=targets) | ast.List(elts=targets)), ast.Tuple(elts=values)) if (
                len(targets) == len(values)
            ):
                for each, one in zip(targets, values, strict=True):
                    self.bind(each, one)
            case ((ast.Tuple(elts=targets) | ast.List(elts=targets)), _):
                for each in targets:
                    self.bind(each, value)

    def defaults(self, node: ast.arguments) -> None:
        positional = [*node.posonlyargs, *node.args]
        late = positional[len(positional) - len(node.defaults) :]
        pairs = [*zip(late, node.defaults, strict=True)]
        pairs += [
            (each, value)
            for each, value in zip(node.kwonlyargs, node.kw_defaults, strict=True)
            if value is not None
        ]
        for each, value in pairs:
            self.values.setdefault(each.arg, []).append(value)
        self.uncertain |= {each.arg for each in (node.vararg, node.kwarg) if each}

    def called(self, node: ast.Call) -> None:
        """Bind the arguments of functions of the notebook with the name that is called."""
        match node.func:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                pass
            case _:
                return
        for function in self.functions.get(name, ()):
            own = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
            own = own[1:] if own[:1] in (["self"], ["cls"]) else own
            unclear = any(isinstance(each, ast.Starred) for each in node.args)
            if unclear or any(each.arg is None for each in node.keywords):
                self.uncertain |= set(own)
            for argument, value in zip_longest(own, node.args[: len(own)]):
                if value is not None:
                    self.values.setdefault(argument, []).append(value)

    def others(self, node: ast.AST) -> None:
        """Note what is bound to something that is not known."""
        match node:
            case ast.withitem(optional_vars=ast.Name(id=name)):
                self.uncertain.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                self.uncertain.add(name)
            case ast.MatchStar(name=str(name)) | ast.alias(asname=str(name)):
                self.uncertain.add(name)
            case ast.alias(name=name):
                self.uncertain.add(name)
