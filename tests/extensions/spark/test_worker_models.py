"""Models in Spark's Python processes."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from carrel.extensions.spark.worker_models import BroadcastModel


@pytest.fixture(autouse=True)
def _garbage_collection() -> Iterator[None]:
    yield
    gc.unfreeze()


def sent(pickled: bytes) -> BroadcastModel:
    return BroadcastModel(digest=str(hash(pickled)), pickled=SimpleNamespace(value=pickled))


def test_a_loaded_model_is_kept_and_its_objects_are_not_collected_again() -> None:
    model = sent(pickle.dumps(["weights"]))
    gc.unfreeze()
    assert model.load() is model.load()
    assert gc.get_freeze_count() > 0


def test_after_a_model_that_cannot_be_loaded_objects_are_still_not_collected_again() -> None:
    sent(pickle.dumps(["of the model before"])).load()
    with pytest.raises(pickle.UnpicklingError):
        sent(b"no pickle").load()
    assert gc.get_freeze_count() > 0
