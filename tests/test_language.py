"""The language of the project: plain technical English, one word for one thing, one name for one
idea."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from .source_tree import ROOT, modules, package

# Phrases of the project's early dialect → what the field says. Each is looked for in code,
# comments, pages, scripts and documentation, without regard to case.
PHRASES = {
    r"ask(?:s|ed|ing)? (?:\w+ ){0,2}back": "preemption, preempt",
    r"whoever|whomever": "the user, the owner, the job that …",
    r"nobody|somebody": "no user, another user, …",
    r"may stay empty": "optional",
    r"makes? no sense": "must be between … and …",
    r"what waits|whatever waits": "queued requests",
    r"\bbook ?keepers?\b": "gradebook writer",
    r"\bwardens?\b": "sandbox supervisor",
    r"\bnurser(?:y|ies)\b": "fork server",
    r"\bcages?\b": "sandbox",
    r"\bparcels?\b": "bundle",
    r"\berrands?\b": "command",
    r"\bspared\b": "notice withdrawn, preemption cancelled",
    r"(?:make|makes|made|making) room for": "preempt, free devices for",
    r"come anew|install \w+ anew": "again",
}
GERUNDS = {
    "scheduling": "the field's own noun",
    "grading": "the field's own noun",
    "manual_grading": "the field's own noun, as grading",
    "accounting": "the field's own noun",
    "monitoring": "the field's own noun",
    "routing": "the field's own noun",
    "logging": "the field's own noun",
    "idle_culling": "what jupyterhub-idle-culler made the field's noun",
    "staging": "a noun: where a restore is prepared",
}
"""Names of modules and packages that may end in -ing, each with its reason."""
SAME_NAME = {
    "Listed": "tests only",
}
TEXT = (".py", ".html", ".j2", ".js", ".md", ".css", ".toml")
# Names of files that keep their address, names in stored data, and quotations.
QUOTED = re.compile(r"\(?\.\./decisions/[\w.-]+|docker\.books|carrel\.(?:books|cages)|#[\w-]+\)")
NOT_OURS = ("tests/", "docs/_static/", "hub/web/static/vendor/", "courses/sample/release/")


def texts() -> list[Path]:
    """Return the tracked files that contain text for users and developers."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    return [
        ROOT / name
        for name in listed
        if name.endswith(TEXT) and not name.startswith(NOT_OURS) and (ROOT / name).is_file()
    ]


@pytest.mark.parametrize("phrase", PHRASES)
def test_plain_technical_english(phrase: str) -> None:
    wanted = re.compile(rf"\b(?:{phrase})\b", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
        if wanted.search(QUOTED.sub("", line))
    ]
    assert not found, f"say {PHRASES[phrase]}:\n" + "\n".join(found)


def test_no_module_is_named_by_a_gerund() -> None:
    # A migration is named by its number.
    named = {
        part
        for name in modules()
        for part in name.split(".")
        if part.endswith("ing") and not re.match(r"r\d{4}_", part)
    }
    assert named - GERUNDS.keys() == set()


def classes() -> dict[str, list[str]]:
    """Return the modules that define each class name at their top level."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, path in modules().items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(name)
    return found


def test_a_class_name_has_one_meaning() -> None:
    shared = {
        name: where
        for name, where in classes().items()
        if len(where) > 1 and not name.startswith("_") and name not in SAME_NAME
    }
    assert shared == {}


def test_private_class_names_are_unique_in_their_package() -> None:
    for name, where in classes().items():
        packages = [package(module) for module in where]
        assert len(set(packages)) == len(packages), f"{name} twice in one package: {where}"
