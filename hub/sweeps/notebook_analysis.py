"""Find for each cell which parameters it may use, and what keeps trials from sharing its result.

The analysis is conservative: whatever it does not understand is an obstacle. It follows names, not
values: until the first cell that may read a parameter, no value can depend on it, whatever is
changed in place or has several names. So it only has to find the first use. Code of a function
counts where the function is mentioned, with the code that it can reach by global names: an alias, a
callback or a method cannot be called later without that mention.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from .cell_analysis import CellAnalysis, NotebookAnalysis, ParameterUse
from .code_events import (
    Access,
    DeferredCode,
    Event,
    FrameLookup,
    ImportedName,
    Mention,
    SpecialText,
    StarImport,
    TextMention,
)
from .code_walker import code_events
from .effect_rules import MUTATORS, NAMESPACE, PURE_MODULES, Effect, EffectKind
from .ipython_syntax import Magic, PythonCode, parse_cell
from .name_bindings import NameBindings, looks_up_text
from .notebook_cells import (
    NO_SHARE_TAG,
    RAISES_TAG,
    SHARE_TAG,
    SKIPPED_TAG,
    SweepCell,
    SweepNotebook,
)
from .obstacles import (
    LANGUAGE,
    SYNTAX,
    TAGGED,
    Obstacle,
    lookup_obstacle,
    magic_obstacle,
    name_obstacle,
    star_obstacle,
    text_obstacle,
    unbound_obstacle,
)
from .seed_values import certain_names

MAIN: Final = "__main__"


def analyse_notebook(
    notebook: SweepNotebook, *, optional: frozenset[str] = frozenset()
) -> NotebookAnalysis:
    """Analyse the cells of a notebook, in the order in which they run.

    Args:
        optional: parameters that are null in a trial, so that they are no seed.
    """
    codes = [parse_cell(cell.source) for cell in notebook.cells]
    trees = [code.tree for code in codes if code.tree is not None]
    analyzer = _Analyzer(
        parameters=frozenset(notebook.parameters),
        bindings=NameBindings(certain=certain_names(trees, optional)),
    )
    cells = []
    for index, (cell, code) in enumerate(zip(notebook.cells, codes, strict=True)):
        if index == notebook.injection:
            analyzer.inject()
        if notebook.python:
            cells.append(analyzer.cell(cell, code))
        else:
            cells.append(CellAnalysis(number=cell.number, obstacles=(LANGUAGE,)))
    return NotebookAnalysis(
        cells=tuple(cells),
        injection=notebook.injection,
        imported=analyzer.bindings.only_imported(),
    )


@dataclass(slots=True)
class _Findings:
    """What has been found about one cell."""

    defines: set[str] = field(default_factory=set)
    uses: set[str] = field(default_factory=set)
    mutates: set[str] = field(default_factory=set)
    certain: dict[str, ParameterUse] = field(default_factory=dict)
    possible: dict[str, ParameterUse] = field(default_factory=dict)
    obstacles: dict[str, Obstacle] = field(default_factory=dict)

    def obstacle(self, found: Obstacle) -> None:
        self.obstacles.setdefault(found.why, found)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an event counts: in the cell itself, or in code that a line of it mentions."""

    line: int = 0
    chain: tuple[str, ...] = ()

    def line_of(self, event_line: int) -> int:
        return self.line or event_line

    def why(self, what: str) -> str:
        """``uses lr``, or ``uses train, whose code uses lr``."""
        if not self.chain:
            return what
        through = f" through {', '.join(self.chain[1:])}" if self.chain[1:] else ""
        return f"uses {self.chain[0]}, whose code {what}{through}"


@dataclass(frozen=True, slots=True)
class _Pending:
    code: DeferredCode
    seeded: frozenset[str]
    place: _Place


_ACCESS_VERBS = {Access.LOAD: "uses", Access.STORE: "assigns", Access.DELETE: "deletes"}


@dataclass(slots=True)
class _Analyzer:
    parameters: frozenset[str]
    bindings: NameBindings = field(default_factory=NameBindings)
    seeded: set[str] = field(default_factory=set)
    injected: bool = False
    escaped: dict[str, list[DeferredCode]] = field(default_factory=dict)
    """Code that has been mentioned, so that it may run at any time, by the names that it uses."""
    carried: dict[str, ParameterUse] = field(default_factory=dict)
    """Uses of parameters by code that escaped before they were assigned: of the next cell."""
    findings: _Findings = field(default_factory=_Findings)
    pending: list[_Pending] = field(default_factory=list)

    def inject(self) -> None:
        """Assign the parameters: what may read them by now may do so in any cell that follows."""
        self.injected = True
        for name in sorted(self.parameters):
            if name in self.escaped:
                code = self.escaped[name][0].name or "an expression"
                why = f"follows cells that may have kept {code}, whose code uses {name}"
                self.carried[name] = ParameterUse(line=0, why=why)

    def cell(self, cell: SweepCell, code: PythonCode) -> CellAnalysis:
        self.findings, self.pending = _Findings(), []
        forced = SHARE_TAG in cell.tags and NO_SHARE_TAG not in cell.tags
        if SKIPPED_TAG not in cell.tags:
            seeded = set(self.seeded)
            self.run(code, seeded)
            if RAISES_TAG not in cell.tags:
                self.seeded = seeded
        if NO_SHARE_TAG in cell.tags:
            self.findings.obstacle(TAGGED)
        return self.result(cell, forced=forced)

    def result(self, cell: SweepCell, *, forced: bool) -> CellAnalysis:
        found = self.findings
        uses = found.certain if forced else found.possible | found.certain
        if self.injected:
            uses = self.carried | uses
            self.carried = {}
        obstacles = () if forced else tuple(found.obstacles.values())
        return CellAnalysis(
            number=cell.number,
            defines=frozenset(found.defines),
            uses=frozenset(filter(self.bindings.is_bound, found.uses)),
            mutates=frozenset(found.mutates),
            parameters=uses if self.injected else {},
            obstacles=obstacles,
            shared_by_tag=forced and bool(found.obstacles or found.possible),
        )

    # -- one cell ---------------------------------------------------------------------------

    def run(self, code: PythonCode, seeded: set[str]) -> None:
        for magic in code.magics:
            self.magic(magic)
        try:
            events = None if code.tree is None else code_events(code.tree)
        except RecursionError:
            events = None
        if events is None:
            self.findings.obstacle(SYNTAX)
            return
        self.block(events, seeded, _Place())
        done: set[tuple[int, frozenset[str]]] = set()
        while self.pending:
            each = self.pending.pop()
            key = id(each.code), each.seeded
            if key not in done:
                done.add(key)
                self.escapes(each.code)
                self.block(each.code.events, set(each.seeded), each.place)

    def magic(self, magic: Magic) -> None:
        for name in sorted(self.parameters):
            if name in magic.words:
                self.possible_use(name, magic.line, f"uses {name} in {magic.shown}")
        if not magic.harmless:
            self.findings.obstacle(magic_obstacle(magic))

    def block(self, events: Iterable[Event], seeded: set[str], place: _Place) -> None:
        for event in events:
            match event:
                case Mention():
                    self.mention(event, seeded, place)
                case DeferredCode():
                    self.define(event, seeded, place)
                case ImportedName():
                    self.imported(event, seeded, place)
                case StarImport():
                    self.star(event, seeded, place)
                case TextMention():
                    self.text(event, place)
                case FrameLookup() if not self.bindings.only_code(event.root):
                    line = place.line_of(event.line)
                    self.findings.obstacle(lookup_obstacle(event, line, place.why))
                case SpecialText():
                    line = place.line_of(event.line)
                    self.findings.obstacle(text_obstacle(event, line, place.why))

    # -- names ------------------------------------------------------------------------------

    def mention(self, event: Mention, seeded: set[str], place: _Place) -> None:
        line = place.line_of(event.line)
        if event.root:
            self.record(event, line, place)
        for effect in self.bindings.effects(event):
            self.effect(effect, event, seeded, line, place)
        if event.root and not event.inert and event.access is Access.LOAD:
            for code in self.bindings.code.get(event.root, ()):
                inner = _Place(line, (*place.chain, event.root))
                self.pending.append(_Pending(code, frozenset(seeded), inner))
        if event.alone and self.bindings.is_unknown(event.root):
            self.findings.obstacle(unbound_obstacle(event, line))
        if event.definite:
            seeded |= self.seeds(event, frozenset())

    def record(self, event: Mention, line: int, place: _Place) -> None:
        name, found = event.root, self.findings
        if name in self.parameters:
            verb = _ACCESS_VERBS[event.access]
            use = ParameterUse(line=line, why=place.why(f"{verb} {name}"))
            found.certain.setdefault(name, use)
        if event.access is Access.LOAD:
            found.uses.add(name)
            if event.changed or (event.path and _changes(event.path[-1])):
                found.mutates.add(name)
        else:
            found.defines.add(name)
            self.bindings.assigned.add(name)

    def effect(
        self, effect: Effect, event: Mention, seeded: set[str], line: int, place: _Place
    ) -> None:
        match effect.kind:
            case EffectKind.PURE | EffectKind.SEED:
                return
            case EffectKind.RANDOM if effect.origin in seeded and not self.compiled(place):
                return
            case EffectKind.UNPICKLES:
                self.unpickles(event, seeded, line, place)
                return
            case _:
                self.findings.obstacle(name_obstacle(effect, event, line, place.why))

    def compiled(self, place: _Place) -> bool:
        """Return whether code may be compiled by Numba, which has generators of its own."""
        return bool(place.chain) and self.bindings.has_imported("numba")

    def unpickles(self, event: Mention, seeded: set[str], line: int, place: _Place) -> None:
        """Count as mentioned what is defined so far: the file may name any of it."""
        for codes in self.bindings.code.values():
            for code in codes:
                inner = _Place(line, (*place.chain, event.shown, code.name))
                self.pending.append(_Pending(code, frozenset(seeded), inner))

    def seeds(self, event: Mention, seen: frozenset[int]) -> set[str]:
        """Return the generators that a call seeds in any case."""
        if event.call is None or event.access is not Access.LOAD:
            return set()
        codes = self.bindings.only_code(event.root) if event.root and not event.path else []
        if not codes and self.bindings.is_only_imported(event):
            effects = list(self.bindings.effects(event))
            seeds = len(effects) == 1 and effects[0].kind is EffectKind.SEED
            return set(effects[0].origin.split()) if seeds else set()
        found = [self.seeds_of_code(code, seen) for code in codes]
        return set.intersection(*found) if found else set()

    def seeds_of_code(self, code: DeferredCode, seen: frozenset[int]) -> set[str]:
        if code.lazy or id(code) in seen:
            return set()
        found: set[str] = set()
        for event in code.events:
            if isinstance(event, Mention) and event.definite:
                found |= self.seeds(event, seen | {id(code)})
        return found

    def text(self, event: TextMention, place: _Place) -> None:
        if not looks_up_text(event.call) or self.bindings.only_code(event.root):
            return
        for name in sorted(self.parameters & event.words):
            why = place.why(f"passes a text with the word {name} to {event.call or 'a call'}")
            self.possible_use(name, place.line_of(event.line), why)

    def possible_use(self, name: str, line: int, why: str) -> None:
        self.findings.possible.setdefault(name, ParameterUse(line=line, why=why))

    # -- definitions ------------------------------------------------------------------------

    def define(self, code: DeferredCode, seeded: set[str], place: _Place) -> None:
        if not code.name:
            # It may run at once, or later: an argument of a call, for example.
            inner = _Place(place.line_of(code.line), place.chain)
            self.pending.append(_Pending(code, frozenset(seeded), inner))
            return
        self.bound(code.name, code.line, place)
        self.bindings.code.setdefault(code.name, []).append(code)
        self.new_meaning(code.name, code.line, seeded)
        if self.bindings.runs_at_definition(code):
            inner = _Place(place.line_of(code.line), (*place.chain, code.name))
            self.pending.append(_Pending(code, frozenset(seeded), inner))

    def imported(self, event: ImportedName, seeded: set[str], place: _Place) -> None:
        self.bound(event.name, event.line, place)
        if self.bindings.add_import(event):
            self.new_meaning(event.name, event.line, seeded)
        if event.module.partition(".")[0] == MAIN:
            mention = Mention(root="", module=event.module, line=event.line)
            line = place.line_of(event.line)
            self.findings.obstacle(name_obstacle(NAMESPACE, mention, line, place.why))

    def star(self, event: StarImport, seeded: set[str], place: _Place) -> None:
        line = place.line_of(event.line)
        self.bindings.stars.append(event.module)
        for name in sorted(self.parameters):
            why = f"imports all names of {event.module}, which may replace {name}"
            self.possible_use(name, line, place.why(why))
        if event.module.partition(".")[0] not in PURE_MODULES:
            self.findings.obstacle(star_obstacle(event, line, place.why))
        for name in list(self.escaped):
            self.new_meaning(name, event.line, seeded)

    def bound(self, name: str, line: int, place: _Place) -> None:
        self.findings.defines.add(name)
        if name in self.parameters:
            use = ParameterUse(line=place.line_of(line), why=place.why(f"defines {name}"))
            self.findings.certain.setdefault(name, use)

    def new_meaning(self, name: str, line: int, seeded: set[str]) -> None:
        """Look again at code that may run at any time and uses a name that is defined now."""
        for code in self.escaped.get(name, ()):
            chain = (code.name,) if code.name else ()
            self.pending.append(_Pending(code, frozenset(seeded), _Place(line, chain)))

    def escapes(self, code: DeferredCode) -> None:
        """Remember that code may run at any time from now on."""
        for name in _names_of(code):
            known = self.escaped.setdefault(name, [])
            if not any(each is code for each in known):
                known.append(code)


def _names_of(code: DeferredCode) -> set[str]:
    found: set[str] = set()
    for event in code.events:
        if isinstance(event, Mention) and event.root:
            found.add(event.root)
        elif isinstance(event, TextMention):
            found |= event.words
    return found


def _changes(method: str) -> bool:
    return method in MUTATORS or (method.endswith("_") and not method.startswith("_"))
