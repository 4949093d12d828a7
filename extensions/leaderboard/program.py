"""The program that scores the weights of a leaderboard in the grading sandbox.

The folder of the sandbox has the teacher's files in ``teacher``, the files of weights in
``weights``, and ``order.json``. The teacher's ``leaderboard.py`` has two functions:

- ``architecture()`` returns a ``torch.nn.Module``, whose own weights are not used;
- ``hidden_data()`` returns inputs and targets, tensors with one row for each example.

The last line of the output has the result as JSON.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from ...hub.errors import CarrelError, InvalidInput

_LONGEST: Final = 2000
"""Characters of an error of the teacher's file."""


def main() -> None:
    """Score what lies in the working folder, and print the result."""
    here = Path.cwd()
    order = json.loads((here / "order.json").read_bytes())
    contents = {each.name: each.read_bytes() for each in sorted((here / "weights").iterdir())}
    try:
        module = teachers_module(here / "teacher")
        # It needs PyTorch, whose place the teacher's file may say.
        scores = importlib.import_module(f"{__package__}.scores")
        test = scores.hidden_test(module.architecture(), module.hidden_data(), **order)
        found = scores.score(test, contents)
        result: dict[str, object] = {
            "scores": {
                name: {"public": each.public, "private": each.private, "problem": each.problem}
                for name, each in found.items()
            }
        }
    except CarrelError as error:
        result = {"failure": error.message}
    except MemoryError:  # fewer weights may fit
        raise
    except Exception as error:  # of the teacher's code
        result = {"failure": f"leaderboard.py: {type(error).__name__}: {error}"[:_LONGEST]}
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
