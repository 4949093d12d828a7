"""Options of requests: time limit, group and device model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from ...schemas import parsers

F = TypeVar("F", bound=Callable[..., object])


def hours_option(function: F) -> F:
    return click.option(
        "--hours",
        type=click.FloatRange(min=0, min_open=True),
        default=1.0,
        show_default=True,
        help="Time limit in hours.",
    )(function)


def group_option(function: F) -> F:
    return click.option(
        "--group", default="", help="Group to charge; optional for members of one group."
    )(function)


def model_option(function: F) -> F:
    return click.option(
        "--model",
        metavar="NAME",
        help="Only devices of this model, as `carrel pool` shows it; default: any.",
    )(function)


def parameter_option(help_text: str) -> Callable[[F], F]:
    """Return the option ``--parameter``; its value is ``parameters``, pairs of texts."""
    return click.option(
        "-p",
        "--parameter",
        "parameters",
        nargs=2,
        multiple=True,
        metavar="NAME VALUE",
        help=f"{help_text} May be repeated.",
    )


def model_field(name: str | None) -> dict[str, object]:
    """Return the fields for ``--model``: none for devices of any model."""
    model = None if name is None else parsers.model(name)
    return {} if model is None else {"model": model}
