"""List the names, imports and texts of code; the part of the walk that definitions build on."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from .code_events import (
    Access,
    Event,
    FrameLookup,
    ImportedName,
    Mention,
    SpecialText,
    StarImport,
    TextMention,
)
from .effect_rules import FRAME_READERS, READS_AT_ONCE
from .local_names import Scopes, imported_names
from .syntax_tree import child_nodes, syntax_nodes

_WORD: Final = re.compile(r"[^\W\d]\w*")
_ADDRESS: Final = re.compile(r"(?:https?|s3|gs|ftp|hf)://\S")
_OF_THE_JOB: Final = re.compile(r"CARREL_(?!DEVICES\b)[A-Z_]+")


@dataclass(slots=True)
class NameWalker:
    """Lists mentions, imports and texts; a subclass adds definitions, and the handlers of nodes."""

    handlers: ClassVar[Mapping[type[ast.AST], Callable[[Any, Any], None]]] = {}

    events: list[Event] = field(default_factory=list)
    scopes: Scopes = field(default_factory=Scopes)
    deferred: bool = False
    definite: ast.AST | None = None
    closed: set[int] = field(default_factory=set)

    def visit(self, node: ast.AST) -> None:
        handler = self.handlers.get(type(node))
        if handler is not None:
            handler(self, node)
        else:
            self.children(node)

    def children(self, node: ast.AST) -> None:
        for child in child_nodes(node):
            self.visit(child)

    def all(self, nodes: Sequence[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def block(self, statements: Sequence[ast.stmt], *, definite: bool) -> None:
        """Visit statements that run one after the other."""
        for number, statement in enumerate(statements):
            called = _called_value(statement) if definite else None
            if called is not None and self.deferred:
                definite = not any(map(_may_leave, statements[:number]))
            self.definite = called if definite else None
            self.visit(statement)
        self.definite = None

    # -- names ------------------------------------------------------------------------------

    def mention(self, node: ast.expr, call: ast.Call | None = None, **more: bool) -> None:
        """Yield a name with its attributes; visit the expression that they belong to."""
        path: list[str] = []
        base = node
        while isinstance(base, ast.Attribute):
            path.append(base.attr)
            base = base.value
        path.reverse()
        access = Access.LOAD
        if base is node and isinstance(node, ast.Name):
            access = _ACCESS[type(node.ctx)]
        root, module = "", ""
        if isinstance(base, ast.Name):
            root, module = self.resolved(base.id, access)
            if not root and not module and not path:
                return
        else:
            self.visit(base)
        self.events.append(
            Mention(
                root=root,
                path=tuple(path),
                line=node.lineno,
                access=access,
                module=module,
                call=call,
                definite=call is not None and call is self.definite,
                closed=call is not None and id(call) in self.closed,
                **more,
            )
        )

    def resolved(self, name: str, access: Access) -> tuple[str, str]:
        """Return the global name, or an empty one with the module of a local import."""
        return self.scopes.resolved(name, loaded=access is Access.LOAD)

    def name(self, node: ast.Name) -> None:
        self.mention(node)

    def attribute(self, node: ast.Attribute) -> None:
        self.mention(node, changed=not isinstance(node.ctx, ast.Load))

    def subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.ctx, ast.Load):
            self.children(node)
            return
        if isinstance(node.value, ast.Name | ast.Attribute):
            self.mention(node.value, changed=True)
        else:
            self.visit(node.value)
        self.visit(node.slice)

    def augmented(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Name):
            read = ast.copy_location(ast.Name(id=node.target.id, ctx=ast.Load()), node.target)
            self.mention(read, changed=True)
        self.visit(node.target)

    def statement(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Name):
            self.mention(node.value, alone=True)
        elif not isinstance(node.value, ast.Constant):
            self.visit(node.value)

    def comparison(self, node: ast.Compare) -> None:
        match node:
            # It asks only whether a module has been imported, as in "google.colab" in sys.modules.
            case ast.Compare(
                left=ast.Constant(),
                ops=[ast.In() | ast.NotIn()],
                comparators=[ast.Attribute(value=ast.Name(id="sys"), attr="modules")],
            ):
                return
        self.children(node)

    # -- calls ------------------------------------------------------------------------------

    def called(self, node: ast.Call) -> None:
        name = last_name(node.func)
        if isinstance(node.func, ast.Attribute) and name in READS_AT_ONCE:
            self.closes(node.func.value)
        if name in READS_AT_ONCE:
            for argument in node.args:
                self.closes(argument)
        if isinstance(node.func, ast.Name | ast.Attribute):
            self.mention(node.func, node)
        else:
            self.visit(node.func)
        self.texts(node, name)
        self.all([*node.args, *node.keywords])

    def closes(self, node: ast.expr) -> None:
        if isinstance(node, ast.Call):
            self.closed.add(id(node))

    def texts(self, node: ast.Call, name: str) -> None:
        arguments = [*node.args, *(each.value for each in node.keywords)]
        root = self.resolved(name, Access.LOAD)[0] if isinstance(node.func, ast.Name) else ""
        if name in FRAME_READERS:
            if not all(isinstance(each, ast.Constant) for each in node.args[:1]):
                self.events.append(FrameLookup(call=name, root=root, line=node.lineno))
            for word in sorted(_words(arguments)):
                if not self.is_local(word):
                    self.events.append(Mention(root=word, line=node.lineno, in_text=True))
        elif words := _words([each for each in arguments if _is_text(each)]):
            self.events.append(TextMention(words=words, call=name, root=root, line=node.lineno))

    def is_local(self, name: str) -> bool:
        return not self.resolved(name, Access.LOAD)[0]

    def constant(self, node: ast.Constant) -> None:
        if not isinstance(node.value, str):
            return
        if found := _ADDRESS.match(node.value) or _OF_THE_JOB.match(node.value):
            address = found.re is _ADDRESS
            self.events.append(SpecialText(text=node.value, line=node.lineno, address=address))

    # -- statements -------------------------------------------------------------------------

    def with_statement(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.closes(item.context_expr)
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self.visit(item.optional_vars)
        self.block(node.body, definite=False)

    def annotated(self, node: ast.AnnAssign) -> None:
        self.annotation(node.annotation)
        if node.value is not None:
            self.visit(node.value)
        self.visit(node.target)

    def annotation(self, node: ast.expr | None) -> None:
        if node is None:
            return
        with self.collected() as events:
            self.visit(node)
        simple = not any(isinstance(each, ast.Call) for each in syntax_nodes(node))
        for event in events:
            if isinstance(event, Mention) and simple:
                event = Mention(root=event.root, line=event.line, path=event.path, inert=True)  # noqa: PLW2901
            self.events.append(event)

    def imported(self, node: ast.Import | ast.ImportFrom) -> None:
        whole = isinstance(node, ast.Import)
        for name, module in imported_names(node):
            root, _ = self.resolved(name, Access.STORE)
            if name == "*":
                star = module.removesuffix(".*")
                self.events.append(StarImport(module=star, line=node.lineno))
            elif root:
                self.events.append(
                    ImportedName(name=root, module=module, line=node.lineno, whole=whole)
                )

    def handler(self, node: ast.ExceptHandler) -> None:
        self.all([node.type])
        self.stored(node.name, node.lineno)
        self.block(node.body, definite=False)

    def pattern(self, node: ast.MatchAs | ast.MatchStar) -> None:
        self.children(node)
        self.stored(node.name, node.lineno)

    def mapping_pattern(self, node: ast.MatchMapping) -> None:
        self.children(node)
        self.stored(node.rest, node.lineno)

    def declared(self, node: ast.Global) -> None:
        for name in node.names:
            self.stored(name, node.lineno)

    def stored(self, name: str | None, line: int) -> None:
        if name:
            root, _ = self.resolved(name, Access.STORE)
            if root:
                self.events.append(Mention(root=root, line=line, access=Access.STORE))

    def walrus(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self.stored(node.target.id, node.lineno)

    @contextmanager
    def collected(self) -> Iterator[list[Event]]:
        outer, self.events = self.events, []
        try:
            yield self.events
        finally:
            self.events = outer


def _called_value(statement: ast.stmt) -> ast.Call | None:
    """Return the call that a statement consists of, or assigns."""
    match statement:
        case ast.Expr(value=ast.Call() as call) | ast.Assign(value=ast.Call() as call):
            return call
        case ast.AnnAssign(value=ast.Call() as call):
            return call
        case _:
            return None


def _may_leave(statement: ast.stmt) -> bool:
    return any(isinstance(each, ast.Return | ast.Raise) for each in syntax_nodes(statement))


def last_name(node: ast.AST) -> str:
    """Return the last part of a dotted name; empty for other expressions."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_text(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str()) | ast.JoinedStr():
            return True
        case ast.BinOp(left=left, right=right):
            return _is_text(left) or _is_text(right)
        case _:
            return False


def _words(nodes: Sequence[ast.expr]) -> frozenset[str]:
    return frozenset(
        word
        for node in nodes
        for each in syntax_nodes(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
        for word in _WORD.findall(each.value)
    )


_ACCESS = {ast.Load: Access.LOAD, ast.Store: Access.STORE, ast.Del: Access.DELETE}
