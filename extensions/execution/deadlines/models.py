"""Load what is scheduled: ONNX files, or Python functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ....hub.errors import InvalidInput

CPU: Final = "cpu"
"""A worker on the processor: it is no accelerator, and is called a CPU worker."""
Execute = Callable[[Any], Any]


def load(model: object, kind: str, threads: int) -> Execute:
    """Return a function that executes a model on a kind of worker.

    Args:
        model: the path of an ONNX file, or a function, which runs on a CPU worker only.
        kind: ``cpu``, or ``cuda:N``.
        threads: of one CPU worker.

    Returns:
        a function of the inputs. Those of an ONNX model are an array by name, or one array; it
        returns the list of its outputs.

    Raises:
        InvalidInput: the model is neither, cannot be loaded, or cannot run there.
    """
    if isinstance(model, (str, Path)):
        return _session(Path(model), kind, threads)
    if not callable(model):
        raise InvalidInput(
            f"{type(model).__name__} is no model.",
            accepted="Pass the path of an ONNX file, or a function of the inputs.",
        )
    if kind != CPU:
        raise InvalidInput(
            f"A Python function cannot run on {kind}.",
            accepted="Export it as an ONNX file, or use CPU workers.",
        )
    return model


def _session(path: Path, kind: str, threads: int) -> Execute:
    if find_spec("onnxruntime") is None:
        raise InvalidInput(
            f"{path.name} needs ONNX Runtime.", accepted="pip install 'carrel[execution]'"
        )
    import onnxruntime  # noqa: PLC0415  # functions need no ONNX Runtime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads that spin between two runs take the cores from the other models.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=_providers(kind, onnxruntime.get_available_providers())
        )
    except InvalidInput:
        raise
    except Exception as error:  # it raises errors of many kinds for a file that is no model
        line = next(iter(str(error).strip().split("\n")), "")
        raise InvalidInput(
            f"{path.name} cannot be loaded: {line.rstrip('.')}.",
            accepted="Pass the path of an ONNX file.",
        ) from error
    names = [each.name for each in session.get_inputs()]

    def execute(inputs: Any) -> Any:
        if not isinstance(inputs, Mapping):
            if len(names) != 1:
                raise InvalidInput(
                    f"{path.name} has {len(names)} inputs.",
                    accepted=f"Pass an array for each of: {', '.join(names)}.",
                )
            inputs = {names[0]: inputs}
        return session.run(None, inputs)

    return execute


def _providers(kind: str, available: list[str]) -> list[Any]:
    if kind == CPU:
        return ["CPUExecutionProvider"]
    name, _, number = kind.partition(":")
    provider = "CUDAExecutionProvider"
    if name != "cuda" or not number.isdecimal():
        raise InvalidInput(f"There is no accelerator {kind!r}.", accepted="cpu, or cuda:0, …")
    if provider not in available:
        raise InvalidInput(
            f"This ONNX Runtime cannot use {kind}.", accepted="Install onnxruntime-gpu, or use cpu."
        )
    return [(provider, {"device_id": int(number)}), "CPUExecutionProvider"]
