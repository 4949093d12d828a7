"""Load what is served: a pickle, a folder of pickles, or an object of a module."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from ...hub.errors import CarrelError, InvalidInput, NotFound
from ...hub.messages import units
from .json_values import dumped
from .model_results import checked, raised
from .request_queue import Model

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
        if not place.strip(".") or not name:
            raise InvalidInput(f"{source} cannot be served.", accepted=ACCEPTED)
        return _models(_object(place, name), name)
    from ..execution.shelf import pickle_files  # noqa: PLC0415 # needs scikit-learn

    path = Path(source)
    if path.is_dir():
        from ..execution import Shelf  # noqa: PLC0415 # the same

        return _models(Shelf.load(path), path.name)
    if path.suffix not in pickle_files.SUFFIXES:
        if not path.exists():
            raise NotFound(f"There is no file or folder {source}.", accepted=ACCEPTED)
        raise InvalidInput(
            f"{source} cannot be served.",
            accepted=f"{ACCEPTED} For weights, a function whose module loads them.",
        )
    return _models(pickle_files.load_pickle(path), path.stem)


def _object(place: str, name: str) -> object:
    if place.endswith(".py"):
        path = Path(place)
        if not path.is_file():
            raise NotFound(f"There is no file {place}.", accepted=ACCEPTED)
        sys.path.insert(0, str(path.resolve().parent))
        module = _imported(place, partial(_module_of_file, path))
    else:
        sys.path.insert(0, str(Path.cwd()))
        module = _imported(place, partial(importlib.import_module, place))
    if not hasattr(module, name):
        raise NotFound(f"{place} has no {name}.", accepted=ACCEPTED)
    found: object = getattr(module, name)
    return found


def _module_of_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Pickles that name the module find it.
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _imported(place: str, load_module: Callable[[], ModuleType]) -> ModuleType:
    """Return a module. Raises NotFound or InvalidInput for whatever its import raises."""
    try:
        return load_module()
    except (Exception, SystemExit) as error:  # the module is the user's
        if isinstance(error, ModuleNotFoundError) and f"{place}.".startswith(f"{error.name}."):
            raise NotFound(f"There is no module {error.name}.", accepted=ACCEPTED) from error
        raise InvalidInput(
            f"{place} cannot be imported: {raised(error)}",
            accepted="A module that Python imports without an error.",
        ) from error


def _models(given: Any, name: str) -> Mapping[str, Model]:
    if isinstance(given, Mapping):
        if not given:
            raise InvalidInput(f"{name} has no models.", accepted=ACCEPTED)
        return {_address(str(key)): _model(each, str(key)) for key, each in given.items()}
    if hasattr(given, "results") and hasattr(given, "steps_kept"):  # a Shelf
        if ALL in given:
            raise InvalidInput(
                f"A pipeline is named {ALL}: that name gives the results of all of them.",
                accepted="Another name of its file.",
            )
        return {_address(each): _pipeline(given, each) for each in given} | {ALL: all_of(given)}
    return {name: _model(given, name)}


def _address(name: str) -> str:
    """Return the name of a model. Raises InvalidInput if no address can have it."""
    if not name or "/" in name or not name.isprintable():
        raise InvalidInput(
            f"A model cannot have the name {name!r:.80}: its address would have it.",
            accepted="At least one letter or digit, and no slash.",
        )
    return name


def _pipeline(shelf: Any, name: str) -> Model:
    found = shelf[name]
    return _predictions(found.predict, getattr(found, "estimator", None))


def _model(given: Any, name: str) -> Model:
    if isinstance(given, type):
        raise InvalidInput(
            f"{name} is a class.", accepted=f"An object of it, such as model = {name}()."
        )
    if hasattr(given, "predict"):
        if hasattr(given, "fit") and "sklearn" in sys.modules:  # else it has no such estimator
            from ..execution.shelf import fitted_steps  # noqa: PLC0415 # needs scikit-learn

            fitted_steps.check_fitted(name, given)
        return _predictions(given.predict, given)
    if callable(given):
        _check_function(given, name)
        function: Model = given
        return function
    raise InvalidInput(f"{name} is {type(given).__name__}.", accepted=ACCEPTED)


def _check_function(function: Callable[..., Any], name: str) -> None:
    accepted = f"def {name}(rows): return [… for row in rows]"
    if inspect.iscoroutinefunction(function):
        raise InvalidInput(f"{name} is an async function.", accepted=accepted)
    try:
        inspect.signature(function).bind([])
    except TypeError as error:
        raise InvalidInput(
            f"{name} cannot be called with one list of rows: {error}.", accepted=accepted
        ) from error
    except ValueError:  # some built-in functions have no signature
        return


def _predictions(predict: Callable[[Any], Any], estimator: Any) -> Model:
    def execute(rows: list[Any]) -> Sequence[Any]:
        try:
            return plain_values(predict(rows))
        except (ValueError, TypeError, AttributeError) as error:
            if refused := _refused_rows(rows, estimator, error):
                raise refused from error
            raise

    return execute


def _refused_rows(rows: list[Any], estimator: Any, error: Exception) -> InvalidInput | None:
    """Return what a fitted estimator of scikit-learn does not take; None if it may be broken."""
    if not type(estimator).__module__.startswith("sklearn."):
        return None
    first = estimator.steps[0][1] if hasattr(estimator, "steps") else estimator
    width = getattr(first, "n_features_in_", None)
    of_texts = type(first).__module__ == "sklearn.feature_extraction.text" and width is None
    accepted = "Rows like those that it was fitted on."
    if of_texts:
        accepted = 'A text for each row, such as {"rows": ["a text"]}.'
    elif width is not None:
        accepted = f"A list of {units.count(width, 'value')} for each row."
    for number, row in enumerate(rows, 1):
        if of_texts and not isinstance(row, str):
            return InvalidInput(f"Row {number} is not a text.", accepted=accepted)
        if width is not None and not isinstance(row, list | dict):
            return InvalidInput(f"Row {number} is not a list.", accepted=accepted)
        if width is not None and len(row) != width:
            count = units.count(len(row), "value")
            return InvalidInput(f"Row {number} has {count}.", accepted=accepted)
    if isinstance(error, AttributeError):  # as of a pickle by another version
        return None
    return InvalidInput(f"The model does not take these rows: {raised(error)}", accepted=accepted)


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
            except Exception as unsendable:
                error = unsendable
        if len(rows) == 1:
            told = error.message if isinstance(error, CarrelError) else raised(error)
            return [{"error": told}]
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
