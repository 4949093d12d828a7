"""Fit a model in a process of its own: runs as JSON lines in, the model file out."""

from __future__ import annotations

import json
import os
import sys

from ..errors import CarrelError
from ..insight.model_fit import train
from .job_history import from_json

MODULE = "carrel.hub.forecasts.fit_process"
_NICE = 19


def main() -> int:
    os.nice(_NICE)
    try:
        model = train(from_json(json.loads(line)) for line in sys.stdin)
    except CarrelError as error:
        print(error, file=sys.stderr)
        return 1
    if model is not None:
        print(model.as_json())
    return 0


if __name__ == "__main__":
    sys.exit(main())
