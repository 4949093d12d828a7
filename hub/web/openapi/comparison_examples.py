"""Examples of comparisons of runs for the OpenAPI description."""

from __future__ import annotations

from typing import Any

BODIES: dict[str, dict[str, dict[str, Any]]] = {
    "ComparisonIn": {
        "jobs": {
            "summary": "Two jobs, with a tolerance of a thousandth",
            "value": {
                "a": {"request": "j-7f3k2m9p"},
                "b": {"request": "j-9x3w5rtn"},
                "tolerance": {"relative": 0.001},
                "ignore": ["environment"],
            },
        }
    }
}
ANSWERS: dict[str, dict[str, Any]] = {
    "ComparisonOut": {
        "equal": False,
        "a": {"name": "j-7f3k2m9p", "request": "j-7f3k2m9p", "state": "succeeded"},
        "b": {"name": "j-9x3w5rtn", "request": "j-9x3w5rtn", "state": "succeeded"},
        "relative": 0.001,
        "absolute": 1e-12,
        "ignored": ["environment"],
        "summary": {"cells": 1, "changed": 1, "outputs": 1, "parameters": 1},
        "facts": [
            {"part": "parameters", "name": "lr", "a": "0.05", "b": "0.1", "equal": False},
        ],
        "cells": [
            {
                "state": "changed",
                "kind": "code",
                "a": 1,
                "b": 1,
                "outputs_changed": True,
                "source": "print(loss)",
                "outputs": [
                    {
                        "state": "changed",
                        "form": "text",
                        "name": "stdout",
                        "a": 0,
                        "b": 0,
                        "message": "1 line changed. 1 number differs, by at most 0.25 "
                        "(relative 0.333).",
                        "text": {
                            "changed": 1,
                            "largest": {"numbers": 1, "absolute": 0.25, "relative": 0.333},
                            "rows": [{"kind": "changed", "a": "0.5", "b": "0.75"}],
                        },
                    }
                ],
            }
        ],
    }
}
