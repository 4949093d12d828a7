"""Load what is served: a pickle, a folder of pickles, or an object of a module."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
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
    loaded = pickle_files.load_pickle(path)
    _check_fitted(loaded, path.stem)
    return _models(loaded, path.stem)


def _check_fitted(given: object, name: str) -> None:
    """Raise InvalidInput for an estimator of scikit-learn that would refuse each call."""
    from sklearn.base import BaseEstimator  # noqa: PLC0415 # where pickles are served
    from sklearn.exceptions import NotFittedError  # noqa: PLC0415 # the same
    from sklearn.utils.validation import check_is_fitted  # noqa: PLC0415 # the same

    if not isinstance(given, BaseEstimator):
        return
    try:
        check_is_fitted(given)
    except NotFittedError as error:
        raise InvalidInput(f"{name} is not fitted.", accepted=ACCEPTED) from error


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
    if hasattr(given, "predict"):
        return _predictions(given.predict)
    if callable(given) and not isinstance(given, type):
        function: Model = given
        return function
    raise InvalidInput(f"{name} is {type(given).__name__}.", accepted=ACCEPTED)


def _predictions(predict: Callable[[Any], Any]) -> Model:
    def execute(rows: list[Any]) -> Sequence[Any]:
        return plain_values(predict(rows))

    return execute


def all_of(shelf: Any) -> Model:
    """Return what gives the result of each pipeline, or ``{"error": sentence}`` in its place.

    Rows are those of several callers: where a pipeline raises, or returns what cannot be sent, it
    is executed row by row, so that no caller gets the error of another's row.
    """

    def alone(name: str, row: Any) -> Any:
        try:
            (result,) = _sendable(shelf[name].predict([row]), 1)
        except Exception as error:  # what a pipeline raises
            return {"error": f"{type(error).__name__}: {error}"}
        return result

    def column(name: str, found: Any, rows: list[Any]) -> Sequence[Any]:
        try:
            if not isinstance(found, Exception):
                return _sendable(found, len(rows))
        except Exception:  # noqa: S110 # each row says why below
            pass
        return [alone(name, row) for row in rows]

    def execute(rows: list[Any]) -> Sequence[Any]:
        columns = {name: column(name, found, rows) for name, found in shelf.results(rows).items()}
        return [{name: values[at] for name, values in columns.items()} for at in range(len(rows))]

    return execute


def _sendable(found: Any, count: int) -> Sequence[Any]:
    """Return as many results as rows. Raises what says why they cannot be sent as JSON."""
    values = checked(plain_values(found), count)
    dumped(values)
    return values


def plain_values(found: Any) -> Sequence[Any]:
    """Return an array as lists of Python's own values."""
    values: Sequence[Any] = found.tolist() if hasattr(found, "tolist") else found
    return values
