"""Compare what is known about two runs beside their cells: parameters, image, packages, times."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from .schemas import ComparedRunOut, FactOut
from .tolerance import Tolerance

_LONGEST = 500
_MOST_FACTS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What is known about a run.

    Attributes:
        about: name, job, kind and state.
        command: of a job that runs a command.
        outcome: how it ended; compared if both runs have one.
        parameters: by name.
        environment: what may explain other results: image, versions, devices. By name; compared
            if both runs have it.
        packages: versions by name; compared if both runs have some.
        inputs: hashes of the files that were read, by path; as for packages.
        run: what differs in every run: times, attempts. By name.
    """

    about: ComparedRunOut
    command: str = ""
    outcome: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    run: Mapping[str, str] = field(default_factory=dict)


def compare_facts(a: RunFacts, b: RunFacts, tolerance: Tolerance) -> list[FactOut]:
    """Return the facts of both runs; numbers of parameters are compared under the tolerance."""
    found = list[FactOut]()
    if a.command or b.command:
        found += _texts("sources", {"Command": a.command}, {"Command": b.command})
    if a.outcome and b.outcome:
        found += _texts("outputs", {"Result": a.outcome}, {"Result": b.outcome})
    found += [
        FactOut(
            part="parameters",
            name=name,
            a=_written(a.parameters, name),
            b=_written(b.parameters, name),
            equal=name in a.parameters
            and name in b.parameters
            and same_value(a.parameters[name], b.parameters[name], tolerance),
        )
        for name in _names(a.parameters, b.parameters)
    ]
    found += _texts("environment", a.environment, b.environment)
    found += _listed("Package", a.packages, b.packages)
    found += _listed("Input", a.inputs, b.inputs)
    found += _texts("run", a.run, b.run)
    return found[:_MOST_FACTS]


def same_value(a: object, b: object, tolerance: Tolerance) -> bool:
    """Return whether two JSON values are equal but for numbers within the tolerance."""
    match a, b:
        case (bool(), _) | (_, bool()):
            return a is b
        case (int() | float(), int() | float()):
            return tolerance.accepts(Decimal(a), Decimal(b))
        case (list(), list()):
            return len(a) == len(b) and all(
                same_value(one, other, tolerance) for one, other in zip(a, b, strict=True)
            )
        case (dict(), dict()):
            return a.keys() == b.keys() and all(same_value(a[k], b[k], tolerance) for k in a)
        case _:
            return a == b


def _texts(
    part: Literal["sources", "outputs", "environment", "run"],
    a: Mapping[str, str],
    b: Mapping[str, str],
) -> list[FactOut]:
    return [
        FactOut(
            part=part,
            name=name,
            a=a.get(name, "")[:_LONGEST],
            b=b.get(name, "")[:_LONGEST],
            equal=a.get(name, "") == b.get(name, "")
            # A file does not say everything about its run.
            or (part == "environment" and not (name in a and name in b)),
        )
        for name in _names(a, b)
    ]


def _listed(noun: str, a: Mapping[str, str], b: Mapping[str, str]) -> list[FactOut]:
    """Return the entries of a long list that differ; if none does, one fact for all of them."""
    if not a or not b:
        return []
    if a == b:
        number = str(len(a))
        return [FactOut(part="environment", name=f"{noun}s", a=number, b=number, equal=True)]
    return [
        FactOut(
            part="environment",
            name=f"{noun} {name}"[:_LONGEST],
            a=a.get(name, "none"),
            b=b.get(name, "none"),
            equal=False,
        )
        for name in _names(a, b)
        if a.get(name) != b.get(name)
    ]


def _names(a: Mapping[str, object], b: Mapping[str, object]) -> list[str]:
    return list(dict.fromkeys([*a, *b]))


def _written(values: Mapping[str, object], name: str) -> str:
    if name not in values:
        return ""
    return json.dumps(values[name], ensure_ascii=False)[:_LONGEST]
