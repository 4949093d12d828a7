"""List what the code of a cell does with global names.

Code that runs with the cell yields its events at once. The bodies of functions, of methods and of
lambda expressions run later: their events are kept with the definition, those of inner functions
included. Local variables are not global names; in doubt, a name counts as global.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from .code_events import DeferredCode, Event, Mention
from .name_walker import NameWalker, last_name
from .syntax_tree import syntax_nodes


def code_events(tree: ast.Module) -> tuple[Event, ...]:
    """Return the events of the code of a cell."""
    walker = CodeWalker()
    walker.block(tree.body, definite=True)
    return tuple(walker.events)


@dataclass(slots=True)
class CodeWalker(NameWalker):
    """Lists definitions, too."""

    decorators: list[Mention] = field(default_factory=list)
    bases: list[Mention] = field(default_factory=list)
    methods: list[Event] = field(default_factory=list)
    """Of the class around the current code: decorators of methods, base classes, code."""

    def assigned(self, node: ast.Assign) -> None:
        if isinstance(node.value, ast.Lambda) and not self.deferred and not self.scopes.inner:
            match node.targets:
                case [ast.Name(id=name)]:
                    self.lambda_expression(node.value, name)
                    return
        self.children(node)

    @contextmanager
    def later(self) -> Iterator[list[Event]]:
        outer, self.deferred = self.deferred, True
        try:
            with self.collected() as events:
                yield events
        finally:
            self.deferred = outer

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        decorators = self.decorated(node.decorator_list)
        self.signature(node.args)
        self.annotation(node.returns)
        lazy = isinstance(node, ast.AsyncFunctionDef) or _yields(node)
        with self.later() as events, self.scopes.inside(node):
            self.block(node.body, definite=not lazy)
        self.defined(node.name, node.lineno, events, decorators, lazy=lazy)

    def defined(
        self,
        name: str,
        line: int,
        events: Sequence[Event],
        decorators: Sequence[Mention],
        *,
        lazy: bool = False,
    ) -> None:
        if self.deferred:
            self.events += events
            self.stored(name, line)
            return
        if self.scopes.in_class:
            self.methods += events
            self.decorators += decorators
            return
        self.events.append(
            DeferredCode(
                name=name,
                line=line,
                events=tuple(events),
                decorators=tuple(decorators),
                lazy=lazy or bool(decorators),
            )
        )

    def decorated(self, nodes: Sequence[ast.expr]) -> list[Mention]:
        """Visit decorators; return what they are, with an unknown name for other expressions."""
        found: list[Mention] = []
        for node in nodes:
            self.visit(node)
            found.append(self.named(node.func if isinstance(node, ast.Call) else node))
        return found

    def named(self, node: ast.expr) -> Mention:
        with self.collected() as events:
            self.mention(node)
        last = events[-1] if events else None
        if isinstance(last, Mention) and isinstance(node, ast.Name | ast.Attribute):
            return last
        return Mention(root="", line=node.lineno)

    def signature(self, arguments: ast.arguments) -> None:
        self.all([*arguments.defaults, *arguments.kw_defaults])
        for each in _arguments(arguments):
            self.annotation(each.annotation)

    def lambda_expression(self, node: ast.Lambda, name: str = "") -> None:
        self.all([*node.args.defaults, *node.args.kw_defaults])
        with self.later() as events, self.scopes.inside(node):
            self.visit(node.body)
        self.closure(events, node.lineno, name)

    def closure(self, events: Sequence[Event], line: int, name: str = "") -> None:
        if self.deferred:
            self.events += events
        else:
            self.events.append(DeferredCode(name=name, line=line, events=tuple(events), lazy=True))

    def generator(self, node: ast.GeneratorExp) -> None:
        self.visit(node.generators[0].iter)
        with self.later() as events:
            self.comprehended(node, [node.elt])
        self.closure(events, node.lineno)

    def comprehension(self, node: ast.ListComp | ast.SetComp) -> None:
        self.visit(node.generators[0].iter)
        self.comprehended(node, [node.elt])

    def dictionary(self, node: ast.DictComp) -> None:
        self.visit(node.generators[0].iter)
        self.comprehended(node, [node.key, node.value])

    def comprehended(
        self,
        node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp,
        parts: Sequence[ast.expr],
    ) -> None:
        with self.scopes.inside(node):
            for number, each in enumerate(node.generators):
                if number:
                    self.visit(each.iter)
                self.visit(each.target)
                self.all(each.ifs)
            self.all(parts)

    def class_definition(self, node: ast.ClassDef) -> None:
        outer = self.decorators, self.bases, self.methods
        self.decorators, self.bases, self.methods = self.decorated(node.decorator_list), [], []
        hooked = bool(node.keywords)
        for base in node.bases:
            plain = base
            if isinstance(base, ast.Subscript):
                self.visit(base.slice)
                plain = base.value
            if isinstance(plain, ast.Name | ast.Attribute):
                self.bases.append(self.named(plain))
            else:
                self.visit(base)
                hooked = hooked or last_name(getattr(base, "func", base)) != "namedtuple"
        self.all(node.keywords)
        with self.scopes.inside(node):
            self.block(node.body, definite=False)
        own = DeferredCode(
            name=node.name,
            line=node.lineno,
            events=(*self.bases, *self.methods),
            decorators=tuple(self.decorators),
            bases=tuple(self.bases),
            hooked=hooked,
            methods=_methods(node),
            lazy=True,
        )
        self.decorators, self.bases, self.methods = outer
        if self.deferred:
            self.events += own.events
            self.stored(node.name, node.lineno)
        elif self.scopes.in_class:
            self.decorators += own.decorators
            self.bases += own.bases
            self.methods += own.events
        else:
            self.events.append(own)


def _methods(node: ast.ClassDef) -> frozenset[str]:
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    return frozenset(each.name for each in syntax_nodes(node) if isinstance(each, functions))


def _yields(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Yield | ast.YieldFrom) for each in syntax_nodes(node))


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    extra = filter(None, [arguments.vararg, arguments.kwarg])
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *extra]


CodeWalker.handlers = {
    ast.Name: CodeWalker.name,
    ast.Attribute: CodeWalker.attribute,
    ast.Subscript: CodeWalker.subscript,
    ast.Assign: CodeWalker.assigned,
    ast.AugAssign: CodeWalker.augmented,
    ast.AnnAssign: CodeWalker.annotated,
    ast.Expr: CodeWalker.statement,
    ast.Compare: CodeWalker.comparison,
    ast.Call: CodeWalker.called,
    ast.Constant: CodeWalker.constant,
    ast.With: CodeWalker.with_statement,
    ast.AsyncWith: CodeWalker.with_statement,
    ast.Import: CodeWalker.imported,
    ast.ImportFrom: CodeWalker.imported,
    ast.ExceptHandler: CodeWalker.handler,
    ast.MatchAs: CodeWalker.pattern,
    ast.MatchStar: CodeWalker.pattern,
    ast.MatchMapping: CodeWalker.mapping_pattern,
    ast.Global: CodeWalker.declared,
    ast.NamedExpr: CodeWalker.walrus,
    ast.FunctionDef: CodeWalker.function,
    ast.AsyncFunctionDef: CodeWalker.function,
    ast.Lambda: CodeWalker.lambda_expression,
    ast.GeneratorExp: CodeWalker.generator,
    ast.ListComp: CodeWalker.comprehension,
    ast.SetComp: CodeWalker.comprehension,
    ast.DictComp: CodeWalker.dictionary,
    ast.ClassDef: CodeWalker.class_definition,
}
