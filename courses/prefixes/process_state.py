"""Find code whose effects a restored prefix would lose, or that differs between accounts.

A prefix restores variables. It does not restore the state of modules and of the process, and its
values come from the account of a teacher. These rules are added to the obstacles of
``hub.sweeps.notebook_analysis``, which find what differs between any two runs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from ...hub.sweeps.code_events import (
    Access,
    DeferredCode,
    Event,
    ImportedName,
    Mention,
    StarImport,
)
from ...hub.sweeps.code_walker import code_events
from ...hub.sweeps.effect_rules import MUTATORS, names
from ...hub.sweeps.ipython_syntax import PythonCode

_SETTING: Final = re.compile(
    r"(?:re)?set(?:_\w*|[A-Z]\w*)?|setlocale|seterr\w*|setrecursionlimit|setswitchinterval"
    r"|setcontext|setbufsize|settrace|setprofile|use|use_\w+|rc|rcdefaults|rc_file\w*|rcParams\w*"
    r"|style|filterwarnings|simplefilter|resetwarnings|catch_warnings|basicConfig|dictConfig"
    r"|fileConfig|addLevelName|captureWarnings|disable\w*|enable\w*|switch_backend|ion|ioff|xkcd"
    r"|options|add\w*|progress_apply|pandas|init\w*|output_notebook|getLogger|getcontext"
    r"|localcontext|displayhook|excepthook|stdout|stderr|freeze|unfreeze|load_ipython_extension"
)
"""Names of modules that set something: calls of them, and assignments to them."""
_READ_ONLY: Final = re.compile(r"rcParams\w*|options|stdout|stderr|style")
"""Of these, those that only set something if they are assigned or called."""
_KEPT: Final = re.compile(r"register\w*|subscribe\w*|on_\w+|connect|hook\w*|update_display")
"""Names that give objects of the notebook to a module, which keeps them."""
_ACCOUNT: Final = names(
    """
    os.environ os.environb os.getenv os.getenvb os.getcwd os.getcwdb os.listdir os.scandir os.walk
    os.stat os.lstat os.access os.cpu_count os.getpid os.getlogin os.uname os.path.exists
    os.path.lexists os.path.isfile os.path.isdir os.path.getsize os.path.getmtime os.path.getatime
    os.path.getctime os.path.abspath os.path.realpath os.path.expanduser os.path.expandvars
    multiprocessing.cpu_count joblib.cpu_count torch.get_num_threads torch.get_num_interop_threads
    sys.argv sys.executable sys.path sys.flags sys.getrefcount sys.getsizeof gc.get_count
    gc.get_stats matplotlib.get_cachedir matplotlib.get_configdir
    """
)
_ACCOUNT_MODULES: Final = ("glob", "platform", "tracemalloc", "locale")
_ACCOUNT_METHODS: Final = names(
    """
    cwd home expanduser absolute resolve exists is_file is_dir is_symlink is_mount stat lstat owner
    iterdir glob rglob walk samefile readlink __hash__
    """
)
_ACCOUNT_BUILTINS: Final = frozenset({"id", "hash"})
_PLACE: Final = re.compile(r"/\w|~|\.\.(?:/|$)|file:|[A-Za-z]:\\")
"""How texts begin that name a file outside of the working folder."""
_OWN_PLACE: Final = re.compile(r"/(?:home|root|tmp|var|mnt|media)\b|~|\.\.(?:/|$)|file:|[A-Za-z]:")
"""Of these, those that are not the rest of a path in the data of a course, either."""
_REFLECTION: Final = frozenset(
    {"setattr", "delattr", "vars", "__class__", "__dict__", "__setattr__", "__delattr__"}
)
_DRAWING: Final = (
    "matplotlib.pyplot",
    "seaborn",
    "IPython.display",
    "pprint",
    "time.sleep",
    "random",
    "numpy.random",
    "torch.manual_seed",
    "gc.collect",
    "sys.stdout",
    "sys.stderr",
)
"""What statements of modules call only to show something, or to seed what is restored."""
_RANDOM: Final = ("random", "numpy.random")
COURSE_DATA: Final = "CARREL_COURSE_DATA"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFindings:
    """What a cell does beside computing variables.

    Attributes:
        changes: why its effects are not restored, so that it has to run in each job.
        ends: why no later cell may be restored, either.
    """

    changes: str = ""
    ends: str = ""


@dataclass(slots=True)
class StateRules:
    """Applies the rules to cells, in the order in which they run.

    Attributes:
        imports: the dotted names that the names of the notebook were imported as.
        whole: names that were imported as a module.
        data: whether the cells name the data folder of the course, which paths may begin with.
    """

    imports: dict[str, set[str]] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)
    data: bool = False

    def cell(self, code: PythonCode) -> StateFindings:
        """Return what a cell does; its tree must be parsed."""
        changes = f"uses {code.magics[0].shown}" if code.magics else ""
        if code.tree is None:
            return StateFindings(ends="is not Python code")
        events = code_events(code.tree)
        self._learn(events)
        for event, deferred in _flat(events, deferred=False):
            found = self._event(event)
            if found.ends:
                return found
            if found.changes and deferred:
                # A later cell may call it by any name.
                return StateFindings(ends=f"defines code that {found.changes}")
            changes = changes or found.changes
        for why, deferred in self._statements(code.tree):
            if deferred:
                return StateFindings(ends=f"defines code that {why}")
            changes = changes or why
        for node in ast.walk(code.tree):
            match node:
                case ast.Constant(value=str(text)) if self._is_place(text):
                    return StateFindings(ends=f"names the place {text[:40]}")
                case ast.keyword(arg="display_id"):
                    return StateFindings(ends="shows an output that a later cell may change")
        return StateFindings(changes=changes)

    def _is_place(self, text: str) -> bool:
        return bool((_OWN_PLACE if self.data else _PLACE).match(text))

    def _learn(self, events: Iterable[Event]) -> None:
        for event, _ in _flat(events, deferred=False):
            if isinstance(event, ImportedName):
                self.imports.setdefault(event.name, set()).add(event.module)
                if event.whole:
                    self.whole.add(event.name)

    def _event(self, event: Event) -> StateFindings:
        match event:
            case StarImport(module=module):
                return StateFindings(ends=f"imports all names of {module}")
            case Mention(inert=True):
                return StateFindings()
            case Mention():
                return self._mention(event)
        return StateFindings()

    def _mention(self, found: Mention) -> StateFindings:
        last = found.path[-1] if found.path else found.root
        if found.access is Access.DELETE and found.root:
            return StateFindings(changes=f"deletes {found.root}")
        if found.root in _ACCOUNT_BUILTINS and not found.path and found.call is not None:
            return StateFindings(ends=f"uses {found.root}(), which differs between processes")
        if found.path and last in _ACCOUNT_METHODS:
            return StateFindings(ends=f"uses {last}, which may differ between accounts")
        if _REFLECTION & {found.root, *found.path}:
            return StateFindings(ends=f"uses {last}, which may change a module")
        if found.path and _KEPT.fullmatch(last):
            return StateFindings(ends=f"uses {last}, which may keep objects in a module")
        for dotted in self._dotted(found):
            result = self._of_module(found, dotted)
            if result.changes or result.ends:
                return result
        return StateFindings()

    def _dotted(self, found: Mention) -> Iterator[str]:
        modules = {found.module} if found.module else self.imports.get(found.root, set())
        for module in sorted(modules):
            yield ".".join((module, *found.path))

    def _of_module(self, found: Mention, dotted: str) -> StateFindings:
        if _begins(dotted, _ACCOUNT) or _begins(dotted, _ACCOUNT_MODULES):
            return StateFindings(ends=f"uses {dotted}, which may differ between accounts")
        if found.changed or found.access is not Access.LOAD:
            # A name of the notebook itself may be assigned anew.
            return StateFindings(changes=f"changes {dotted}" if found.path or found.changed else "")
        parts = dotted.split(".")
        if _KEPT.fullmatch(parts[-1]):
            return StateFindings(ends=f"uses {dotted}, which may keep objects in a module")
        # ``sys.path.append`` changes an object of a module, ``numpy.append`` is a function.
        own = len(parts) - (1 if found.root in self.whole else 2)
        if parts[-1] in MUTATORS and own > 1 and not _begins(dotted, _RANDOM):
            return StateFindings(changes=f"calls {dotted}")
        settings = [part for part in parts[1:] if _SETTING.fullmatch(part)]
        if found.call is None:
            settings = [part for part in settings if not _READ_ONLY.fullmatch(part)]
        if not settings:
            return StateFindings()
        if found.call is None:
            return StateFindings(ends=f"passes {dotted} on, which may change a setting")
        return StateFindings(changes=f"calls {dotted}")

    def _statements(self, tree: ast.Module) -> Iterator[tuple[str, bool]]:
        """Yield calls of modules whose result is not used, and whether they run later."""
        for statement, deferred in _expressions(tree, deferred=False):
            base: ast.expr = statement.func
            path: list[str] = []
            while isinstance(base, ast.Attribute | ast.Call | ast.Subscript):
                if isinstance(base, ast.Attribute):
                    path.append(base.attr)
                    base = base.value
                else:
                    path.clear()
                    base = base.func if isinstance(base, ast.Call) else base.value
            if not isinstance(base, ast.Name):
                continue
            for module in sorted(self.imports.get(base.id, ())):
                dotted = ".".join((module, *reversed(path)))
                if not _begins(dotted, _DRAWING):
                    yield f"calls {dotted}, whose result it does not use", deferred


def _flat(events: Iterable[Event], *, deferred: bool) -> Iterator[tuple[Event, bool]]:
    for event in events:
        yield event, deferred
        if isinstance(event, DeferredCode):
            yield from _flat(event.events, deferred=True)


def _expressions(node: ast.AST, *, deferred: bool) -> Iterator[tuple[ast.Call, bool]]:
    inner = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef)
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Expr(value=ast.Call() as call):
                yield call, deferred or inner
        yield from _expressions(child, deferred=deferred or inner)


def _begins(dotted: str, names: Iterable[str]) -> bool:
    return any(dotted == name or dotted.startswith(f"{name}.") for name in names)


class _CourseData(ast.NodeTransformer):
    """Replaces the lookups of the folder of a course by a constant."""

    def __init__(self) -> None:
        self.found = False

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        match node:
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id="os"), attr="environ"),
                slice=ast.Constant(value=name),
            ) if name == COURSE_DATA:
                return self._constant(node)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(func=ast.Attribute(attr="get" | "getenv"), args=[ast.Constant(value=n)]):
                if n == COURSE_DATA and ast.unparse(node.func) in ("os.environ.get", "os.getenv"):
                    return self._constant(node)
        return self.generic_visit(node)

    def _constant(self, node: ast.expr) -> ast.AST:
        self.found = True
        return ast.copy_location(ast.Constant(value="course-data"), node)


def without_course_data(source: str) -> tuple[str, bool]:
    """Return code in which the folder of the course is a constant, and whether it is named.

    Only for the analysis: comments and positions are lost.
    """
    if COURSE_DATA not in source:
        return source, False
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source, False
    replaced = _CourseData()
    changed = ast.fix_missing_locations(replaced.visit(tree))
    return (ast.unparse(changed), True) if replaced.found else (source, False)
