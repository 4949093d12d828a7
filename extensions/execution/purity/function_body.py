"""Find side effects in the body of one function."""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final

import torch

from .known_functions import (
    BUILTINS,
    CONTAINER_CHANGES,
    CONTEXTS,
    IN_PLACE,
    NEW_OBJECTS,
    NEW_TENSORS,
    PLAIN,
    RANDOM,
    READERS,
    effect_of_torch,
    is_allowed,
)
from .side_effects import CodePlace

if TYPE_CHECKING:
    from .analysis import PurityAnalysis

_UNKNOWN: Final = object()


class OuterNames:
    """What the names that are not local to a function refer to."""

    def __init__(self, function: FunctionType) -> None:
        self.globals = function.__globals__
        found = self.globals.get("__builtins__", {})
        self.builtins: Mapping[str, Any] = vars(found) if isinstance(found, ModuleType) else found
        self.cells = dict(
            zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        )
        self.known: dict[str, Any] = {}

    def without_known(self) -> OuterNames:
        """Return the same for a nested function, whose parameters may have the same names."""
        found = copy.copy(self)
        found.known = {}
        return found

    def value(self, name: str) -> Any:
        if name in self.cells:
            try:
                return self.cells[name].cell_contents
            except ValueError:
                return _UNKNOWN
        if name in self.globals:
            return self.globals[name]
        return self.builtins.get(name, _UNKNOWN)


@dataclass(frozen=True, slots=True)
class _Binding:
    """A value that a local name gets.

    Attributes:
        statement: index of the statement of the body in which it is.
        always: the statement itself is the assignment, so that it is always executed.
        value: None for an unknown one.
    """

    statement: int
    always: bool
    value: ast.expr | None


class FunctionBody(ast.NodeVisitor):
    """Check the body of one function; a nested function has the scopes around it."""

    def __init__(
        self,
        analysis: PurityAnalysis,
        names: OuterNames,
        node: ast.FunctionDef | ast.Lambda,
        place: CodePlace,
        *,
        immutable: frozenset[str] = frozenset(),
        outer: frozenset[str] = frozenset(),
    ) -> None:
        self._analysis = analysis
        self._names = names
        self._own_place = place
        self._outer = outer
        self._statements = node.body if isinstance(node, ast.FunctionDef) else [node.body]
        self._bindings: dict[str, list[_Binding]] = {}
        for parameter in _parameters(node.args):
            value = ast.Constant(0) if parameter in immutable else None
            self._bind(parameter, _Binding(-1, True, value))
        for index, statement in enumerate(self._statements):
            self._collect(statement, index, top=True)
        self._at = 0

    def check(self) -> None:
        for index, statement in enumerate(self._statements):
            self._at = index
            self.visit(statement)

    # -- names ------------------------------------------------------------------------------

    def _bind(self, name: str, binding: _Binding) -> None:
        self._bindings.setdefault(name, []).append(binding)

    def _collect(self, node: ast.AST, index: int, *, top: bool) -> None:
        """Collect the values of local names, but for those of nested functions."""
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    value = node.value
                    if isinstance(node, ast.AugAssign):
                        value = ast.BinOp(target, node.op, node.value)
                    always = top and not isinstance(node, ast.NamedExpr | ast.AugAssign)
                    self._bind(target.id, _Binding(index, always, value))
                else:
                    self._bind_all(target, index)
        elif isinstance(node, ast.For | ast.comprehension):
            self._bind_all(node.target, index)
        elif isinstance(node, ast.With):
            for item in node.items:
                self._bind_all(item.optional_vars, index)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            self._bind(node.name, _Binding(index, False, None))
        elif isinstance(node, ast.FunctionDef):
            self._bind(node.name, _Binding(index, False, None))
            return
        elif isinstance(node, ast.Lambda):
            return
        for child in ast.iter_child_nodes(node):
            self._collect(child, index, top=False)

    def _bind_all(self, target: ast.expr | None, index: int) -> None:
        for node in ast.walk(target) if target else ():
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self._bind(node.id, _Binding(index, False, None))

    def _is_local(self, name: str) -> bool:
        return name in self._bindings or name in self._outer

    def _resolve(self, node: ast.expr) -> Any:
        """Return the object that an expression of names refers to, if it can be known."""
        if isinstance(node, ast.Name):
            if node.id in self._names.known:
                unchanged = len(self._bindings.get(node.id, ())) == 1
                return self._names.known[node.id] if unchanged else _UNKNOWN
            return _UNKNOWN if self._is_local(node.id) else self._names.value(node.id)
        if isinstance(node, ast.Attribute):
            owner = self._resolve(node.value)
            if isinstance(owner, ModuleType):
                return getattr(owner, node.attr, _UNKNOWN)
            if isinstance(owner, torch.nn.Module):
                found = inspect.getattr_static(type(owner), node.attr, None)
                if found is None or isinstance(found, FunctionType):
                    return getattr(owner, node.attr, _UNKNOWN)
                return found if type(found) in PLAIN else _UNKNOWN
        return _UNKNOWN

    def _is_new(self, node: ast.expr | None, *, tensor: bool = False) -> bool:
        """Whether a name refers to an object that this call has made.

        Args:
            tensor: it must be a tensor, so that its elements are its own memory, too.
        """
        if not isinstance(node, ast.Name):
            return False
        bindings = self._bindings.get(node.id, [])
        if not bindings:
            return False
        before = [each.statement for each in bindings if each.always and each.statement < self._at]
        last = max(before, default=-1)
        test = _makes_tensor if tensor else _makes_object
        return all(test(each.value, self) for each in bindings if each.statement >= last)

    # -- findings ----------------------------------------------------------------------------

    def _place(self, node: ast.AST) -> CodePlace:
        return replace(self._own_place, line=getattr(node, "lineno", 0))

    def _add(self, node: ast.AST, reason: str, rewrite: str = "") -> None:
        self._analysis.add(self._place(node), reason, rewrite)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and not self._is_local(node.id):
            value = self._names.value(node.id)
            if value is _UNKNOWN:
                self._add(node, f"uses {node.id}, which has no value yet")
            else:
                self._analysis.check_value(value, self._place(node), node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._add(
                node,
                f"sets the attribute {node.attr}, which can be seen outside",
                "Return the new value, and set it where you call the function.",
            )
            return
        value = self._resolve(node)
        if value is not _UNKNOWN:
            self._analysis.check_value(value, self._place(node), ast.unparse(node))
            return
        name = node.attr
        if name in RANDOM:
            self._add(node, *effect_of_torch(name))
        elif name in CONTAINER_CHANGES or name in IN_PLACE:
            if not self._is_new(node.value):
                text = ast.unparse(node.value)
                self._add(
                    node,
                    f"{name} changes {text}, which may be an argument or a global object",
                    _REWRITE_OF_CHANGES,
                )
        elif name not in READERS:
            self._add(node, f"uses the attribute {name}, which may run other code")
        self.visit(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load) and not self._is_new(node.value):
            text = ast.unparse(node.value)
            self._add(
                node,
                f"writes to {text}, which may be an argument or a global object",
                _REWRITE_OF_CHANGES,
            )
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        # Annotations of local variables are not evaluated.
        self.visit(node.target)
        if node.value is not None:
            self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        target = node.target
        text = ast.unparse(target)
        if isinstance(target, ast.Name) and not self._is_new(target):
            sign = ast.unparse(ast.BinOp(ast.Name(text), node.op, node.value))
            self._add(
                node,
                f"changes {text} in place, which may be an argument",
                f"Write {text} = {sign}.",
            )
        elif isinstance(target, ast.Subscript) and not self._is_new(target.value, tensor=True):
            self._add(
                node, f"changes {text} in place, which may be an argument", _REWRITE_OF_CHANGES
            )
        elif isinstance(target, ast.Attribute):
            self.visit(target)
        if isinstance(target, ast.Subscript):
            self.visit(target.value)
            self.visit(target.slice)
        self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        called = self._resolve(node.func)
        ours = type(called) is FunctionType and not is_allowed(called)
        for keyword in node.keywords:
            literal = isinstance(keyword.value, ast.Constant) and not keyword.value.value
            if keyword.arg is None and not ours:
                self._add(node, "passes **arguments, which may be out or inplace")
            elif keyword.arg == "inplace" and not literal:
                self._add(node, "writes to an argument (inplace)", "Leave inplace=True out.")
            elif keyword.arg in ("dropout_p", "dropout") and not literal:
                self._add(node, *effect_of_torch("dropout"))
            elif keyword.arg == "max_norm" and not literal:
                self._add(node, "max_norm changes the weights of an embedding")
            elif keyword.arg == "out" and not literal and not self._is_new(keyword.value):
                self._add(node, "writes to a tensor (out)", "Assign the result instead.")
        if not ours and type(called) is FunctionType:
            self._check_positions(called, node)
        self.generic_visit(node)

    def _check_positions(self, called: FunctionType, node: ast.Call) -> None:
        """Refuse a value for ``inplace`` or ``max_norm`` that is given by position."""
        code = called.__code__
        parameters = code.co_varnames[: code.co_argcount]
        for name in ("inplace", "max_norm"):
            if name in parameters:
                many = len(node.args) > parameters.index(name)
                if many or any(isinstance(each, ast.Starred) for each in node.args):
                    self._add(node, f"passes {name}, which may write to a tensor")

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            call = item.context_expr
            found = self._resolve(call.func) if isinstance(call, ast.Call) else None
            if all(found is not getattr(torch, name) for name in CONTEXTS):
                self._add(node, f"enters {ast.unparse(call)}, which may change something")
        for statement in node.body:
            self.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.decorator_list:
            self._add(node, f"decorates {node.name}")
        self._visit_nested(node, node.name)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit_nested(node, self._own_place.function)

    def _visit_nested(self, node: ast.FunctionDef | ast.Lambda, name: str) -> None:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        outer = frozenset(self._outer | self._bindings.keys())
        names = self._names.without_known()
        place = replace(self._own_place, function=name)
        FunctionBody(self._analysis, names, node, place, outer=outer).check()

    def _refused(self, node: ast.AST) -> None:
        self._add(node, _STATEMENTS[type(node)])

    visit_Global = visit_Nonlocal = visit_ClassDef = visit_Match = _refused
    visit_Import = visit_ImportFrom = visit_Yield = visit_YieldFrom = _refused
    visit_Await = visit_AsyncFor = visit_AsyncWith = visit_AsyncFunctionDef = _refused
    visit_TryStar = _refused


_REWRITE_OF_CHANGES: Final = "Make a copy first (clone, list), or return the new value."
_STATEMENTS: Final[Mapping[type[ast.AST], str]] = {
    ast.Global: "sets a global variable",
    ast.Nonlocal: "sets a variable of the function around it",
    ast.ClassDef: "makes a class",
    ast.Match: "has a match statement",
    ast.Import: "imports a module",
    ast.ImportFrom: "imports a module",
    ast.Yield: "is a generator",
    ast.YieldFrom: "is a generator",
    ast.Await: "awaits something",
    ast.AsyncFor: "awaits something",
    ast.AsyncWith: "awaits something",
    ast.AsyncFunctionDef: "awaits something",
    ast.TryStar: "handles groups of exceptions",
}


def _makes_object(value: ast.expr | None, body: FunctionBody) -> bool:
    """Whether an expression makes an object, or has one that cannot change."""
    match value:
        case ast.Constant() | ast.JoinedStr() | ast.BinOp() | ast.Compare():
            return True
        case ast.List() | ast.Dict() | ast.Set() | ast.Tuple():
            return True
        case ast.ListComp() | ast.DictComp() | ast.SetComp():
            return True
        case ast.UnaryOp(op=ast.USub() | ast.Not()):
            return True
        case ast.IfExp():
            return _makes_object(value.body, body) and _makes_object(value.orelse, body)
        case ast.Call(func=ast.Name(id=name)) if name in NEW_OBJECTS:
            found = body._resolve(value.func)
            return any(found is each for each in BUILTINS)
        case ast.Call(func=ast.Attribute(attr="item" | "tolist")):
            return True
    return _makes_tensor(value, body)


def _makes_tensor(value: ast.expr | None, body: FunctionBody) -> bool:
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    name = value.func.attr
    if name == "clone" and not value.args:
        return True
    found = body._resolve(value.func)
    return name in NEW_TENSORS and found is not _UNKNOWN and found is getattr(torch, name)


def _parameters(args: ast.arguments) -> Iterator[str]:
    for each in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
        if each is not None:
            yield each.arg
