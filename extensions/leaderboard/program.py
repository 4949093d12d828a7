"""The program that scores the weights of a leaderboard in the grading sandbox.

The folder of the sandbox has the teacher's files in ``teacher``, the files of weights in
``weights``, and ``order.json``. The teacher's ``leaderboard.py`` has two functions:

- ``architecture()`` returns a ``torch.nn.Module``, whose own weights are not used;
- ``hidden_data()`` returns inputs and targets, tensors with one row for each example.

`prepare` is called once, and then `Evaluation.score` for each group of files. Each prints its
result as a line of JSON.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

from ...hub.errors import CarrelError, InvalidInput

if TYPE_CHECKING:
    from .scores import HiddenTest

_LONGEST: Final = 2000
"""Characters of an error of the teacher's file."""


def main() -> None:
    """Score all weights of the working folder, and print the result."""
    evaluation = prepare()
    if evaluation is not None:
        evaluation.score(sorted(os.listdir(evaluation.weights)))


def prepare() -> Evaluation | None:
    """Load the teacher's files in the working folder; None where they fail, which is printed."""
    here = Path.cwd()
    order = json.loads((here / "order.json").read_bytes())
    try:
        module = teachers_module(here / "teacher")
        # It needs PyTorch, whose place the teacher's file may say.
        scores = importlib.import_module(f"{__package__}.scores")
        # Weights so small that they are denormal numbers would make a model many times slower.
        importlib.import_module("torch").set_flush_denormal(True)
        test = scores.hidden_test(module.architecture(), module.hidden_data(), **order)
    except MemoryError:
        raise
    except Exception as error:  # of the teacher's code
        _print_failure(error)
        return None
    _print({"scores": {}})
    return Evaluation(weights=here / "weights", test=test)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Scores files of a folder."""

    weights: Path
    test: HiddenTest

    def score(self, names: Sequence[str]) -> None:
        """Score files of weights by name, and print the result."""
        scores = importlib.import_module(f"{__package__}.scores")
        try:
            found = scores.score(
                self.test, {name: (self.weights / name).read_bytes() for name in names}
            )
        except MemoryError:  # fewer weights may fit
            raise
        except Exception as error:  # the architecture fails with its own weights
            _print_failure(error)
            return
        _print(
            {
                "scores": {
                    name: {"public": each.public, "private": each.private, "problem": each.problem}
                    for name, each in found.items()
                }
            }
        )


def _print_failure(error: Exception) -> None:
    told = f"leaderboard.py: {type(error).__name__}: {error}"
    _print({"failure": error.message if isinstance(error, CarrelError) else told[:_LONGEST]})


def _print(result: dict[str, object]) -> None:
    print(f"\n{json.dumps(result)}", flush=True)


def teachers_module(folder: Path) -> ModuleType:
    """Import ``leaderboard.py``. The working folder becomes its folder, where its data are.

    Raises InvalidInput; and whatever the teacher's code raises.
    """
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location("leaderboard", folder / "leaderboard.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    missing = [name for name in ("architecture", "hidden_data") if not hasattr(module, name)]
    if missing:
        raise InvalidInput(f"leaderboard.py has no function {' and no function '.join(missing)}.")
    return module
