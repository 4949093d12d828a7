"""Load what is served: a pickle, a folder of pickles, or an object of a module."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...hub.errors import InvalidInput, NotFound
from .json_values import dumped
from .request_queue import Model, checked

ACCEPTED = (
    "A pickle of a fitted estimator, a folder of such pickles, or FILE.py:OBJECT or MODULE:OBJECT, "
    "where the object is a function of a list of rows, an estimator, a Shelf, or a dict of these."
)

ALL: Final = "all"
"""The model that gives the results of all pipelines of a shelf."""


def load(source: str) -> Mapping[str, Model]:
    """Return the models of a source by name.

    Raises:
        NotFound: there is no such file, module or object.
        Forbidden: a pickle belongs to another user, or others may write to it.
        InvalidInput: it is nothing that can be served.
    """
    place, colon, name = source.rpartition(":")
    if colon and not Path(source).exists():
        return _models(_object(place, name), name)
    from ..execution.shelf import pickle_files  # noqa: PLC0415 # needs scikit-learn

    path = Path(source)
    if path.is_dir():
        from ..execution import Shelf  # noqa: PLC0415 # the same

        return _models(Shelf.load(path), path.name)
    if path.suffix not in pickle_files.SUFFIXES:
        raise InvalidInput(f"{source} cannot be served.", accepted=ACCEPTED)
    return _models(pickle_files.load_pickle(path), path.stem)


def _object(place: str, name: str) -> object:
    if place.endswith(".py"):
        path = Path(place)
        if not path.is_file():
            raise NotFound(f"There is no file {place}.", accepted=ACCEPTED)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        # Pickles that name the module find it.
        sys.modules[path.stem] = module
        sys.path.insert(0, str(path.resolve().parent))
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, str(Path.cwd()))
        try:
            module = importlib.import_module(place)
        except ModuleNotFoundError as error:
            raise NotFound(f"There is no module {error.name}.", accepted=ACCEPTED) from error
    if not hasattr(module, name):
        raise NotFound(f"{place} has no {name}.", accepted=ACCEPTED)
    found: object = getattr(module, name)
    return found


def _models(given: Any, name: str) -> Mapping[str, Model]:
    if isinstance(given, Mapping):
        return {str(key): _model(each, str(key)) for key, each in given.items()}
    if hasattr(given, "results") and hasattr(given, "steps_kept"):  # a Shelf
        if ALL in given:
            raise InvalidInput(
                f"A pipeline is named {ALL}: that name gives the results of all of them.",
                accepted="Another name of its file.",
            )
        return {each: _model(given[each], each) for each in given} | {ALL: all_of(given)}
    return {name: _model(given, name)}


def _model(given: Any, name: str) -> Model:
    if hasattr(given, "predict") and not isinstance(given, type):
        if hasattr(given, "fit") and "sklearn" in sys.modules:  # else it has no such estimator
            from ..execution.shelf import fitted_steps  # noqa: PLC0415 # needs scikit-learn

            fitted_steps.check_fitted(name, given)
        return _predictions(given.predict)
    if callable(given) and not isinstance(given, type):
        function: Model = given
        return function
    raise InvalidInput(f"{name} is {type(given).__name__}.", accepted=ACCEPTED)


def _predictions(predict: Callable[[Any], Any]) -> Model:
    def execute(rows: list[Any]) -> Sequence[Any]:
        return plain_values(predict(rows))

    return execute


@dataclass(frozen=True, slots=True)
class AllResults:
    """The model that gives the results of all pipelines of a shelf, which a page compares."""

    execute: Model

    def __call__(self, rows: list[Any]) -> Sequence[Any]:
        return self.execute(rows)


def has_all_results(models: Mapping[str, Model]) -> bool:
    """Return whether the models are the pipelines of a shelf, and that of all of them."""
    return isinstance(models.get(ALL), AllResults)


def all_of(shelf: Any) -> AllResults:
    """Return what gives the result of each pipeline, or ``{"error": sentence}`` in its place.

    Rows are those of several callers: where a pipeline raises, or returns what cannot be sent, it
    is executed on halves of them, so that no caller gets the error of another's row.
    """

    def part(name: str, rows: list[Any]) -> Sequence[Any]:
        try:
            found = shelf.execute_plainly(name, rows)
        except Exception as error:  # what a pipeline raises
            found = error
        return column(name, found, rows)

    def column(name: str, found: Any, rows: list[Any]) -> Sequence[Any]:
        error = found
        if not isinstance(found, Exception):
            try:
                return _sendable(found, len(rows))
            except Exception as raised:  # why a result cannot be sent
                error = raised
        if len(rows) == 1:
            return [{"error": f"{type(error).__name__}: {error}"}]
        half = len(rows) // 2
        return [*part(name, rows[:half]), *part(name, rows[half:])]

    def execute(rows: list[Any]) -> Sequence[Any]:
        columns = {name: column(name, found, rows) for name, found in shelf.results(rows).items()}
        return [{name: values[at] for name, values in columns.items()} for at in range(len(rows))]

    return AllResults(execute)


def _sendable(found: Any, count: int) -> Sequence[Any]:
    """Return as many results as rows. Raises what says why they cannot be sent as JSON."""
    values = checked(plain_values(found), count)
    dumped(values)
    return values


def plain_values(found: Any) -> Sequence[Any]:
    """Return an array as lists of Python's own values."""
    values: Sequence[Any] = found.tolist() if hasattr(found, "tolist") else found
    return values
